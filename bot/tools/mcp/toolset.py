"""The tools of all configured MCP servers. A turn takes what is known; it never waits for a dead server."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from mcp import types

from bot.domain.chat import Clock
from bot.domain.connections import Identity, TokenSource
from bot.store.database import Database
from bot.telemetry.logs import logger
from bot.tools.connected import hide_secrets
from bot.tools.mcp.base import Ask, Servers, ServerStatus, decline
from bot.tools.mcp.catalogue import Sleep
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.connected import MAX_SESSIONS, ConnectedServer, ConnectedServers
from bot.tools.mcp.login import Logins
from bot.tools.mcp.reading import ReadingTools
from bot.tools.mcp.schemas import TooSlow
from bot.tools.mcp.server import Server
from bot.tools.mcp.signin import Keys
from bot.tools.mcp.tools import adopt, names_of
from bot.tools.tool import CallContext, Tool

log = logger(__name__)

_FIRST_WAIT_SECONDS = 5.0  # that a turn waits for a server, and for its list; what is slower comes later
_RUN_WAIT_SECONDS = 20.0  # that what was approved waits for a session
_MOST_SLOW = 3  # tools of one server whose schemas may take too long, before the rest is not tried


@dataclass(slots=True)
class _Adopted:
    """The tools adopted from a server's list so far, by the server's own names for them.

    Tools of the list before stay until ``work`` has looked at each.
    """

    known: tuple[types.Tool, ...]
    tools: dict[str, Tool]
    patience: float  # until then, in the loop's time, those who ask wait for it
    work: asyncio.Task[None] | None = None
    wanted: bool = True  # not when there is a newer list, or Nod stops


class McpToolset(Servers):
    """All configured servers. `start` starts them, or the first asking for tools; `stop` ends them.

    ``database`` has who is signed in where; without it no one is. ``first_wait`` is how many seconds after
    the start the first asking may wait for a server to come up, ``patience`` how long a person has to answer
    a server's question, ``taken`` the names that other tools have: a server that brings one of them is not
    listened to, for two tools of one name would stop every turn. ``most``: how many connections have a
    session at the same time.
    """

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        *,
        clock: Clock,
        database: Database | None = None,
        ask: Ask = decline,
        patience: float = 10.0,
        taken: Callable[[], Collection[str]] = tuple,
        sleep: Sleep = asyncio.sleep,
        first_wait: float = _FIRST_WAIT_SECONDS,
        most: int = MAX_SESSIONS,
    ) -> None:
        self.servers = tuple(
            Server(
                config,
                ask,
                clock=clock,
                patience=patience,
                keys=Keys(config.name, config.launch, database, clock, sleep)
                if database is not None and isinstance(config.launch, Http) and config.launch.signs_in
                else None,
                sleep=sleep,
            )
            for config in configs
            if config.identity is Identity.NOD
        )
        self._patience = patience
        self._taken = taken
        self._first_wait = first_wait
        self._waits_until: float | None = None  # in the loop's time
        self._adopted: dict[Server, _Adopted] = {}
        self._reading: dict[Server, ReadingTools] = {}
        personal = [config for config in configs if config.identity is not Identity.NOD]
        self.connected: ConnectedServers | None = None
        """The sessions at servers whose calls are made in someone's name."""
        if personal and database is not None:

            def make(config: ServerConfig, keys: TokenSource, ask: Ask) -> Server:
                return Server(config, ask, clock=clock, patience=patience, keys=keys, sleep=sleep)

            self.connected = ConnectedServers(
                personal, database, make, self._forget, ask=ask, clock=clock, sleep=sleep, most=most
            )
        self._twins: set[tuple[str, str]] = set()

    def start(self) -> None:
        """Begin to start every server; they come up by and by."""
        if self._waits_until is None:
            self._waits_until = asyncio.get_running_loop().time() + self._first_wait
        for server in self.servers:
            server.start()

    async def settle(self, seconds: float) -> None:
        """Start every server and wait until each is up or has failed, so long at most."""
        self.start()
        await self._wait(asyncio.get_running_loop().time() + seconds)

    async def tools(self, context: CallContext | None = None) -> Sequence[Tool]:
        """Return the tools that the servers offered last, without denied ones.

        Of servers whose calls are made in someone's name, those of the person or the chat that ``context``
        is about.
        """
        self.start()
        await self._wait(self._waits_until or 0.0)
        found: dict[str, Tool] = {}
        taken = frozenset(self._taken())
        for server in self.servers:
            for tool in await self._tools_of(server):
                if tool.name in taken or tool.name in found:
                    self._warn_of_twins(tool.name, server)
                else:
                    found[tool.name] = tool
        if self.connected is not None:
            for connected in await self._find_connected(self.connected, context):
                for tool in await self._tools_of(connected.server):
                    if tool.name in taken or tool.name in found:
                        self._warn_of_twins(tool.name, connected.server)
                    else:
                        found[tool.name] = _bind(tool, connected)
        return tuple(found.values())

    async def _find_connected(
        self, connected: ConnectedServers, context: CallContext | None
    ) -> Sequence[ConnectedServer]:
        """Return the sessions for whom a call is made, those that just began after a short wait."""
        found = await connected.find(context)
        proposed = context is not None and context.connected_as
        seconds = _RUN_WAIT_SECONDS if proposed else self._first_wait
        late = [each.server for each in found if not each.server.tried.is_set()]
        if late:
            waits = [asyncio.create_task(server.tried.wait()) for server in late]
            _, pending = await asyncio.wait(waits, timeout=seconds)
            for task in pending:
                task.cancel()
        return found

    def _forget(self, server: Server) -> None:
        """Forget the tools of a session that ends."""
        adopted = self._adopted.pop(server, None)
        if adopted:
            adopted.wanted = False
        self._reading.pop(server, None)

    async def status(self) -> list[ServerStatus]:
        found = [await server.status() for server in self.servers]
        return [*found, *(self.connected.list_status() if self.connected else ())]

    def sign_ins(self, database: Database, clock: Clock, back: Callable[[], str]) -> Logins:
        return Logins(self.servers, database, clock, back)

    async def stop(self) -> None:
        """End every server; afterwards none is started again."""
        for adopted in self._adopted.values():
            adopted.wanted = False
        await asyncio.gather(*(server.stop() for server in self.servers))
        if self.connected is not None:
            await self.connected.stop()

    async def _wait(self, until: float) -> None:
        """Wait until each server was tried, or until then in the loop's time."""
        late = [server for server in self.servers if not server.tried.is_set()]
        if not late or asyncio.get_running_loop().time() >= until:
            return
        try:
            async with asyncio.timeout_at(until):
                for server in late:
                    await server.tried.wait()
        except TimeoutError:
            names = [server.config.name for server in late if not server.tried.is_set()]
            log.warning("mcp servers are slow to start", servers=names)

    def _warn_of_twins(self, tool_name: str, server: Server) -> None:
        """Log two tools of one name, once for each, not in every turn."""
        if (tool_name, server.config.name) not in self._twins:
            self._twins.add((tool_name, server.config.name))
            log.warning(
                "two tools have one name; change a prefix", tool=tool_name, left_out=server.config.name
            )
        server.left_out[tool_name] = "another tool has this name; change the prefix"

    async def _tools_of(self, server: Server) -> tuple[Tool, ...]:
        """Return the tools of a server that are adopted by now.

        The server's schemas are checked in a thread, and a turn does not wait long for it.
        """
        known = server.known
        adopted = self._adopted.get(server)
        if adopted is None or adopted.known is not known:
            offered = {theirs.name for theirs in known}
            before = adopted.tools if adopted else {}
            if adopted:
                adopted.wanted = False
            patience = asyncio.get_running_loop().time() + self._first_wait
            kept = {name: tool for name, tool in before.items() if name in offered}
            server.left_out = {}
            adopted = _Adopted(known, kept, patience)
            adopted.work = asyncio.create_task(asyncio.to_thread(_adopt, server, adopted, self._patience))
            self._adopted[server] = adopted
        if adopted.work is not None and not adopted.work.done():
            left = adopted.patience - asyncio.get_running_loop().time()
            await asyncio.wait({adopted.work}, timeout=max(0.0, left))
        tools = dict(adopted.tools)  # the thread may add to them
        found = tuple(tools[theirs.name] for theirs in known if theirs.name in tools)
        names = {tool.name for tool in found}
        return (
            *found,
            *(each for each in self._list_reading_tools(server) if each.name not in names),
        )

    def _list_reading_tools(self, server: Server) -> Sequence[Tool]:
        """Return the tools that read what a server has besides tools."""
        if server not in self._reading:
            self._reading[server] = ReadingTools(server, self._patience)
        return self._reading[server].tools()


