"""Notifications to MCP clients that the tools of their token have changed.

How a client is notified depends on its revision of MCP. In revision 2026-07-28 the client opens a stream for
notifications (``subscriptions/listen``). A client of an older revision is notified on stdio without asking.
Over HTTP there is no way to notify it, so Nod does not announce notifications there. While a client listens,
a task lists the tools from time to time with the client's own token, and compares. So no client is notified
of a change of another token's tools.

Only the tools of an *agent's* token can change. Such a token belongs to a program that calls the team's tools
for one person; any other token always has the same few tools of Nod itself.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, SubscriptionsListenRequestParams
from pydantic import ValidationError

from bot.domain.digests import to_canonical_json
from bot.domain.text import hash_text
from bot.features.mcp import calls
from bot.features.mcp.calls import ApiFailure, Connect
from bot.features.mcp.tasks import get_headers

TOOLS_POLL_SECONDS = 10.0
"""The time between two lists of a token's tools while a client listens."""
MAX_STREAMS = 100  # the most open streams of all tokens
MAX_STREAMS_OF_TOKEN = 8  # the most open streams of one token
_TOKEN_ENDED_STATUSES = (401, 403)  # of Nod's HTTP interface, for a token that no longer works

Context = ServerRequestContext[Any, Any]
Headers = Mapping[str, str] | None


class _ToolsSnapshot(NamedTuple):
    """The tools of a token at one moment."""

    fingerprint: str  # the hash of the tools, by which two moments are compared
    has_token_ended: bool = False  # True: the token has no tools any longer, and never will


class ToolListeners:
    """Middleware that serves ``subscriptions/listen``, and notifies clients of older revisions on stdio.

    ``look_seconds``: the time between two lists of a token's tools while a client listens.
    """

    def __init__(self, connect: Connect, look_seconds: float) -> None:
        self._connect, self._look_seconds = connect, look_seconds
        self._streams: Counter[str] = Counter()  # the number of open streams by token
        self._watches: set[asyncio.Task[None]] = set()

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Serve a stream; give any other message to the SDK, and watch a session that it opens on stdio."""
        if ctx.method == "subscriptions/listen" and ctx.request_id is not None:
            return await self._listen(ctx)
        result = await call_next(ctx)
        # a client of an older revision opens its session by both messages, in this order: the answer to the
        # first announces notifications, and after the second a task begins to send them
        is_session_start = ctx.method in ("initialize", "notifications/initialized")
        is_on_stdio = get_headers(ctx) is None
        if not (is_session_start and is_on_stdio and await self._is_agent(None)):
            return result
        if ctx.method == "initialize" and isinstance(result, dict):
            return _announce_list_changed(result)
        self._begin_watch(None, await self._list_tools(None), ctx.session.send_tool_list_changed)
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

        async def notify() -> None:
            await bus.publish(ToolsListChanged())

        with self._hold_stream((headers or {}).get("authorization", "")):
            if not await self._is_agent(headers):  # the tools can't change, so the stream stays silent
                return await handler(ctx, params)
            watch = self._begin_watch(headers, await self._list_tools(headers), notify)
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
        self, headers: Headers, last_snapshot: _ToolsSnapshot | None, notify: Callable[[], Awaitable[None]]
    ) -> "asyncio.Task[None]":
        """Start a task that runs `_watch`, which calls ``notify`` at each change of the tools."""
        task = asyncio.create_task(self._watch(headers, last_snapshot, notify))
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)
        return task

    async def _watch(
        self, headers: Headers, last_snapshot: _ToolsSnapshot | None, notify: Callable[[], Awaitable[None]]
    ) -> None:
        """Call ``notify`` at each change of the tools since ``last_snapshot``, until the token ends.

        ``last_snapshot``: None if Nod could not list the tools. Then the client is notified as soon as Nod
        can list them, since they may have changed.
        """
        while last_snapshot is None or not last_snapshot.has_token_ended:
            await asyncio.sleep(self._look_seconds)
            current = await self._list_tools(headers)
            if current is not None and current != last_snapshot:
                last_snapshot = current
                await notify()

    async def _list_tools(self, headers: Headers) -> _ToolsSnapshot | None:
        """Return the tools of a token now; None if Nod can't list them."""
        async with self._connect(headers) as client:
            try:
                return _ToolsSnapshot(hash_text(to_canonical_json(await calls.list_tools(client))))
            except ApiFailure as error:
                if error.status in _TOKEN_ENDED_STATUSES:
                    return _ToolsSnapshot("", has_token_ended=True)
                return None


def _announce_list_changed(initialized: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to ``initialize``, which announces that Nod notifies the client of changed tools."""
    capabilities = initialized.get("capabilities", {})
    tools = {**capabilities.get("tools", {}), "listChanged": True}
    return {**initialized, "capabilities": {**capabilities, "tools": tools}}
