"""`McpToolset`: the tools of all configured MCP servers.

There are two sorts of servers. *Shared* ones are called under one account for all people: each is one
`Server` here. The others are called under the account of a person or a chat (a *connection*):
`ConnectedServers` has a *session* for each account, which is a `Server` of its own.

To *adopt* a server's tool is to make a `Tool` of it, with its schema checked (``tools.py``). That may be
slow, so it is done in a thread. Each turn of the model asks `McpToolset.tools`, waits a few seconds at most,
and gets the tools that are adopted by then. Tools that come later are for later turns.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from mcp import types

from bot.domain.chat import Clock
from bot.domain.connections import Identity, TokenSource
from bot.store.database import Database
from bot.telemetry.logs import logger
from bot.tools.account_tools import hide_secrets
from bot.tools.call import CallContext
from bot.tools.mcp.account_sessions import MAX_SESSIONS, ConnectedServer, ConnectedServers
from bot.tools.mcp.catalogue import Sleep
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.interface import AskPerson, Servers, ServerStatus, decline
from bot.tools.mcp.login import SharedSignIns
from bot.tools.mcp.reading import ReadingTools
from bot.tools.mcp.schemas import TooSlow
from bot.tools.mcp.server import Server
from bot.tools.mcp.signin import SignInTokens
from bot.tools.mcp.tools import adopt, choose_model_names
from bot.tools.tool import Tool

log = logger(__name__)

_FIRST_WAIT_SECONDS = 5.0  # the wait of a turn for the start of servers, and for the tools of a new list
_OWNER_WAIT_SECONDS = 20.0  # the wait of an approved call, or of an agent's, for its session
_MAX_SLOW_SCHEMAS = 3  # after this many slow schemas the other tools of a server are left out


@dataclass(slots=True)
class _AdoptedTools:
    """The tools adopted so far from one list of a server."""

    tool_list: tuple[types.Tool, ...]  # the server's list
    tools: dict[str, Tool]  # by the server's own names; at first those that the previous list had as well
    turns_wait_until: float  # the end of turns' wait for the tools, in the loop's time
    task: asyncio.Task[None] | None = None  # adopts the listed tools in a thread
    is_current: bool = True  # False once there is a newer list, or the server ends: then the thread stops


class McpToolset(Servers):
    """All configured servers. `start` or the first call of `tools` starts them; `stop` ends them.

    - ``database`` has the sign-ins; without it no one is signed in.
    - ``ask`` asks a person what a server wants to know. They have ``answer_seconds`` to answer.
    - ``list_reserved_names`` returns the names of other tools. A server's tool of such a name is left out,
      since two tools of one name would stop every turn.
    - ``turn_wait_seconds``: the longest time that `tools` waits for the first start of servers, and for the
      tools of a new list.
    - ``max_sessions``: the maximum number of sessions of connections at one time.
    """

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        *,
        clock: Clock,
        database: Database | None = None,
        ask: AskPerson = decline,
        answer_seconds: float = 10.0,
        list_reserved_names: Callable[[], Collection[str]] = lambda: (),
        sleep: Sleep = asyncio.sleep,
        turn_wait_seconds: float = _FIRST_WAIT_SECONDS,
        max_sessions: int = MAX_SESSIONS,
    ) -> None:

        def make_server(config: ServerConfig, tokens: TokenSource | None, ask: AskPerson) -> Server:
            return Server(config, ask, clock=clock, answer_seconds=answer_seconds, tokens=tokens, sleep=sleep)

        def make_tokens(config: ServerConfig) -> SignInTokens | None:
            """Return the tokens of the server's sign-in; None if people don't sign in there."""
            if database is None or not isinstance(config.transport, Http) or not config.transport.signs_in:
                return None
            return SignInTokens(config.name, config.transport, database, clock, sleep)

        shared = [config for config in configs if config.identity is Identity.NOD]
        self.servers = tuple(make_server(config, make_tokens(config), ask) for config in shared)
        """The shared servers."""
        not_shared = [config for config in configs if config.identity is not Identity.NOD]
        self.connected: ConnectedServers | None = None
        """The sessions at the other servers."""
        if not_shared and database is not None:
            self.connected = ConnectedServers(
                not_shared,
                database,
                make_server,
                self._forget,
                ask=ask,
                clock=clock,
                sleep=sleep,
                max_sessions=max_sessions,
            )
        self._answer_seconds = answer_seconds
        self._list_reserved_names = list_reserved_names
        self._turn_wait_seconds = turn_wait_seconds
        self._start_wait_until: float | None = None
        """The end of the wait for the first start of servers, in the loop's time; None before `start`."""
        self._adopted: dict[Server, _AdoptedTools] = {}
        self._reading: dict[Server, ReadingTools] = {}
        """The tools that read each server's resources and prompts."""
        self._logged_duplicates: set[tuple[str, str]] = set()  # names of tools, and their servers

    def start(self) -> None:
        """Begin to start every server; the servers come up later."""
        if self._start_wait_until is None:
            self._start_wait_until = asyncio.get_running_loop().time() + self._turn_wait_seconds
        for server in self.servers:
            server.start()

    async def start_and_wait(self, seconds: float) -> None:
        """Start every server, and wait at most ``seconds`` until each is up or has failed."""
        self.start()
        await self._wait_for_start(asyncio.get_running_loop().time() + seconds)

    async def tools(self, context: CallContext | None = None) -> Sequence[Tool]:
        """Return the tools that the servers offered last, without those that the configuration denies.

        Of the servers that are not shared, these are the ones at which the person or the chat in ``context``
        has a connection.
        """
        self.start()
        await self._wait_for_start(self._start_wait_until or 0.0)
        by_name: dict[str, Tool] = {}
        reserved_names = frozenset(self._list_reserved_names())

        def add(tool: Tool, server: Server) -> None:
            if tool.name in reserved_names or tool.name in by_name:
                self._leave_out_duplicate(tool.name, server)
            else:
                by_name[tool.name] = tool

        for server in self.servers:
            for tool in await self._load_tools(server):
                add(tool, server)
        if self.connected is not None:
            for session in await self._open_sessions(self.connected, context):
                for tool in await self._load_tools(session.server):
                    add(_bind(tool, session), session.server)
        return tuple(by_name.values())

    async def _open_sessions(
        self, connected: ConnectedServers, context: CallContext | None
    ) -> Sequence[ConnectedServer]:
        """Return the sessions for the person or the chat of a call. New ones get a short time to come up."""
        sessions = await connected.open_sessions(context)
        # only the context of an approved call, or of an agent's call, names an owner; these may wait longer
        names_owner = context is not None and bool(context.connected_as)
        seconds = _OWNER_WAIT_SECONDS if names_owner else self._turn_wait_seconds
        starting = [session.server for session in sessions if not session.server.first_attempt_ended.is_set()]
        if starting:
            tasks = [asyncio.create_task(server.first_attempt_ended.wait()) for server in starting]
            _, pending = await asyncio.wait(tasks, timeout=seconds)
            for task in pending:
                task.cancel()
        return sessions

    def _forget(self, server: Server) -> None:
        """Forget the tools of a session's server, since the session ends."""
        adopted = self._adopted.pop(server, None)
        if adopted:
            adopted.is_current = False
        self._reading.pop(server, None)

    async def status(self) -> list[ServerStatus]:
        statuses = [await server.status() for server in self.servers]
        if self.connected is not None:
            statuses += self.connected.list_status()
        return statuses

    def sign_ins(
        self, database: Database, clock: Clock, get_return_address: Callable[[], str]
    ) -> SharedSignIns:
        return SharedSignIns(self.servers, database, clock, get_return_address)

    async def stop(self) -> None:
        """End every server; afterwards no server starts."""
        for adopted in self._adopted.values():
            adopted.is_current = False
        await asyncio.gather(*(server.stop() for server in self.servers))
        if self.connected is not None:
            await self.connected.stop()

    async def _wait_for_start(self, until: float) -> None:
        """Wait until each server has come up or failed; ``until`` is the last moment, in the loop's time."""
        untried = [server for server in self.servers if not server.first_attempt_ended.is_set()]
        if not untried or asyncio.get_running_loop().time() >= until:
            return
        try:
            async with asyncio.timeout_at(until):
                for server in untried:
                    await server.first_attempt_ended.wait()
        except TimeoutError:
            names = [server.config.name for server in untried if not server.first_attempt_ended.is_set()]
            log.warning("mcp servers are slow to start", servers=names)

    def _leave_out_duplicate(self, tool_name: str, server: Server) -> None:
        """Leave out a tool whose name another tool has: in the status, and once in the log."""
        if (tool_name, server.config.name) not in self._logged_duplicates:
            self._logged_duplicates.add((tool_name, server.config.name))
            log.warning(
                "two tools have one name; change a prefix", tool=tool_name, left_out=server.config.name
            )
        server.left_out[tool_name] = "another tool has this name; change the prefix"

    async def _load_tools(self, server: Server) -> tuple[Tool, ...]:
        """Return the adopted tools of a server, and the tools that read its resources and prompts.

        If the server's list is new, begin to adopt its tools, and wait a short time for them.
        """
        listed_tools = server.tool_list
        adopted = self._adopted.get(server)
        if adopted is None or adopted.tool_list is not listed_tools:
            adopted = self._begin_adoption(server, listed_tools, adopted)
        if adopted.task is not None and not adopted.task.done():
            seconds = adopted.turns_wait_until - asyncio.get_running_loop().time()
            await asyncio.wait({adopted.task}, timeout=max(0.0, seconds))
        by_name = dict(adopted.tools)  # a copy, since the thread may add tools to the original
        tools = [by_name[listed_tool.name] for listed_tool in listed_tools if listed_tool.name in by_name]
        names = {tool.name for tool in tools}
        tools += [tool for tool in self._list_reading_tools(server) if tool.name not in names]
        return tuple(tools)

    def _begin_adoption(
        self, server: Server, listed_tools: tuple[types.Tool, ...], previous: _AdoptedTools | None
    ) -> _AdoptedTools:
        """Begin to adopt the tools of a new list in a thread, in place of the ``previous`` list.

        Until a tool is adopted from the new list, the tool of that name from the previous list stays.
        """
        listed_names = {listed_tool.name for listed_tool in listed_tools}
        still_listed: dict[str, Tool] = {}
        if previous is not None:
            previous.is_current = False
            still_listed = {name: tool for name, tool in previous.tools.items() if name in listed_names}
        server.left_out = {}
        turns_wait_until = asyncio.get_running_loop().time() + self._turn_wait_seconds
        adopted = _AdoptedTools(listed_tools, still_listed, turns_wait_until)
        adopted.task = asyncio.create_task(
            asyncio.to_thread(_adopt_listed, server, adopted, self._answer_seconds)
        )
        self._adopted[server] = adopted
        return adopted

    def _list_reading_tools(self, server: Server) -> Sequence[Tool]:
        """Return the tools that read a server's resources and prompts."""
        if server not in self._reading:
            self._reading[server] = ReadingTools(server, self._answer_seconds)
        return self._reading[server].tools()


