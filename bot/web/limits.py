"""ASGI middleware: bounded requests, safe headers on every response, a plain message for unforeseen errors.

`Capacity` bounds the requests in progress. `BodyLimits` bounds the size of each body, the time in which it
must arrive, and the number of bodies that are arriving; it also adds the headers and answers errors that no
route foresaw. ``api.py`` puts both around the application.
"""

import asyncio
import contextlib
import functools
import secrets
from collections.abc import Callable
from typing import NamedTuple

import structlog
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.telemetry.logs import logger
from bot.telemetry.outages import FileFault, is_outage
from bot.web.answers import NOTHING_HERE, make_problem_response
from bot.web.streams import Pace

log = logger(__name__)

MAX_BODY_BYTES = 256 * 1024  # the most bytes of a body without files
RUN_PATH = "/agui"  # the path of AG-UI's runs, which send a thread's full history
FILE_PATHS = frozenset({"/api/chat"})  # paths that take files, as ``multipart/form-data``
PROBES = frozenset({"/healthz", "/readyz"})  # answered even if too many requests are in progress
_EXTRA_BYTES = 16 * MAX_BODY_BYTES
"""The bytes beyond the limit that are read and dropped if a body is too large.

Most clients read the response only after they have sent the body.
"""
MAX_ARRIVING_BODIES = 100  # the most requests at the same time whose body is still arriving
_FULL_TEXT = "Too many requests are under way. Try again in a moment."
_SLOW_BODY_TEXT = "The body took too long to arrive. Send it again."
_OUTAGE_TEXT = "The database isn't answering in time. Try again in a moment."
_BROKEN_TEXT = "Something went wrong. The log has the details. Your data is safe. Try again."

_SAFETY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_PRIVATE_HEADERS = ((b"cache-control", b"no-store"), (b"vary", b"Authorization, Cookie"))
_PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    b"font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DOCS_POLICY = _PAGE_POLICY.replace(b"style-src 'self'", b"style-src 'self' 'unsafe-inline'")


