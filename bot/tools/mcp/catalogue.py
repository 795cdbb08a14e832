"""The catalogue of one MCP server: its list of tools, read again whenever the server reports a change.

A server reports a change as an event of a subscription (newest protocol) or by a notification (older ones).
Either makes the list stale, and `Catalogue.reread_when_stale` reads it again. `read_pages` reads any list of
a server, within limits; `describe_error` puts an error of the SDK into words.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import httpx2
from mcp import Client, MCPError, types
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from bot.domain.chat import Clock
from bot.domain.text import as_text
from bot.telemetry.logs import logger
from bot.tools.mcp.answers import NOT_MCP_TEXT
from bot.tools.mcp.config import ServerConfig
from bot.tools.response_bounds import MAX_MESSAGE_BYTES

log = logger(__name__)

Sleep = Callable[[float], Awaitable[None]]

LONGEST_PAUSE = 10.0  # seconds between two attempts to start a server, or to subscribe to its list
STABLE_AFTER = timedelta(minutes=1)  # what has lasted for this long ends the back-off of earlier failures
MAX_COUNTED_FAILURES = 10  # so that 2.0**failures stays small
MAX_PAGES = 100
_MAX_FRUITLESS_PAGES = 3  # after this many pages in a row without a new item, no more are read
_MAX_TOOLS = 500  # of one server
_MAX_ERROR_CHARS = 500  # a server's own error message
_CLOSED_ERROR = (types.CONNECTION_CLOSED, "Connection closed")


class Catalogue:
    """The list of a server's tools."""

    def __init__(self, config: ServerConfig, sleep: Sleep, clock: Clock) -> None:
        self.tool_list: tuple[types.Tool, ...] = ()
        """The list as read last. Only a different list replaces it, so ``is`` shows if it has changed."""
        self.fault = ""
        """The reason why the list was not read to its end; empty if it was."""
        self._config = config
        self._sleep = sleep
        self._clock = clock
        self._stale = asyncio.Event()  # set while the list may have changed since it was read
        self._read_lock = asyncio.Lock()

    async def read(self, client: Client) -> tuple[types.Tool, ...]:
        """Read and return the list, cut by the limits of `read_pages`. Raises MCPError.

        The list of a server without tools is empty.
        """
        async with self._read_lock:
            try:
                tools, fault = await read_pages(
                    lambda cursor: client.list_tools(cursor=cursor), "tools", _MAX_TOOLS
                )
            except MCPError as error:
                if error.code != types.METHOD_NOT_FOUND:
                    raise
                tools = []
                fault = ""  # a server without tools has no list
            if fault and fault != self.fault:
                name = self._config.name
                log.warning(
                    "an mcp server's list is not read to its end", server=name, why=fault, kept=len(tools)
                )
            self.fault = fault
            if tools != list(self.tool_list):
                self.tool_list = tuple(tools)
            return self.tool_list

    async def reread_when_stale(self, client: Client) -> None:
        """Read the list again whenever it is stale; runs as long as the client lives."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                await self.read(client)
            except Exception as error:  # noqa: BLE001 - a bad list is no reason to break off calls
                why = describe_error(self._config, error)
                log.warning("an mcp server gave no new list", server=self._config.name, why=why)

    async def subscribe(self, client: Client) -> None:
        """Subscribe to changes of the list, as the newest protocol asks; older ones need no subscription.

        A subscription that ends is made again after a pause. The pause is twice as long each time, up to
        `LONGEST_PAUSE`, until a subscription lasts for `STABLE_AFTER`.
        """
        failures = 0  # in a row
        while True:
            begun_at: datetime | None = None
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    begun_at = self._clock()
                    self._stale.set()  # it may have changed before
                    async for _ in changes:
                        self._stale.set()
            except (ListenNotSupportedError, MCPError):
                return  # it reports changes by notifications: see `take_notification`
            except (SubscriptionLost, TimeoutError):
                log.debug("an mcp server stopped telling of changes", server=self._config.name)
            if begun_at is not None and self._clock() - begun_at >= STABLE_AFTER:
                failures = 0
            await self._sleep(min(2.0**failures, LONGEST_PAUSE))
            failures = min(failures + 1, MAX_COUNTED_FAILURES)

    async def take_notification(self, message: Any) -> None:
        """Handle a notification of the server, by which older protocols report a change."""
        if isinstance(message, types.ToolListChangedNotification):
            self._stale.set()


class ListedItems(NamedTuple):
    """The items of a server's list."""

    items: list[Any]
    fault: str  # the reason why the list was not read to its end; empty if it was


async def read_pages(ask: Callable[[str | None], Awaitable[Any]], field: str, max_items: int) -> ListedItems:
    """Read a list that comes in pages.

    ``ask`` requests the page at a cursor, None for the first page. ``field`` is the page's attribute with the
    items. Of items with the same name or address the first is taken. The list ends with a page that names no
    next cursor. It is cut if a cursor comes a second time, if pages bring no new items, and after
    ``max_items``, `MAX_MESSAGE_BYTES` or `MAX_PAGES`.
    """
    items: dict[str, Any] = {}
    cursors: set[str] = set()
    cursor: str | None = None
    size = 0  # about the bytes of all pages
    fruitless_pages = 0  # in a row
    for _ in range(MAX_PAGES):
        page = await ask(cursor)
        count_before = len(items)
        for item in getattr(page, field):
            items.setdefault(_key_of(item), item)
        size += len(page.model_dump_json())
        if len(items) > max_items:
            break
        cursor = page.next_cursor or None
        if cursor is None:
            return ListedItems(list(items.values()), "")
        if cursor in cursors:
            fault = "its list does not end: it names the same page again"
            return ListedItems(list(items.values()), fault)
        cursors.add(cursor)
        fruitless_pages = 0 if len(items) > count_before else fruitless_pages + 1
        if fruitless_pages >= _MAX_FRUITLESS_PAGES:
            fault = f"its list does not end: {fruitless_pages} pages brought nothing new"
            return ListedItems(list(items.values()), fault)
        if len(items) == max_items or size >= MAX_MESSAGE_BYTES:
            break
    first_items = list(items.values())[:max_items]
    fault = f"its list is longer than Nod reads; the first {len(first_items)} are taken"
    return ListedItems(first_items, fault)


def _key_of(item: Any) -> str:
    """Return the address of a resource, the address template of a template, the name of any other item."""
    return str(getattr(item, "uri", None) or getattr(item, "uri_template", item.name))


def find_first_error(error: BaseException) -> BaseException:
    """Return the first error of a group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def is_connection_closed(error: BaseException) -> bool:
    """Return whether the SDK reports a closed connection. A server's own error may have the same code."""
    return isinstance(error, MCPError) and (error.code, error.message) == _CLOSED_ERROR


def describe_error(config: ServerConfig, error: BaseException) -> str:
    """Describe an error, or the first error of a group, without the server's secrets."""
    error = find_first_error(error)
    if isinstance(error, FileNotFoundError):
        return f"there is no program or file {error.filename!r}"
    if isinstance(error, httpx2.TransportError):
        return "it can't be reached"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if is_connection_closed(error):
        return "it ended"
    if isinstance(error, MCPError):
        message = f"{error.message}: {as_text(error.data)}" if error.data else error.message
        line = " ".join(message[: 2 * _MAX_ERROR_CHARS].split())
        return config.scrub(line)[:_MAX_ERROR_CHARS]
    if isinstance(error, ValueError | RuntimeError):  # the SDK raises these for a malformed answer
        return NOT_MCP_TEXT
    return f"it failed with {type(error).__name__}"
