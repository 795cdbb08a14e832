"""Sessions at MCP servers whose calls are made in someone's name: each connection has one of its own.

What a server offers follows the account that asks, so its list is read and kept for each connection. Sessions
that no one used for a while are closed, and so are the least used where there are too many.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.connections import Connection, ConnectionAccess, TokenSource, encodings_of
from bot.store import conversations
from bot.store.connections import get_connections, whose_is
from bot.store.database import Database
from bot.tools.connected import Secrets, find_connections, secrets_of
from bot.tools.mcp.base import Action, Ask, Elicited, Question, ServerStatus
from bot.tools.mcp.catalogue import Sleep
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.server import Server
from bot.tools.tool import CallContext

MAX_SESSIONS = 64
IDLE = timedelta(minutes=10)
_LOOK_SECONDS = 60.0  # between two looks for idle ones

MakeServer = Callable[[ServerConfig, TokenSource, Ask], Server]


@dataclass(frozen=True, slots=True)
class ConnectedServer:
    """A server under one connection, and what gives the texts to hide in all that it says."""

    connection: Connection
    server: Server
    secrets: Secrets


@dataclass(slots=True)
class _Held:
    connected: ConnectedServer
    used_at: datetime


class ConnectedServers:
    """The sessions of all connections at the servers that have them. ``forget`` is told of each that ends."""

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        database: Database,
        make: MakeServer,
        forget: Callable[[Server], None],
        *,
        ask: Ask,
        clock: Clock,
        sleep: Sleep,
        most: int = MAX_SESSIONS,
    ) -> None:
        self.configs = {each.name: each for each in configs}
        self._database = database
        self._make = make
        self._forget = forget
        self._ask = ask
        self._clock = clock
        self._sleep = sleep
        self._most = most
        self._held: dict[tuple[str, str], _Held] = {}  # by the id and the key of a connection
        self._ending: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None

    async def find(self, context: CallContext | None) -> list[ConnectedServer]:
        """Return the servers as the person or the chat reaches them for whom a call is made."""
        wanted = {name: config.identity for name, config in self.configs.items()}
        connections = await find_connections(self._database, wanted, context)
        return [self._hold(each) for each in connections.values()]

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._held)

    def list_status(self) -> list[ServerStatus]:
        """Return each server, with the most tools that one connection has there."""
        return [self._describe(name) for name in self.configs]

    def _describe(self, name: str) -> ServerStatus:
        servers = [each.connected.server for each in self._held.values()]
        many = max((len(each.known) for each in servers if each.config.name == name), default=0)
        return ServerStatus(name, f"mcp:{name}", None, many, "", None, signed_out=False)

    async def stop(self) -> None:
        """End every session; afterwards none is started again."""
        self.configs = {}
        if self._watching is not None:
            self._watching.cancel()
        for key in list(self._held):
            self._end(key)
        await asyncio.gather(*self._ending)

    def _hold(self, connection: Connection) -> ConnectedServer:
        """Return the session of a connection, and start it where there was no session yet."""
        key, now = (connection.id, connection.key), self._clock()
        held = self._held.pop(key, None) or _Held(self._begin(connection), now)
        held.used_at = now
        held.connected = replace(held.connected, connection=connection)
        self._held[key] = held  # at the end: the least used are first
        self._end_surplus()
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        return held.connected

    def _begin(self, connection: Connection) -> ConnectedServer:
        connections = get_connections(self._database)
        config = self.configs[connection.server]
        if connections is None or not isinstance(config.launch, Http):
            raise ValueError(f"{config.name} has no connections")
        launch = replace(config.launch, learned=set())
        access = connections.access(connection)
        source, ask = _Learning(access, launch.learned), self._ask_owner(connection)
        server = self._make(replace(config, launch=launch), source, ask)
        server.start()
        return ConnectedServer(connection, server, secrets_of(access))

    def _ask_owner(self, connection: Connection) -> Ask:
        """Return a port that asks the owner of a person's connection alone, and only in private."""
        if not connection.is_personal:
            return self._ask

        def may_ask(session: Session, question: Question) -> bool:
            place = conversations.place_of(session, question.conversation_id)
            return place.private and question.requested_by in whose_is(session, connection).accounts

        async def ask(question: Question) -> Elicited:
            if not await self._database.read(may_ask, question):
                return Elicited(Action.DECLINE)
            return await self._ask(question)

        return ask

    def _end_surplus(self) -> None:
        idle = [key for key, held in self._held.items() if not held.connected.server.is_busy]
        for key in idle[: max(0, len(self._held) - self._most)]:
            self._end(key)

    def end_idle(self) -> None:
        """End the sessions that no one used for a while."""
        since = self._clock() - IDLE
        for key, held in list(self._held.items()):
            if held.used_at <= since and not held.connected.server.is_busy:
                self._end(key)

    def _end(self, key: tuple[str, str]) -> None:
        server = self._held.pop(key).connected.server
        self._forget(server)
        task = asyncio.create_task(server.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _watch(self) -> None:
        while True:
            await self._sleep(_LOOK_SECONDS)
            self.end_idle()


class _Learning:
    """Implements `TokenSource`: that of a connection, whose values the server's own words are freed of."""

    def __init__(self, access: ConnectionAccess, learned: set[str]) -> None:
        self._access = access
        self._learned = learned

    @property
    def why(self) -> str:
        return self._access.why

    @property
    def again(self) -> str:
        return self._access.again

    async def token(self, refused: str | None = None) -> str | None:
        found = await self._access.token(refused)
        self._learned.update(encodings_of(self._access.secrets))
        return found

    def note_challenge(self, challenge: str) -> None:
        self._access.note_challenge(challenge)

    def note_scope(self, scope: str) -> None:
        self._access.note_scope(scope)
