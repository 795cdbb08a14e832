"""The catalogue of one MCP server: its list of tools, read again whenever the server says that it changed."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from mcp import Client, MCPError, types
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from bot.domain.text import as_text
from bot.telemetry.logs import logger
from bot.tools.intake import MOST_BYTES
from bot.tools.mcp.answers import NO_MCP
from bot.tools.mcp.config import ServerConfig

log = logger(__name__)

Sleep = Callable[[float], Awaitable[None]]

LONGEST_PAUSE = 10.0  # seconds; with a slow start, a server that is back is seen within 30
MOST_PAGES = 100
_MOST_FRUITLESS = 3  # pages in a row that bring nothing new
_MOST_TOOLS = 500
_MOST_WORDS = 500  # characters of a server's own error message
_CLOSED = (types.CONNECTION_CLOSED, "Connection closed")


class Catalogue:
    """The list of a server's tools. ``known`` is the last one; equal lists are one tuple.

    The client is passed in by its owner.
    """

    def __init__(self, config: ServerConfig, sleep: Sleep) -> None:
        self.known: tuple[types.Tool, ...] = ()
        self.fault = ""
        """Why the list is not read to its end."""
        self._config = config
        self._sleep = sleep
        self._stale = asyncio.Event()
        self._reading = asyncio.Lock()

    async def read(self, client: Client) -> tuple[types.Tool, ...]:
        """Ask for the whole list; none where the server has no tools at all. Raises MCPError."""
        async with self._reading:
            try:
                found, fault = await read_pages(
                    lambda cursor: client.list_tools(cursor=cursor), "tools", _MOST_TOOLS
                )
            except MCPError as error:
                if error.code != types.METHOD_NOT_FOUND:
                    raise
                found, fault = [], ""
            if fault and fault != self.fault:
                name = self._config.name
                log.warning(
                    "an mcp server's list is not read to its end", server=name, why=fault, kept=len(found)
                )
            self.fault = fault
            if found != list(self.known):
                self.known = tuple(found)
            return self.known

    async def keep_up(self, client: Client) -> None:
        """Read the list whenever the server said that it changed; runs as long as the client lives."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                await self.read(client)
            except Exception as error:  # noqa: BLE001 - a bad list is no reason to break off calls under way
                why = tell_cause(self._config, error)
                log.warning("an mcp server gave no new list", server=self._config.name, why=why)

    async def subscribe(self, client: Client) -> None:
        """Ask to be told of changes; a server of an older protocol tells without being asked."""
        for failures in itertools.count():
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    self._stale.set()  # whatever changed before someone listened
                    async for _ in changes:
                        self._stale.set()
            except (ListenNotSupportedError, MCPError):
                return
            except (SubscriptionLost, TimeoutError):
                log.debug("an mcp server stopped telling of changes", server=self._config.name)
            await self._sleep(min(2.0**failures, LONGEST_PAUSE))

    async def take_notification(self, message: Any) -> None:
        """Take in what the server says unasked."""
        if isinstance(message, types.ToolListChangedNotification):
            self._stale.set()


async def read_pages(
    ask: Callable[[str | None], Awaitable[Any]], field: str, most: int
) -> tuple[list[Any], str]:
    """Return a list of several pages, each thing of a name (or address) once.

    And why it is cut, or an empty text. A list ends where no cursor comes, or an empty one. It is read no
    further where a cursor comes again, where pages bring nothing new, and at the bounds; a page has those of
    any message (``bot/tools/intake.py``).
    """
    found: dict[str, Any] = {}
    cursors: set[str | None] = {None}
    cursor, size, fruitless = None, 0, 0
    for _ in range(MOST_PAGES):
        page = await ask(cursor)
        before = len(found)
        for each in getattr(page, field):
            found.setdefault(
                str(getattr(each, "uri", None) or getattr(each, "uri_template", each.name)), each
            )
        size += len(page.model_dump_json())
        cursor = page.next_cursor or None
        if cursor is None and len(found) <= most:
            return list(found.values()), ""
        if cursor in cursors and len(found) <= most:
            return list(found.values()), "its list does not end: it names the same page again"
        cursors.add(cursor)
        fruitless = fruitless + 1 if len(found) == before else 0
        if fruitless >= _MOST_FRUITLESS:
            return list(found.values()), f"its list does not end: {fruitless} pages brought nothing new"
        if len(found) >= most or size >= MOST_BYTES:
            break
    kept = list(found.values())[:most]
    return kept, f"its list is longer than Nod reads; the first {len(kept)} are taken"


def cause(error: BaseException) -> BaseException:
    """Return the first error of a group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def is_line_closed(error: BaseException) -> bool:
    """Return whether the SDK itself says that no answer will come; a server's errors may have its code."""
    return isinstance(error, MCPError) and (error.code, error.message) == _CLOSED


def tell_cause(config: ServerConfig, error: BaseException) -> str:
    """Describe an error in words without the server's secrets; of a group the first cause."""
    error = cause(error)
    if isinstance(error, FileNotFoundError):
        return f"there is no program or file {error.filename!r}"
    if isinstance(error, httpx2.TransportError):
        return "it can't be reached"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if is_line_closed(error):
        return "it ended"
    if isinstance(error, MCPError):
        more = f": {as_text(error.data)}" if error.data else ""
        return config.scrub(" ".join(f"{error.message}{more}"[: 2 * _MOST_WORDS].split()))[:_MOST_WORDS]
    if isinstance(error, ValueError | RuntimeError):  # the SDK's, for any answer out of form
        return NO_MCP
    return f"it failed with {type(error).__name__}"
