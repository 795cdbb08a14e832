"""Locks on named resources: one change at a time, in every process on the database.

An approved call reads the old values again, is claimed and runs between `ResourceLock.enter` and
`ResourceLock.leave`, so no other change of the same resource comes in between. A caller that finds the
lock taken does not wait: `leave` returns the proposals whose turn it is, in the order they came. The order is
only in memory; after a crash the approved rows are found again and enter in a new order.
"""

import asyncio
import contextlib
import threading

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import DBAPIError

from bot.store.database import Database
from bot.store.engine import open_unpooled
from bot.telemetry.logs import logger

log = logger(__name__)

_FIRST_LOOK, _LAST_LOOK = 0.02, 0.5  # seconds between tries for a lock that another process holds


_NUMBER = "hashtextextended('nod thing ' || coalesce(current_schema(), '') || ' ' || :name, 0)"
_TAKE = text(f"SELECT pg_try_advisory_lock({_NUMBER})")
_GIVE = text(f"SELECT pg_advisory_unlock({_NUMBER})")


class ResourceLock:
    """The locks on resources. ``who`` is the id of a proposal; one proposal enters once at a time."""

    def __init__(self, database: Database) -> None:
        self._inside: dict[str, str] = {}  # the proposal that holds the lock, by name
        self._waiting: dict[str, str] = {}  # the name by waiting proposal, in the order they came
        self._elsewhere = _Advisory(database) if database.dialect == "postgresql" else None

    async def enter(self, who: str, name: str) -> bool:
        """Take the lock on a name; False where others have it or came first, until `leave` names ``who``."""
        first = next(iter(self._in_line(name)), who)
        if name in self._inside or first != who:
            self._waiting.setdefault(who, name)
            return False
        self._waiting.pop(who, None)
        self._inside[name] = who
        if self._elsewhere is not None:
            try:
                await self._elsewhere.take(name)
            except BaseException:
                del self._inside[name]
                raise
        return True

    def ahead(self, name: str) -> str | None:
        """Return the proposal that waits next for a name without a holder in this process."""
        if name in self._inside:
            return None
        return next(iter(self._in_line(name)), None)

    async def leave(self, who: str, name: str) -> tuple[str, ...]:
        """Give up the lock that ``who`` holds; returns the proposal that comes next, if one waits."""
        self._waiting.pop(who, None)
        if self._elsewhere is not None:
            await self._elsewhere.give(name)
        del self._inside[name]
        return self._next(name)

    def forget(self, who: str) -> tuple[str, ...]:
        """Remove a waiting proposal, and return the next if it was its turn. A lock that it holds stays."""
        return self._next(self._waiting.pop(who, None))

    def _next(self, name: str | None) -> tuple[str, ...]:
        if name is None or name in self._inside:
            return ()
        return self._in_line(name)[:1]

    def _in_line(self, name: str) -> tuple[str, ...]:
        return tuple(who for who, wanted in self._waiting.items() if wanted == name)

    def close(self) -> None:
        """Give up every lock; no proposal enters any longer."""
        if self._elsewhere is not None:
            self._elsewhere.close()


class _Advisory:
    """PostgreSQL's advisory locks for all processes, on one connection without a transaction.

    A lock lasts until it is given back or the connection ends, as it does with the process.
    """

    def __init__(self, database: Database) -> None:
        self._engine = open_unpooled(database.engine.url)  # a pool would reset the connection
        self._connection: Connection | None = None
        self._speaking = asyncio.Lock()  # a connection does one thing at a time
        self._in_use = threading.Lock()  # a cancelled caller's statement may still run in its thread
        self._over = False

    async def take(self, name: str) -> None:
        """Wait until no other process holds the name."""
        pause = _FIRST_LOOK
        while not await self._ask(_TAKE, name):
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LAST_LOOK)

    async def give(self, name: str) -> None:
        """Give a lock back. Never raises: where the connection was lost, the lock is gone with it."""
        try:
            if not await self._ask(_GIVE, name):
                log.warning("a lock was lost with its connection", lock=name)
        except DBAPIError as error:
            log.warning("a lock could not be given back", lock=name, why=str(error.orig))

    def close(self) -> None:
        with self._in_use:
            self._over = True
            if self._connection is not None:
                self._connection.close()

    async def _ask(self, statement: TextClause, name: str) -> bool:
        async with self._speaking:
            return await asyncio.get_running_loop().run_in_executor(None, self._ask_now, statement, name)

    def _ask_now(self, statement: TextClause, name: str) -> bool:
        with self._in_use:
            if self._over:
                raise RuntimeError("Nod has let go of its locks.")
            if self._connection is None or self._connection.closed:
                self._connection = self._engine.connect()
            try:
                return bool(self._connection.execute(statement, {"name": name}).scalar_one())
            except DBAPIError:
                with contextlib.suppress(DBAPIError):
                    self._connection.close()
                self._connection = None
                raise