def _bind(tool: Tool, connected: ConnectedServer) -> Tool:
    """Return the tool of a session as it runs in that name."""
    run = tool.run and hide_secrets(tool.run, connected.secrets)
    return replace(tool, connection=connected.connection, run=run)


def _adopt(server: Server, adopted: _Adopted, patience: float) -> None:
    """Adopt all tools that can be offered, small schemas first. The others are left out and logged."""
    slow = 0
    offered = [theirs.name for theirs in adopted.known if server.config.offers(theirs.name)]
    names = names_of(server.config, offered)
    for theirs in sorted(adopted.known, key=lambda theirs: len(str(theirs.input_schema))):
        if not adopted.wanted:
            return
        if not server.config.offers(theirs.name):
            continue
        try:
            if slow >= _MOST_SLOW:
                raise ValueError("too many schemas of this server take too long to check")
            adopted.tools[theirs.name] = adopt(server, theirs, patience, names[theirs.name])
        except Exception as error:  # noqa: BLE001 - a stranger's list; the rest of it is still offered
            adopted.tools.pop(theirs.name, None)
            slow += isinstance(error, TooSlow)
            why = server.config.scrub(str(error))
            server.left_out[theirs.name] = why
            log.warning("an mcp tool is left out", server=server.config.name, tool=theirs.name, why=why)
