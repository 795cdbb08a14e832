"""ASGI middleware: bounded requests, safe headers on every answer, a plain message when something fails."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable

import structlog
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.telemetry.logs import logger
from bot.telemetry.outages import FileFault, is_outage
from bot.web.answers import NOTHING_HERE, problem
from bot.web.streams import Pace

log = logger(__name__)

MAX_BODY = 256 * 1024  # bytes
RUNS = "/agui"
WITH_FILES = frozenset({"/api/chat"})  # as ``multipart/form-data``
PROBES = frozenset({"/healthz", "/readyz"})  # answered however many requests are under way
_READ_ON = 16 * MAX_BODY  # of a body that is too large, so that its sender gets to read the answer
ARRIVING = 100  # requests whose body is waited for at the same time
_FULL = "Too many requests are under way. Try again in a moment."
_SLOW = "The body took too long to arrive. Send it again."
_LATE = "The database isn't answering in time. Try again in a moment."
_BROKEN = "Something went wrong. The log has the details. Your data is safe. Try again."

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_PRIVATE = ((b"cache-control", b"no-store"), (b"vary", b"Authorization, Cookie"))
_PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    b"font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DOCS_POLICY = _PAGE_POLICY.replace(b"style-src 'self'", b"style-src 'self' 'unsafe-inline'")


class Capacity:
    """``most``: requests and streams under way at the same time, below what the server itself holds."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._free = asyncio.Semaphore(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
        elif self._free.locked():
            answer = problem(503, _FULL)
            answer.headers.update({"Retry-After": "5", "Connection": "close"})
            await answer(scope, receive, send)
        else:
            async with self._free:
                await self._app(scope, receive, send)


def max_run_bytes(files: int) -> int:
    """Return the limit of an AG-UI run: a thread's history, and ``files`` of a message in base64."""
    return 16 * MAX_BODY + files * 4 // 3


def _is_form(scope: Scope) -> bool:
    kinds = (value for name, value in scope["headers"] if name == b"content-type")
    return any(kind.lower().startswith(b"multipart/form-data") for kind in kinds)


async def _wait_for_end(receive: Receive) -> Message:
    while (message := await receive())["type"] == "http.request":
        pass
    return message


class BodyLimits:
    def __init__(self, app: ASGIApp, pace: Callable[[], Pace], files: int = 0) -> None:
        """``files``: bytes of those that one request may bring."""
        self._app = app
        self._pace = pace
        self._files = files
        self._arriving: dict[str, asyncio.Timeout] = {}  # whose body is waited for, the longest first

    async def _part(self, request: str, receive: Receive, due: float) -> Message:
        """Return the next part of a body.

        Where too many are waited for, the one that began longest ago ends.
        """
        if len(self._arriving) >= ARRIVING:
            with contextlib.suppress(RuntimeError):  # its time is over already
                self._arriving.pop(next(iter(self._arriving))).reschedule(0)
        try:
            async with asyncio.timeout_at(due) as limit:
                self._arriving[request] = limit
                return await receive()
        finally:
            self._arriving.pop(request, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        policy = _DOCS_POLICY if scope["path"] == "/docs" else _PAGE_POLICY
        is_run = scope["path"] == RUNS
        brings_files = is_run or (scope["path"] in WITH_FILES and _is_form(scope))
        most = self._files + MAX_BODY if brings_files else MAX_BODY
        if is_run:
            most = max_run_bytes(self._files)
        started = whole = False
        size = 0
        request = secrets.token_hex(6)
        pace = self._pace()
        due = asyncio.get_running_loop().time() + (pace.files if brings_files else pace.body)

        async def limited() -> Message:
            nonlocal size, whole
            if whole or size > most:  # what comes now is that the caller left
                return await _wait_for_end(receive)
            try:
                message = await self._part(request, receive, due)
            except TimeoutError:
                raise HTTPException(408, _SLOW, {"Connection": "close"}) from None
            whole = not message.get("more_body")
            size += len(message.get("body", b""))
            if size <= most:
                return message
            with contextlib.suppress(TimeoutError):
                while message.get("more_body") and size < most + _READ_ON:
                    message = await self._part(request, receive, due)
                    size += len(message.get("body", b""))
            raise HTTPException(413, f"The body is larger than {most // 1024} KiB. Send less in one request.")

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                given = message.get("headers", [])
                own = {name.lower() for name, _ in given}
                private = () if b"cache-control" in own else _PRIVATE
                usual = (*_HEADERS, (b"content-security-policy", policy))
                message["headers"] = [
                    *given,
                    *private,
                    *(each for each in usual if each[0] not in own),  # a page may have a policy of its own
                    (b"x-request-id", request.encode()),
                ]
            await send(message)

        if "\0" in scope["path"]:  # no database holds it
            await problem(404, NOTHING_HERE)(scope, receive, guarded)
            return
        structlog.contextvars.bind_contextvars(request=request)  # a request is a task of its own
        try:
            await self._app(scope, limited, guarded)
        except Exception as error:  # no one foresaw it; the log has it, the caller must not
            log.error("request failed", path=scope["path"], exc_info=error)
            if not started:
                words = error.words if isinstance(error, FileFault) else _LATE
                answer = problem(503, words) if is_outage(error) else problem(500, _BROKEN)
                await answer(scope, receive, guarded)
