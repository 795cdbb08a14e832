"""The request of a run: its body is read within bounds, and parsed outside the event loop.

A body that is too large still begins with the thread and the run. Its run says so and gives the front end a
thread that fits, since all later requests would be as large.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.domain.attachments import format_size
from bot.web.ag_ui.given import SentMessages, WrittenMessage, read_messages
from bot.web.limits import max_run_bytes
from bot.web.site import Site

_SMALL_BYTES = 1024 * 1024
_MAX_VALUES = 2_000_000
"""Of one call of the JSON parser, during which no other thread runs."""
_BEGINNING_BYTES = 64 * 1024
_TOO_LARGE_TEXT = (
    "I did not read your last message: this thread was larger than {}. "
    "What is kept of it is shown now. Write your message again."
)
_CUT_TEXT = "The body is too large. Send less in one request."
_NAME = re.compile(r'\s*[{,]\s*"(\w+)"\s*:\s*')
_IDS = frozenset({"threadId", "runId", "parentRunId", "thread_id", "run_id", "parent_run_id"})
_READ = _IDS | {"messages", "resume"}


class RunBodies:
    """ASGI: reads the body of a run, and hands on what is left without its messages.

    ``request.state.sent`` are those, a `SentMessages`. A body that is not JSON is handed on as it is.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        site: Site = request.app.state.site
        await site.doorkeeper(request)  # of a stranger's body nothing is kept
        request.state.sent = SentMessages()
        async with AsyncExitStack() as stack:
            raw, is_cut = await _read(request, partial(stack.enter_async_context, site.large_bodies))
            body = bytes(raw)
            if "json" in request.headers.get("content-type", "application/json"):
                files = site.files.message
                body, request.state.sent = await asyncio.to_thread(parse_run, body, files, is_cut=is_cut)
            elif is_cut:
                raise HTTPException(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large. Send less in one request."
                )
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            if parts:
                return parts.pop()
            return await receive()

        await self._app(scope, replayed, send)


async def _read(request: Request, wait: Callable[[], Awaitable[None]]) -> tuple[bytearray, bool]:
    """Read a body. Returns it and True if there is more; a large one calls ``wait``."""
    raw = bytearray()
    is_large = False
    try:
        async for part in request.stream():
            raw += part
            if len(raw) > _SMALL_BYTES and not is_large:
                is_large = True
                await wait()
    except HTTPException as error:
        if error.status_code != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise
        return raw[:_BEGINNING_BYTES], True
    return raw, False


def parse_run(raw: bytes, files: int, *, is_cut: bool = False) -> tuple[bytes, SentMessages]:
    """Return the JSON of a run without messages, and those; ``files``: bytes that a message may bring.

    A body that was cut, or that no parser takes, has one message, which tells so. Raises HTTPException where
    the thread and the run can't be found in it.
    """
    most = max_run_bytes(files)
    if is_cut or sum(map(raw.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        return _read_beginning(raw, most)
    try:
        run = json.loads(raw)
        if not isinstance(run, dict):
            return b"null", SentMessages()
        rest = {name: run[name] for name in _READ & run.keys()}
        sent = SentMessages()
        if isinstance(run.get("messages"), list):
            rest["messages"] = []
            sent = read_messages(run["messages"], is_heavy=len(raw) > most // 2)
        return json.dumps(rest).encode(), sent
    except (json.JSONDecodeError, UnicodeDecodeError):
        return raw, SentMessages()
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        return _read_beginning(raw, most)


def _read_beginning(raw: bytes, most: int) -> tuple[bytes, SentMessages]:
    text = raw[:_BEGINNING_BYTES].decode(errors="ignore")
    decoder = json.JSONDecoder()
    found: dict[str, Any] = {}
    at = 0
    while name := _NAME.match(text, at):
        try:
            found[name[1]], at = decoder.raw_decode(text, name.end())
        except (RecursionError, ValueError):
            break
    ids = {name: found[name] for name in _IDS & found.keys()}
    words = _TOO_LARGE_TEXT.format(format_size(most))
    if len(ids) < 2:  # noqa: PLR2004 - a thread and a run
        raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, words)
    unread = SentMessages(written=[WrittenMessage("", problem=words)], is_heavy=True)
    return json.dumps({**ids, "messages": []}).encode(), unread
