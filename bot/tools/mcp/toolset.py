"""The tools of all configured MCP servers. A turn takes what is known; it never waits for a dead server."""

import asyncio
from collections.abc import Callable, Collection, Sequence

from mcp import types

from bot.domain.chat import Clock
from bot.telemetry import logger
from bot.tools.mcp.catalogue import Sleep
from bot.tools.mcp.config import ServerConfig
from bot.tools.mcp.questions import Ask, decline
from bot.tools.mcp.server import Server
from bot.tools.mcp.tools import adopt
from bot.tools.tool import Tool

log = logger(__name__)

_Adopted = tuple[tuple[types.Tool, ...], tuple[Tool, ...]]


class McpToolset:
    """Implements `Toolset`. Servers start when tools are asked for the first time; `stop` ends them.

    ``first_wait`` is how many seconds that first asking may wait for a server to come up, ``patience`` how
    long a person has to answer a server's question, ``taken`` the names that other tools have: a server that
    brings one of them is not listened to, for two tools of one name would stop every turn.
    """

    name = "mcp"

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        *,
        clock: Clock,
        ask: Ask = decline,
        patience: float = 10.0,
        taken: Callable[[], Collection[str]] = tuple,
        sleep: Sleep = asyncio.sleep,
        first_wait: float = 10.0,
        start_seconds: float = 60.0,
    ) -> None:
        self.servers = tuple(
            Server(config, ask, clock=clock, patience=patience, sleep=sleep, start_seconds=start_seconds)
            for config in configs
        )
        self._patience = patience
        self._taken = taken
        self._first_wait = first_wait
        self._waited = False
        self._adopted: dict[str, _Adopted] = {}
        self._twins: set[tuple[str, str]] = set()

    async def tools(self) -> Sequence[Tool]:
        """What the servers offered when they were last heard of, without what is denied."""
        for server in self.servers:
            server.start()
        if not self._waited:
            await self._wait()
        found: dict[str, Tool] = {}
        taken = frozenset(self._taken())
        for server in self.servers:
            for tool in self._tools_of(server):
                if tool.name in taken or tool.name in found:
                    self._warn_of_twins(tool.name, server.config.name)
                else:
                    found[tool.name] = tool
        return tuple(found.values())

    async def stop(self) -> None:
        """End every server; afterwards none is started again."""
        await asyncio.gather(*(server.stop() for server in self.servers))

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._first_wait):
                for server in self.servers:
                    await server.tried.wait()
        except TimeoutError:
            late = [server.config.name for server in self.servers if not server.tried.is_set()]
            log.warning("mcp servers are slow to start", servers=late)
        self._waited = True

    def _warn_of_twins(self, tool_name: str, server_name: str) -> None:
        """Once for each, not in every turn."""
        if (tool_name, server_name) not in self._twins:
            self._twins.add((tool_name, server_name))
            log.warning("two tools have one name; change a prefix", tool=tool_name, left_out=server_name)

    def _tools_of(self, server: Server) -> tuple[Tool, ...]:
        known = server.known
        before = self._adopted.get(server.config.name)
        if before is None or before[0] is not known:
            before = known, tuple(self._adopt(server, known))
            self._adopted[server.config.name] = before
        return before[1]

    def _adopt(self, server: Server, known: Sequence[types.Tool]) -> list[Tool]:
        adopted = []
        for theirs in known:
            if not server.config.offers(theirs.name):
                continue
            try:
                adopted.append(adopt(server, theirs, self._patience))
            except (ValueError, TypeError, RecursionError) as error:
                why = server.config.scrub(str(error))
                log.warning("an mcp tool is left out", server=server.config.name, tool=theirs.name, why=why)
        return adopted
