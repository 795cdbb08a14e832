"""The request of a run: its body is read within bounds, and parsed outside the event loop.

A front end sends all messages of its thread with each run, so the body may be megabytes. The middleware
`RunBodies` reads it, takes the messages out (`SentMessages`) and hands the rest on to the route. A front end
whose thread has grown too large would send a body that is too large again and again. So such a request is no
error: it becomes a run with one message, whose problem says that the thread was not read. The answer gives
the front end a thread that fits. The ids of the thread and the run are read from the body's beginning.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.domain.attachments import format_size
from bot.web.ag_ui.run_input import SentMessages, WrittenMessage, read_messages
from bot.web.limits import max_run_bytes
from bot.web.site import Site

_SMALL_BYTES = 1024 * 1024  # a larger body waits until few others are in memory (``Site.large_bodies``)
_MAX_VALUES = 2_000_000
"""The most values of a body that is parsed: while the JSON parser works, no other thread of Nod runs."""
_BEGINNING_BYTES = 64 * 1024  # the beginning of a body in which the ids are searched
_HEAVY_SHARE = 0.5  # a body that is a larger share of the limit is heavy (`SentMessages.is_heavy`)
_RUN_TOO_LARGE_TEXT = (
    "I did not read your last message: this thread was larger than {}. "
    "What is kept of it is shown now. Write your message again."
)
_NO_RUN_TOO_LARGE_TEXT = "The body is too large. Send less in one request."  # a body that is not JSON
_FIELD_NAME = re.compile(r'\s*[{,]\s*"(\w+)"\s*:\s*')
"""The name of the next field in a JSON object, such as ``, "runId": ``."""
_THREAD_NAMES = frozenset({"threadId", "thread_id"})
_RUN_NAMES = frozenset({"runId", "run_id"})
_ID_NAMES = _THREAD_NAMES | _RUN_NAMES | {"parentRunId", "parent_run_id"}
_READ_NAMES = _ID_NAMES | {"messages", "resume"}  # other fields of a run are not read


class RunBodies:
    """ASGI middleware that reads the body of a run, and hands it on without its messages.

    The messages are in ``request.state.sent``, a `SentMessages`. A body that is not JSON is handed on
    unchanged, and answered with an error by the route.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        site: Site = request.app.state.site
        # refuse an unknown caller before any of the body is kept in memory
        await site.authenticate(request)
        request.state.sent = SentMessages()
        async with AsyncExitStack() as stack:

            async def wait_for_room() -> None:
                await stack.enter_async_context(site.large_bodies)

            body, is_cut = await _read_body(request, wait_for_room)
            if "json" in request.headers.get("content-type", "application/json"):
                max_file_bytes = site.file_bounds.max_message_bytes
                body, request.state.sent = await asyncio.to_thread(
                    parse_run, body, max_file_bytes, is_cut=is_cut
                )
            elif is_cut:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _NO_RUN_TOO_LARGE_TEXT)
        unsent: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay_body() -> Message:
            if unsent:
                return unsent.pop()
            return await receive()

        await self._app(scope, replay_body, send)


async def _read_body(request: Request, wait_for_room: Callable[[], Awaitable[None]]) -> tuple[bytes, bool]:
    """Return the body and False; or, of a body over the limit, its beginning and True.

    Once the body is large, it waits for room before it reads further.
    """
    body = bytearray()
    is_large = False
    try:
        async for part in request.stream():
            body += part
            if len(body) > _SMALL_BYTES and not is_large:
                is_large = True
                await wait_for_room()
    except HTTPException as error:
        if error.status_code != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise
        return bytes(body[:_BEGINNING_BYTES]), True
    return bytes(body), False


def parse_run(body: bytes, max_file_bytes: int, *, is_cut: bool = False) -> tuple[bytes, SentMessages]:
    """Return the JSON of a run without its messages, and the messages.

    ``max_file_bytes``: the most bytes of files that a message may bring. A body that was cut, or that is too
    much for the parser, gives one message, whose problem says so. Raises HTTPException if the ids of
    its thread and run can't be found.
    """
    max_bytes = max_run_bytes(max_file_bytes)
    # each value but the first follows one of these characters
    value_count = body.count(b",") + body.count(b"[") + body.count(b"{")
    if is_cut or value_count > _MAX_VALUES:
        return _read_beginning(body, max_bytes)
    try:
        run = json.loads(body)
        if not isinstance(run, dict):
            return b"null", SentMessages()  # the route refuses it
        rest = {name: run[name] for name in _READ_NAMES & run.keys()}
        sent = SentMessages()
        if isinstance(run.get("messages"), list):
            rest["messages"] = []
            sent = read_messages(run["messages"], is_heavy=len(body) > max_bytes * _HEAVY_SHARE)
        return json.dumps(rest).encode(), sent
    except (json.JSONDecodeError, UnicodeDecodeError):
        return body, SentMessages()
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        return _read_beginning(body, max_bytes)


def _read_beginning(body: bytes, max_bytes: int) -> tuple[bytes, SentMessages]:
    """Return the ids of a run whose body is too large, as JSON, and one message whose problem says so."""
    text = body[:_BEGINNING_BYTES].decode(errors="ignore")
    decoder = json.JSONDecoder()
    values: dict[str, Any] = {}  # the complete values, up to the first that does not end within the text
    position = 0
    while name := _FIELD_NAME.match(text, position):
        try:
            values[name[1]], position = decoder.raw_decode(text, name.end())
        except (RecursionError, ValueError):
            break
    ids = {name: values[name] for name in _ID_NAMES & values.keys()}
    problem = _RUN_TOO_LARGE_TEXT.format(format_size(max_bytes))
    if not (ids.keys() & _THREAD_NAMES and ids.keys() & _RUN_NAMES):
        raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem)
    sent = SentMessages(written=[WrittenMessage("", problem=problem)], is_heavy=True)
    return json.dumps({**ids, "messages": []}).encode(), sent