def _bind(tool: Tool, session: ConnectedServer) -> Tool:
    """Return a session's tool, bound to its connection; its outputs don't show the connection's tokens."""
    run = hide_secrets(tool.run, session.secrets) if tool.run else None
    return replace(tool, connection=session.connection, run=run)


def _adopt_listed(server: Server, adopted: _AdoptedTools, answer_seconds: float) -> None:
    """Adopt the listed tools that the configuration offers, small schemas first.

    A tool that can't be adopted is left out and logged. Runs in a thread, and ends early if ``adopted`` is no
    longer current.
    """
    slow_schemas = 0
    offered = [tool for tool in adopted.tool_list if server.config.offers(tool.name)]
    model_names = choose_model_names(server.config, [tool.name for tool in offered])
    for listed_tool in sorted(offered, key=lambda tool: len(str(tool.input_schema))):
        if not adopted.is_current:
            return
        try:
            if slow_schemas >= _MAX_SLOW_SCHEMAS:
                raise ValueError("too many schemas of this server take too long to check")
            if server.config.has_sign_in_token(listed_tool.model_dump_json()):
                raise ValueError("its description has a token of the server in it")
            adopted.tools[listed_tool.name] = adopt(
                server, listed_tool, answer_seconds, model_names[listed_tool.name]
            )
        except Exception as error:  # noqa: BLE001 - any fault of a server's tool; its other tools are still offered
            adopted.tools.pop(listed_tool.name, None)
            if isinstance(error, TooSlow):
                slow_schemas += 1
            why = server.config.scrub(str(error))
            name = server.config.scrub(listed_tool.name)
            server.left_out[name] = why
            log.warning("an mcp tool is left out", server=server.config.name, tool=name, why=why)
