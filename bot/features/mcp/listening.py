"""Notifications about changes of a token's tools, for clients that listen.

In revision 2026-07-28 a client opens a stream for them (``subscriptions/listen``). In an older revision it is
notified on stdio unasked. Over HTTP there is no way to notify it, so nothing is promised there. The tools are
listed from time to time with the client's own token, so that no change of another token's tools is announced.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, SubscriptionsListenRequestParams
from pydantic import ValidationError

from bot.domain.proposals import canonical
from bot.domain.text import hash_text
from bot.features.mcp import calls
from bot.features.mcp.calls import Connect, Unreachable
from bot.features.mcp.tasks import get_headers

LOOK_SECONDS = 10.0
MAX_STREAMS, MAX_STREAMS_OF_TOKEN = 100, 8
_ENDED = "ended"
_REFUSED = (401, 403)

Context = ServerRequestContext[Any, Any]
Headers = Mapping[str, str] | None


class ToolListeners:
    """Middleware that serves ``subscriptions/listen``, and tells clients of older revisions on stdio.

    ``look_seconds``: the time between two lists of a token's tools while a client listens.
    """

    def __init__(self, connect: Connect, look_seconds: float) -> None:
        self._connect, self._look_seconds = connect, look_seconds
        self._streams: Counter[str] = Counter()  # the number of open streams by token
        self._watches: set[asyncio.Task[None]] = set()

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.method == "subscriptions/listen" and ctx.request_id is not None:
            return await self._listen(ctx)
        result = await call_next(ctx)
        is_beginning = ctx.method in ("initialize", "notifications/initialized")
        if not is_beginning or get_headers(ctx) is not None or not await self._is_agent(None):
            return result
        if ctx.method == "initialize" and isinstance(result, dict):
            return _promise_changes(result)
        self._begin_watch(None, await self._look(None), ctx.session.send_tool_list_changed)
        return result

    async def _is_agent(self, headers: Headers) -> bool:
        async with self._connect(headers) as client:
            return calls.is_agent(client)

    async def _listen(self, ctx: Context) -> HandlerResult:
        """Serve one stream, until its client leaves or its token ends. Raises MCPError."""
        try:
            params = SubscriptionsListenRequestParams.model_validate(ctx.params or {}, by_name=False)
        except ValidationError:
            raise MCPError(code=INVALID_PARAMS, message="Say what to listen for: notifications.") from None
        headers = get_headers(ctx)
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus, max_subscriptions=1)

        async def tell() -> None:
            await bus.publish(ToolsListChanged())

        with self._hold_stream((headers or {}).get("authorization", "")):
            if not await self._is_agent(headers):  # its tools are always the same
                return await handler(ctx, params)
            watch = self._begin_watch(headers, await self._look(headers), tell)
            watch.add_done_callback(lambda _: handler.close())
            try:
                return await handler(ctx, params)
            finally:
                watch.cancel()

    @contextmanager
    def _hold_stream(self, token: str) -> Iterator[None]:
        """Count a stream while it is open. Raises MCPError if there are too many."""
        if self._streams[token] >= MAX_STREAMS_OF_TOKEN or self._streams.total() >= MAX_STREAMS:
            raise MCPError(code=INTERNAL_ERROR, message="Too many clients listen here. Close a stream first.")
        self._streams[token] += 1
        try:
            yield
        finally:
            self._streams[token] -= 1
            if not self._streams[token]:
                del self._streams[token]

    def _begin_watch(
        self, headers: Headers, known: str | None, tell: Callable[[], Awaitable[None]]
    ) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._watch(headers, known, tell))
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)
        return task

    async def _watch(self, headers: Headers, known: str | None, tell: Callable[[], Awaitable[None]]) -> None:
        """Call ``tell`` at each change of the tools, until the token ends."""
        while known != _ENDED:
            await asyncio.sleep(self._look_seconds)
            found = await self._look(headers)
            if found is not None and found != known:
                known = found
                await tell()

    async def _look(self, headers: Headers) -> str | None:
        """Return a fingerprint of a token's tools; None if Nod can't list them now."""
        async with self._connect(headers) as client:
            try:
                return hash_text(canonical(await calls.list_tools(client)))
            except Unreachable as error:
                return _ENDED if error.status in _REFUSED else None


def _promise_changes(initialized: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to ``initialize`` that promises to tell of changed tools."""
    capabilities = initialized.get("capabilities", {})
    tools = {**capabilities.get("tools", {}), "listChanged": True}
    return {**initialized, "capabilities": {**capabilities, "tools": tools}}
