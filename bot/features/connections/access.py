"""The token of one connection, which is an account at another server, at the time of a call there.

`AccountAccess` reads the token from the connection's row each time, and refreshes an expired token. While the
account of a chat rests, that is, is not used (`resting.py`), there is no token. Each value of the token is
kept in memory, so that logs and cards can hide it.
"""

import asyncio
from dataclasses import replace
from datetime import datetime

from bot.domain.chat import Clock
from bot.domain.connections import Connection
from bot.features.connections import rows, tokens
from bot.features.connections.resting import FindRest
from bot.features.connections.sign_in import missing_scopes
from bot.features.connections.sign_in.provider_entries import Provider
from bot.store.database import Database
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.signin import SignInTokens


class AccountAccess:
    """The `ConnectionAccess` whose token is in a row. One process at a time refreshes the token."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: ServerConfig,
        connection: Connection,
        find_rest: FindRest | None = None,
    ) -> None:
        """``find_rest`` returns why the account of a chat is not used now; None for a person's account."""
        if not isinstance(config.transport, Http):
            raise TypeError(f"{config.name} has no address")
        self._database, self._clock, self._connection = database, clock, connection
        self._config = config
        # `SignInTokens` reads and renews the tokens by the queries in the module `tokens`. It adds each token
        # to ``sign_in_tokens``, so this connection gets a set of its own.
        self._http_config = replace(config.transport, sign_in_tokens=set())
        self._keys = SignInTokens(
            config.name,
            self._http_config,
            database,
            clock,
            rows=tokens,
            key=connection.id,
            sign_in_hint=f"Send: /nod connections connect {config.name}",
        )
        self._use_noted_at: datetime | None = None
        self._storing_tasks: set[asyncio.Future[None]] = set()  # held here, so that they are not lost
        self._find_rest = find_rest
        self._rest_reason = ""  # why the account rested when `get_token` was called last

    @property
    def failure_reason(self) -> str:
        """The reason why the last call of `get_token` returned None, or why the server refused its token."""
        return self._rest_reason or self._keys.failure_reason

    @property
    def sign_in_hint(self) -> str:
        """A sentence on how to connect the account again."""
        return self._keys.sign_in_hint

    @property
    def secrets(self) -> frozenset[str]:
        """All values of the token so far, to be hidden."""
        return frozenset(self._http_config.sign_in_tokens)

    async def get_token(self, refused: str | None = None) -> str | None:
        """Return a token to send; None while the account rests, or if there is no token to send.

        ``refused``: the token that the server has just refused, if it refused one.
        """
        if self._find_rest is not None:
            self._rest_reason = await self._find_rest()
            if self._rest_reason:
                return None
        token = await self._keys.get_token(refused)
        if token is not None:
            await self._note_use()
        return token

    async def _note_use(self) -> None:
        """Store the time of this use, unless a use was stored within `rows.USE_PAUSE`."""
        now = self._clock()
        noted_at = self._use_noted_at
        # a time in the future was noted by a clock that was ahead
        was_just_noted = noted_at is not None and noted_at <= now < noted_at + rows.USE_PAUSE
        if not was_just_noted:
            self._use_noted_at = now
            await self._database.write(rows.note_use, self._connection.id, now)

    async def find_lacking_scope(self) -> str:
        """Return the scopes that writing tools need and the owner has not granted; empty without any."""
        needed_scopes = self._config.write_scopes if isinstance(self._config, Provider) else ()
        if not needed_scopes:
            return ""
        connection = self._connection
        granted_scopes = await self._database.read(
            rows.list_granted, connection.server, connection.identity, connection.owner
        )
        return " ".join(scope for scope in needed_scopes if scope not in granted_scopes)

    def note_challenge(self, challenge: str) -> None:
        """Keep the server's newest ``WWW-Authenticate`` header."""
        self._keys.note_challenge(challenge)

    def note_scope(self, scope: str) -> None:
        """Keep scopes that the server asked for, so that the owner's next sign-in asks for them, too."""
        self._keys.note_scope(scope)
        storing = self._database.write(
            missing_scopes.keep_lacking, self._connection.server, self._connection.owner, scope, self._clock()
        )
        task = asyncio.ensure_future(storing)
        self._storing_tasks.add(task)
        task.add_done_callback(self._storing_tasks.discard)
