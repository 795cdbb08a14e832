"""The one bridge between asyncio and the synchronous store.

A store function takes a `Session` first and is one short transaction. `Database.write` and `Database.read`
run it as a whole, without a pause, so no transaction can be open while anything else is awaited.

On SQLite its statements run right here, in the event loop: each takes microseconds, and to hand them to
another thread and back costs more than they do. What can take long, the wait for the disk at a commit and
the wait for another process that writes, is left to one thread. Functions that queue up while a commit is on
its way share the next one, each in its own savepoint, and so one fsync; a caller continues only after that
commit is on disk (``synchronous=FULL``). `write_unsynced` waits for no disk, so it takes no thread either.

Work that grows with the data (a search, a sweep, the whole audit) takes `write_aside` and `read_aside`: a
thread does all of it. PostgreSQL, which is a network away, has a small pool of threads for everything.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, event, make_url, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from bot.errors import LostRace
from bot.store import snapshot
from bot.store.engine import PATIENCE, POSTGRES_CONNECTIONS, open_engine
from bot.store.quick import Quick
from bot.store.sqlite_file import SQLiteFile
from bot.store.threads import Threads
from bot.store.transaction import OverConnection, begin, leave, run_and_commit
from bot.store.writer import SQLiteWriter

P = ParamSpec("P")
T = TypeVar("T")

_SQLITE_THREADS = 2
_CHECK, _CHECKED = 2.0, 2.0  # seconds
_DEADLOCK = "40P01"  # PostgreSQL's code for it
_TRIES = 8  # times one write may run


class Database:
    """Runs store functions in transactions."""

    def __init__(
        self,
        url: str,
        audit_keys: Sequence[bytes] = (),
        *,
        readonly: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        """``readonly``: for one who only looks; no file is changed or made.

        ``patience``: the seconds after which a write fails that another process keeps from SQLite's file.
        """
        self.engine = open_engine(url, audit_keys, readonly=readonly)
        self.dialect: str = self.engine.dialect.name
        sqlite = self.dialect == "sqlite"
        self._file = SQLiteFile(Path(make_url(url).database or "")) if sqlite else None
        self._writer = SQLiteWriter(self.engine, patience, self._file) if self._file else None
        if self._file:
            event.listen(self.engine, "connect", self._file.opened)
        self._writable_until = 0.0  # of time.monotonic()
        self._reading: Connection | None = None  # SQLite: the event loop's own, kept open
        self._threads = Threads(_SQLITE_THREADS if sqlite else POSTGRES_CONNECTIONS, "nod-db")

    @property
    def there(self) -> bool:
        """Whether there is something to look at; SQLite would make the file."""
        return self.dialect != "sqlite" or Path(self.engine.url.database or "").exists()

    async def write(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``function(session, …)`` in a transaction and return after its commit.

        Raises LostRace where others were faster every time. What ``function`` is given must not be a row
        that was read earlier: a second run would find it as stale as the first.
        """
        return await self._write(lambda s: function(s, *args, **kwargs))

    async def write_first(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`write`, before everything else that waits: a person waits for it."""
        return await self._write(lambda s: function(s, *args, **kwargs), first=True)

    async def write_unsynced(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`write`, for what the end of this process may not undo, but the end of the machine may.

        The next `write` that is on disk takes it there.
        """
        return await self._write(lambda s: function(s, *args, **kwargs), synced=False)

    async def read(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``function(session, …)`` over one snapshot; it must not write."""
        if self._writer is None:
            return await self.read_aside(function, *args, **kwargs)
        if self._reading is None:
            self._reading = Quick(self.engine)
        return self._over_snapshot(self._reading, lambda s: function(s, *args, **kwargs))

    async def write_aside(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`write`, for what may take long."""
        return await self._write(lambda s: function(s, *args, **kwargs), aside=True)

    async def read_aside(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`read`, for what may take long."""
        return await self._threads.run(lambda: self.read_now(function, *args, **kwargs))

    async def check_writable(self) -> None:
        """Write a few bytes that mean nothing, at most once in `_CHECKED` seconds.

        Raises SQLAlchemyError, or TimeoutError where that takes longer than `_CHECK`.
        """
        if self._file:
            self._file.check()
        if time.monotonic() < self._writable_until:
            return
        async with asyncio.timeout(_CHECK):
            await self.write(_touch)
        self._writable_until = time.monotonic() + _CHECKED

    async def _write(
        self,
        work: Callable[[Session], T],
        *,
        aside: bool = False,
        synced: bool = True,
        first: bool = False,
    ) -> T:
        if self._writer is not None and self._file is not None:
            try:
                return await self._writer.submit(work, aside=aside, synced=synced, first=first)
            except DBAPIError as error:
                self._file.failed(error)
                raise
        return await self._threads.run(partial(self._until_it_wins, work, synced=synced), first=first)

    def write_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same in this thread, for the command line and for tests."""
        if self._writer is None:
            return self._until_it_wins(lambda s: function(s, *args, **kwargs))
        return self._in_one(lambda s: function(s, *args, **kwargs))

    def _in_one(self, work: Callable[[Session], T], *, synced: bool = True) -> T:
        with Quick(self.engine) as connection:
            begin(connection, synced=synced)
            return run_and_commit(connection, work)

    def _until_it_wins(self, work: Callable[[Session], T], *, synced: bool = True) -> T:
        """On PostgreSQL a transaction that another one overtook, or was broken off for, runs again."""
        runs = 0
        while True:
            runs += 1
            try:
                return self._in_one(work, synced=synced)
            except LostRace:
                if runs == _TRIES:
                    raise
            except OperationalError as error:
                if getattr(error.orig, "sqlstate", None) != _DEADLOCK or runs == _TRIES:
                    raise

    def read_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with Quick(self.engine) as connection:
            return self._over_snapshot(connection, lambda s: function(s, *args, **kwargs))

    def _over_snapshot(self, connection: Connection, function: Callable[[Session], T]) -> T:
        begin(connection, to_read=True)
        with OverConnection(connection, autoflush=False) as session:
            snapshot.begin(session)
            try:
                value = function(session)
            except BaseException as error:
                connection.rollback()
                if self._file is not None:
                    self._file.failed(error)
                raise
            leave(connection)
            return value

    def close(self) -> None:
        """Finish what is queued, then let go of every connection."""
        if self._writer is not None:
            self._writer.close()
        self._threads.close()
        if self._reading is not None:
            self._reading.close()
        self.engine.dispose()


def _touch(session: Session) -> None:
    """A write to the disk that changes no row."""
    if session.connection().dialect.name == "sqlite":
        number = session.execute(text("PRAGMA user_version")).scalar_one()
        session.execute(text(f"PRAGMA user_version = {(number + 1) % 1000}"))
    else:
        for words in _TOUCHES:
            session.execute(text(words))


_TOUCHES = (
    f"SET LOCAL lock_timeout = '{_CHECK / 2:.0f}s'",
    "LOCK TABLE conversation, message, turn, proposal, audit IN ROW EXCLUSIVE MODE",
    "UPDATE turn SET state = state WHERE false",  # refused where nothing may be written
    "SELECT pg_current_xact_id()",
)
