"""The token of one connection at the time of a call: fresh, from its row, and hidden like any secret."""

import asyncio
from dataclasses import replace
from datetime import datetime

from bot.domain.chat import Clock
from bot.domain.connections import Connection
from bot.features.connections import rows, tokens
from bot.features.connections.resting import FindRest
from bot.features.connections.sign_in import lacking
from bot.features.connections.sign_in.provider_entries import Provider
from bot.store.database import Database
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.signin import Keys


class AccountAccess:
    """The access to a connection's token as its row is now; one process at a time refreshes the token."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: ServerConfig,
        connection: Connection,
        find_rest: FindRest | None = None,
    ) -> None:
        """``find_rest`` returns why the account of a chat is not used now."""
        if not isinstance(config.launch, Http):
            raise TypeError(f"{config.name} has no address")
        self._database, self._clock, self._connection = database, clock, connection
        self._config = config
        # a set of its own: secrets of another person's token are not known here
        self._launch = replace(config.launch, learned=set())
        again = f"Send: /nod connections connect {config.name}"
        self._keys = Keys(
            config.name, self._launch, database, clock, rows=tokens, key=connection.id, again=again
        )
        self._noted: datetime | None = None
        self._keeping: set[asyncio.Future[None]] = set()
        self._find_rest, self._rest = find_rest, ""

    @property
    def why(self) -> str:
        return self._rest or self._keys.why

    @property
    def again(self) -> str:
        return self._keys.again

    @property
    def secrets(self) -> frozenset[str]:
        return frozenset(self._launch.learned)

    async def token(self, refused: str | None = None) -> str | None:
        if self._find_rest is not None:
            self._rest = await self._find_rest()
            if self._rest:
                return None
        found = await self._keys.token(refused)
        now = self._clock()
        if found is not None and (
            self._noted is None or not self._noted <= now < self._noted + rows.USE_NOTED
        ):
            self._noted = now
            await self._database.write(rows.note_use, self._connection.id, now)
        return found

    async def find_lacking_scope(self) -> str:
        needed = self._config.write_scopes if isinstance(self._config, Provider) else ()
        if not needed:
            return ""
        connection = self._connection
        granted = await self._database.read(
            rows.list_granted, connection.server, connection.identity, connection.owner
        )
        return " ".join(scope for scope in needed if scope not in granted)

    def note_challenge(self, challenge: str) -> None:
        self._keys.note_challenge(challenge)

    def note_scope(self, scope: str) -> None:
        self._keys.note_scope(scope)
        keep = self._database.write(
            lacking.keep_lacking, self._connection.server, self._connection.owner, scope, self._clock()
        )
        task = asyncio.ensure_future(keep)
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)
