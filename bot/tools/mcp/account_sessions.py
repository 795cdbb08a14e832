"""Sessions at MCP servers that are called under the account of a person or a chat: one for each connection.

A *connection* is such an account, signed in at a server. The server offers each account its own list of
tools, so each connection has a session: a `Server` of its own. A session that is not used for a while is
ended, and so are the least recently used ones if there are too many.

`McpToolset` asks `ConnectedServers` for the sessions of the person or the chat for whom a call is made.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.domain.call_facts import Place
from bot.domain.chat import Clock
from bot.domain.connections import Connection, ConnectionAccess, TokenSource, encodings_of
from bot.store import conversations
from bot.store.connections import get_connections, load_owner
from bot.store.database import Database
from bot.tools.account_tools import SecretLister, find_connections, secrets_of
from bot.tools.call import CallContext
from bot.tools.mcp.catalogue import Sleep
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.interface import Action, AskPerson, Elicited, Question, ServerStatus
from bot.tools.mcp.server import Server

MAX_SESSIONS = 64
MAX_IDLE_TIME = timedelta(minutes=10)  # a session that was not used for this long is ended
_SWEEP_SECONDS = 60.0  # between two sweeps of idle sessions

MakeServer = Callable[[ServerConfig, TokenSource, AskPerson], Server]


@dataclass(frozen=True, slots=True)
class ConnectedServer:
    """A session: a server under one connection. ``secrets`` gives the texts to hide in its answers."""

    connection: Connection
    server: Server
    secrets: SecretLister


@dataclass(slots=True)
class _SessionEntry:
    """A session, and the time of its last use."""

    connected: ConnectedServer
    used_at: datetime


class ConnectedServers:
    """The sessions of all connections.

    ``make_server`` makes the `Server` of a session. ``on_session_end`` is called with the server of each
    session that ends. ``max_sessions``: the maximum number of sessions at one time.
    """

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        database: Database,
        make_server: MakeServer,
        on_session_end: Callable[[Server], None],
        *,
        ask: AskPerson,
        clock: Clock,
        sleep: Sleep,
        max_sessions: int = MAX_SESSIONS,
    ) -> None:
        self.configs = {config.name: config for config in configs}
        self._database = database
        self._make_server = make_server
        self._on_session_end = on_session_end
        self._ask = ask
        self._clock = clock
        self._sleep = sleep
        self._max_sessions = max_sessions
        self._sessions: dict[tuple[str, str], _SessionEntry] = {}
        """By the connection's id and its account (`Connection.key`); the least recently used comes first."""
        self._ending: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    async def open_sessions(self, context: CallContext | None) -> list[ConnectedServer]:
        """Return the sessions of the person or chat that a call is made for; missing ones are started."""
        identities = {name: config.identity for name, config in self.configs.items()}
        connections = await find_connections(self._database, identities, context)
        return [self._open_session(connection) for connection in connections.values()]

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    def list_status(self) -> list[ServerStatus]:
        """Return the status of each server, over all of its sessions.

        Its number of tools is the largest of its sessions. Its left-out tools are those of the first session
        that has any.
        """
        return [self._describe(name) for name in self.configs]

    def _describe(self, name: str) -> ServerStatus:
        all_sessions = [entry.connected.server for entry in self._sessions.values()]
        sessions = [server for server in all_sessions if server.config.name == name]
        count = max((len(server.tool_list) for server in sessions), default=0)
        left_out_texts = [server.describe_left_out() for server in sessions]
        left_out = next((text for text in left_out_texts if text), "")
        return ServerStatus(
            name=name,
            group=f"mcp:{name}",
            trouble=None,
            tools=count,
            left_out=left_out,
            sign_in=None,
            signed_out=False,
        )

    async def stop(self) -> None:
        """End every session; afterwards no session starts."""
        self.configs = {}
        if self._sweeper is not None:
            self._sweeper.cancel()
        for key in list(self._sessions):
            self._end(key)
        await asyncio.gather(*self._ending)

    def _open_session(self, connection: Connection) -> ConnectedServer:
        """Return the session of a connection, or start one."""
        now = self._clock()
        key = (connection.id, connection.key)
        entry = self._sessions.pop(key, None)
        if entry is None:
            entry = _SessionEntry(self._start_session(connection), now)
        entry.used_at = now
        entry.connected = replace(entry.connected, connection=connection)
        self._sessions[key] = entry  # again at the end, as the most recently used
        self._end_least_used(kept_key=key)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep())
        return entry.connected

    def _start_session(self, connection: Connection) -> ConnectedServer:
        connections = get_connections(self._database)
        config = self.configs[connection.server]
        if connections is None or not isinstance(config.transport, Http):
            raise ValueError(f"{config.name} has no connections")
        http_config = replace(config.transport, sign_in_tokens=set())
        access = connections.access(connection)
        tokens = _RecordedTokens(access, http_config.sign_in_tokens)
        server = self._make_server(
            replace(config, transport=http_config), tokens, self._choose_asking(connection)
        )
        server.start()
        return ConnectedServer(connection, server, secrets_of(access))

    def _choose_asking(self, connection: Connection) -> AskPerson:
        """Return the function by which a session asks people: of a person's connection its owner alone."""
        if not connection.is_personal:
            return self._ask

        def find_place_of_owner(session: Session, question: Question) -> Place | None:
            """Return the place of the call; None if the call is not the owner's."""
            if question.requested_by not in load_owner(session, connection.owner).accounts:
                return None
            return conversations.load_place(session, question.conversation_id)

        async def ask(question: Question) -> Elicited:
            place = await self._database.read(find_place_of_owner, question)
            if place is None:
                return Elicited(Action.DECLINE)
            # in a private place no one else sees the question anyway
            return await self._ask(replace(question, in_private=not place.private))

        return ask

    def _end_least_used(self, *, kept_key: tuple[str, str]) -> None:
        """End the least recently used sessions beyond the limit.

        Sessions with a call in progress stay, and so does the session with the key ``kept_key``.
        """
        idle = [
            key
            for key, entry in self._sessions.items()
            if key != kept_key and not entry.connected.server.is_busy
        ]
        excess = max(0, len(self._sessions) - self._max_sessions)
        for key in idle[:excess]:
            self._end(key)

    def end_idle(self) -> None:
        """End the sessions that were not used for `MAX_IDLE_TIME`."""
        used_before = self._clock() - MAX_IDLE_TIME
        for key, entry in list(self._sessions.items()):
            if entry.used_at <= used_before and not entry.connected.server.is_busy:
                self._end(key)

    def _end(self, key: tuple[str, str]) -> None:
        server = self._sessions.pop(key).connected.server
        self._on_session_end(server)
        task = asyncio.create_task(server.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _sweep(self) -> None:
        while True:
            await self._sleep(_SWEEP_SECONDS)
            self.end_idle()


class _RecordedTokens:
    """Implements `TokenSource` for a connection, and records its tokens in `Http.sign_in_tokens`.

    `ServerConfig.scrub` hides the texts in that set.
    """

    def __init__(self, access: ConnectionAccess, sign_in_tokens: set[str]) -> None:
        self._access = access
        self._sign_in_tokens = sign_in_tokens

    @property
    def failure_reason(self) -> str:
        return self._access.failure_reason

    @property
    def sign_in_hint(self) -> str:
        return self._access.sign_in_hint

    async def get_token(self, refused: str | None = None) -> str | None:
        access_token = await self._access.get_token(refused)
        self._sign_in_tokens.update(encodings_of(self._access.secrets))
        return access_token

    def note_challenge(self, challenge: str) -> None:
        self._access.note_challenge(challenge)

    def note_scope(self, scope: str) -> None:
        self._access.note_scope(scope)
