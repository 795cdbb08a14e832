"""ASGI middleware that bounds requests.

`Capacity` bounds the requests in progress. `BodyLimits` bounds the size of each body, the time in which it
must arrive, and the number of bodies that are awaited. ``api.py`` puts both around the application.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.web.answers import make_problem_response
from bot.web.streams import Pace

MAX_BODY_BYTES = 256 * 1024  # the most bytes of a body without files
RUN_PATH = "/agui"  # the path of AG-UI's runs, which send a thread's full history
FILE_PATHS = frozenset({"/api/chat"})  # paths that take files, as ``multipart/form-data``
PROBES = frozenset({"/healthz", "/readyz"})  # answered even if too many requests are in progress
_EXTRA_BYTES = 16 * MAX_BODY_BYTES
"""The bytes beyond the limit that are read and dropped if a body is too large.

Most clients read the response only after they have sent the body.
"""
MAX_AWAITED_BODIES = 100  # the most requests of which a part of the body is awaited at the same time
_FULL_TEXT = "Too many requests are under way. Try again in a moment."
_SLOW_BODY_TEXT = "The body took too long to arrive. Send it again."


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


class BodyLimits:
    """Middleware that bounds the bodies of requests: their size, their time, and how many are awaited."""

    def __init__(self, app: ASGIApp, pace: Callable[[], Pace], max_file_bytes: int = 0) -> None:
        """``pace`` returns the times in which bodies must arrive. ``max_file_bytes``: of a body's files."""
        self._app = app
        self._pace = pace
        self._max_file_bytes = max_file_bytes
        self._waits: _Waits = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_run = scope["path"] == RUN_PATH
        brings_files = is_run or (scope["path"] in FILE_PATHS and _is_form(scope))
        pace = self._pace()
        begun_at = asyncio.get_running_loop().time()
        body = _Body(
            server_receive=receive,
            max_bytes=self._find_max_bytes(is_run=is_run, brings_files=brings_files),
            begun_at=begun_at,
            due_at=begun_at + (pace.file_body_seconds if brings_files else pace.body_seconds),
            waits=self._waits,
        )
        await self._app(scope, body.receive, send)

    def _find_max_bytes(self, *, is_run: bool, brings_files: bool) -> int:
        if is_run:
            return max_run_bytes(self._max_file_bytes)
        if brings_files:
            return self._max_file_bytes + MAX_BODY_BYTES
        return MAX_BODY_BYTES


@dataclass(eq=False)
class _Body:
    """The body of one request, which the application receives within its bounds.

    ``begun_at`` and ``due_at`` are in the loop's time: the begin of the request, and the end of the time for
    its body.
    """

    server_receive: Receive  # receives without bounds
    max_bytes: int
    begun_at: float
    due_at: float
    waits: "_Waits"
    received_bytes: int = 0
    is_complete: bool = False

    async def receive(self) -> Message:
        """Return the next part of the body. Raises HTTPException if it is too large or too slow.

        After the body, or after it was refused as too large, the only message is that the client has left.
        """
        if self.is_complete or self.received_bytes > self.max_bytes:
            return await self._wait_for_end()
        try:
            message = await self._receive_part()
        except TimeoutError:
            raise HTTPException(408, _SLOW_BODY_TEXT, {"Connection": "close"}) from None
        if self.received_bytes <= self.max_bytes:
            return message
        # too large: read further for a while, so that the client reads the response
        with contextlib.suppress(TimeoutError):
            while not self.is_complete and self.received_bytes < self.max_bytes + _EXTRA_BYTES:
                await self._receive_part()
        kibibytes = self.max_bytes // 1024
        raise HTTPException(413, f"The body is larger than {kibibytes} KiB. Send less in one request.")

    async def _receive_part(self) -> Message:
        """Return the next part, and count it. Raises TimeoutError if it does not arrive before ``due_at``.

        If too many bodies are awaited, the wait for the body whose request began first is ended instead.
        """
        if len(self.waits) >= MAX_AWAITED_BODIES:
            oldest = min(self.waits, key=lambda body: body.begun_at)
            with contextlib.suppress(RuntimeError):  # its time is over already
                self.waits.pop(oldest).reschedule(0)  # a time that has passed
        try:
            async with asyncio.timeout_at(self.due_at) as wait:
                self.waits[self] = wait
                message = await self.server_receive()
        finally:
            self.waits.pop(self, None)
        self.received_bytes += len(message.get("body", b""))
        self.is_complete = not message.get("more_body")
        return message

    async def _wait_for_end(self) -> Message:
        """Wait until the client has left, drop what arrives until then, and return the message about it."""
        while (message := await self.server_receive())["type"] == "http.request":
            pass
        return message


_Waits = dict[_Body, asyncio.Timeout]
"""The bodies of which a part is awaited now, and the timeout of each wait."""


def max_run_bytes(max_file_bytes: int) -> int:
    """Return the most bytes of an AG-UI run: a thread's history, and files in base64."""
    return 16 * MAX_BODY_BYTES + max_file_bytes * 4 // 3


def _is_form(scope: Scope) -> bool:
    kinds = (value for name, value in scope["headers"] if name == b"content-type")
    return any(kind.lower().startswith(b"multipart/form-data") for kind in kinds)