class Capacity:
    """Middleware that answers 503 beyond ``max_requests`` requests and streams at the same time."""

    def __init__(self, app: ASGIApp, max_requests: int) -> None:
        self._app = app
        self._free_slots = asyncio.Semaphore(max_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
        elif self._free_slots.locked():
            answer = make_problem_response(503, _FULL_TEXT)
            answer.headers.update({"Retry-After": "5", "Connection": "close"})
            await answer(scope, receive, send)
        else:
            async with self._free_slots:
                await self._app(scope, receive, send)


def max_run_bytes(max_file_bytes: int) -> int:
    """Return the most bytes of an AG-UI run: a thread's history, and files in base64."""
    return 16 * MAX_BODY_BYTES + max_file_bytes * 4 // 3


def _is_form(scope: Scope) -> bool:
    kinds = (value for name, value in scope["headers"] if name == b"content-type")
    return any(kind.lower().startswith(b"multipart/form-data") for kind in kinds)


async def _wait_for_end(receive: Receive) -> Message:
    """Wait until the client has left, drop what arrives until then, and return the message that says so."""
    while (message := await receive())["type"] == "http.request":
        pass
    return message


def _add_headers(message: Message, policy: bytes, request_id: str) -> None:
    """Add the usual headers to the message that starts a response, without replacing those that it has."""
    headers = list(message.get("headers", []))
    set_names = {name.lower() for name, _ in headers}
    if b"cache-control" not in set_names:
        headers += _PRIVATE_HEADERS
    usual = (*_SAFETY_HEADERS, (b"content-security-policy", policy))
    headers += [(name, value) for name, value in usual if name not in set_names]
    message["headers"] = [*headers, (b"x-request-id", request_id.encode())]


class _ArrivingPart(NamedTuple):
    """The wait for a part of a body."""

    begun: float  # when its request began, in the loop's time
    limit: asyncio.Timeout  # ends the wait


class BodyLimits:
    """Middleware that bounds the size and the time of bodies, and adds safe headers to every response."""

    def __init__(self, app: ASGIApp, pace: Callable[[], Pace], max_file_bytes: int = 0) -> None:
        """``pace`` returns the times in which bodies must arrive. ``max_file_bytes``: of a body's files."""
        self._app = app
        self._pace = pace
        self._max_file_bytes = max_file_bytes
        self._arriving: dict[str, _ArrivingPart] = {}  # by the id of the request

    async def _receive_part(self, request_id: str, receive: Receive, begun: float, due: float) -> Message:
        """Return the next part of a body. Raises TimeoutError if it does not arrive before ``due``.

        The times are in the loop's time; ``begun`` is that of the request. If too many bodies are arriving,
        the wait for the body whose request began first is ended.
        """
        if len(self._arriving) >= MAX_ARRIVING_BODIES:
            oldest = min(self._arriving, key=lambda request_id: self._arriving[request_id].begun)
            with contextlib.suppress(RuntimeError):  # its time is over already
                self._arriving.pop(oldest).limit.reschedule(0)
        try:
            async with asyncio.timeout_at(due) as limit:
                self._arriving[request_id] = _ArrivingPart(begun, limit)
                return await receive()
        finally:
            self._arriving.pop(request_id, None)

    def _find_max_bytes(self, *, is_run: bool, brings_files: bool) -> int:
        if is_run:
            return max_run_bytes(self._max_file_bytes)
        if brings_files:
            return self._max_file_bytes + MAX_BODY_BYTES
        return MAX_BODY_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        policy = _DOCS_POLICY if scope["path"] == "/docs" else _PAGE_POLICY
        is_run = scope["path"] == RUN_PATH
        brings_files = is_run or (scope["path"] in FILE_PATHS and _is_form(scope))
        max_bytes = self._find_max_bytes(is_run=is_run, brings_files=brings_files)
        request_id = secrets.token_hex(6)
        pace = self._pace()
        begun = asyncio.get_running_loop().time()
        due = begun + (pace.file_body_seconds if brings_files else pace.body_seconds)
        receive_part = functools.partial(self._receive_part, request_id, receive, begun, due)
        exchange = _Exchange(receive, receive_part, send, max_bytes, policy, request_id)

        if "\0" in scope["path"]:  # PostgreSQL can't store this character, so no id in a path has it
            await make_problem_response(404, NOTHING_HERE)(scope, receive, exchange.send)
            return
        structlog.contextvars.bind_contextvars(request=request_id)  # a request is a task of its own
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:  # the details are for the log alone, not for the caller
            log.error("request failed", path=scope["path"], exc_info=error)
            if not exchange.has_started:
                await _make_error_response(error)(scope, receive, exchange.send)


def _make_error_response(error: Exception) -> Response:
    if not is_outage(error):
        return make_problem_response(500, _BROKEN_TEXT)
    words = error.advice if isinstance(error, FileFault) else _OUTAGE_TEXT
    return make_problem_response(503, words)


class _Exchange:
    """One request and its response: the application receives and sends through it."""

    def __init__(
        self,
        receive: Receive,
        receive_part: Receive,
        send: Send,
        max_bytes: int,
        policy: bytes,
        request_id: str,
    ) -> None:
        """``receive_part``: `BodyLimits._receive_part` for this request. ``policy``: its content policy."""
        self._receive = receive
        self._receive_part = receive_part
        self._send = send
        self._max_bytes = max_bytes
        self._policy = policy
        self._request_id = request_id
        self._size = 0  # the bytes of the body so far
        self._is_complete = False  # the body
        self.has_started = False
        """True once the response has begun."""

    async def receive(self) -> Message:
        """Return the next part of the body. Raises HTTPException if it is too large or too slow."""
        # After a complete body, the only further message is that the client has left. The rest of a body
        # that was refused as too large is dropped until then.
        if self._is_complete or self._size > self._max_bytes:
            return await _wait_for_end(self._receive)
        try:
            message = await self._receive_part()
        except TimeoutError:
            raise HTTPException(408, _SLOW_BODY_TEXT, {"Connection": "close"}) from None
        self._is_complete = not message.get("more_body")
        self._size += len(message.get("body", b""))
        if self._size <= self._max_bytes:
            return message
        # too large: read further for a while, so that the client reads the response
        with contextlib.suppress(TimeoutError):
            while message.get("more_body") and self._size < self._max_bytes + _EXTRA_BYTES:
                message = await self._receive_part()
                self._size += len(message.get("body", b""))
        kibibytes = self._max_bytes // 1024
        raise HTTPException(413, f"The body is larger than {kibibytes} KiB. Send less in one request.")

    async def send(self, message: Message) -> None:
        """Send a message of the response, with the usual headers."""
        if message["type"] == "http.response.start":
            self.has_started = True
            _add_headers(message, self._policy, self._request_id)
        await self._send(message)
