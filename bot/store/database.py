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
import contextlib
import math
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from bot.errors import LostRace
from bot.store import snapshot
from bot.store.quick import Quick
from bot.store.record.chain import KEYS

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 10.0  # seconds to wait for another process that writes
_PATIENCE = f"PRAGMA busy_timeout={PATIENCE * 1000:.0f}"
_AT_ONCE = "PRAGMA busy_timeout=0"
# An unsynced commit moves no log into the file either, which would wait for the disk.
_SYNCED = ("PRAGMA synchronous=FULL", "PRAGMA wal_autocheckpoint=1000")
_UNSYNCED = ("PRAGMA synchronous=NORMAL", "PRAGMA wal_autocheckpoint=0")
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    _PATIENCE,
    "PRAGMA foreign_keys=ON",
    "PRAGMA cache_size=-16000",
)
_PRAGMAS_OF_A_LOOK = (_PATIENCE, "PRAGMA query_only=ON")
_MAX_BATCH = 64
_SQLITE_THREADS = 2
_POSTGRES_THREADS = 8
_CHECK, _CHECKED = 2.0, 2.0  # seconds
_DEADLOCK = "40P01"  # PostgreSQL's code for it
_TRIES = 8  # times one write may run


def open_engine(url: str, audit_keys: Sequence[bytes] = (), *, readonly: bool = False) -> Engine:
    """An engine with our pragmas; SQLite leaves BEGIN and COMMIT to us (SQLAlchemy's documented recipe).

    A new file is for its owner alone, and so is what SQLite puts next to it. ``readonly`` changes no file.
    """
    options = {KEYS: tuple(audit_keys)}
    parts = make_url(url)
    if parts.get_backend_name() != "sqlite":
        return create_engine(
            url,
            pool_size=_POSTGRES_THREADS,
            pool_pre_ping=True,
            execution_options=options,
            hide_parameters=True,  # a fault is logged, and values may be secrets
        )
    file = Path(parts.database or "")
    if readonly:
        look = {"poolclass": NullPool, "creator": lambda: _look_at(file)}
        engine = create_engine("sqlite://", execution_options=options, **look)
    else:
        engine = create_engine(
            url,
            connect_args={"check_same_thread": False},
            execution_options=options,
            hide_parameters=True,
        )

    @event.listens_for(engine, "do_connect")
    def _make(*_: Any) -> None:
        if not readonly:
            # never an existing one: to close it would drop the locks that SQLite holds in this process
            with contextlib.suppress(OSError):
                os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in _PRAGMAS if not readonly else _PRAGMAS_OF_A_LOOK:
            connection.execute(pragma)

    return engine


def _look_at(file: Path) -> sqlite3.Connection:
    """Open for reading, so that no file is changed or left behind.

    Without a log, SQLite makes one with an index for a reader, too. A reader that may write removes both at
    its end, but would also copy an existing log into the database. On a read-only disk neither can be made,
    and none is needed if nothing writes.
    """
    true = file.resolve()
    log = true.with_name(f"{true.name}-wal")
    logged = log.exists() and log.stat().st_size
    if os.access(true.parent, os.W_OK):
        mode = "ro" if logged else "rw"
    else:
        mode = "ro" if logged else "ro&immutable=1"
    uri = f"file:{quote(str(true))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, check_same_thread=False)


def back_up(file: Path, copy: Path) -> None:
    """Copy a SQLite database as it is at one moment, also while it is written to.

    Raises OSError where ``copy`` exists or cannot be made, sqlite3.Error where the database cannot be read.
    """
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            contextlib.closing(_look_at(file)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise


class _Session(Session):
    """Over a connection that is in a transaction already, so that it need not find or begin one."""

    def __init__(self, connection: Connection, **options: Any) -> None:
        super().__init__(connection, expire_on_commit=False, join_transaction_mode="rollback_only", **options)
        self._over = connection

    def connection(self, *_: object, **__: object) -> Connection:
        return self._over

    def expunge_all(self) -> None:
        if self.identity_map or self._new or self._deleted:  # most have none, and clearing them costs
            super().expunge_all()


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
        self._writer = _SQLiteWriter(self.engine, patience) if sqlite else None
        self._writable_until = 0.0  # of time.monotonic()
        self._reading: Connection | None = None  # SQLite: the event loop's own, kept open
        self._threads = ThreadPoolExecutor(_SQLITE_THREADS if sqlite else _POSTGRES_THREADS, "nod-db")

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

    async def write_unsynced(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`write`, for what the end of this process may not undo, but the end of the machine may.

        The next `write` that is on disk takes it there. On PostgreSQL it is a `write`.
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
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self.read_now(function, *args, **kwargs)
        )

    async def check_writable(self) -> None:
        """Write a few bytes that mean nothing, at most once in `_CHECKED` seconds.

        Raises SQLAlchemyError, or TimeoutError where that takes longer than `_CHECK`.
        """
        if time.monotonic() < self._writable_until:
            return
        async with asyncio.timeout(_CHECK):
            await self.write(_touch)
        self._writable_until = time.monotonic() + _CHECKED

    async def _write(self, work: Callable[[Session], T], *, aside: bool = False, synced: bool = True) -> T:
        if self._writer is not None:
            return await self._writer.submit(work, aside=aside, synced=synced)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.write_now, work)

    def write_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same in this thread, for the command line and for tests."""
        if self._writer is None:
            return self._until_it_wins(lambda s: function(s, *args, **kwargs))
        with Quick(self.engine) as connection:
            _begin(connection)
            value = _run(connection, lambda s: function(s, *args, **kwargs))
            connection.commit()
            return value

    def _until_it_wins(self, work: Callable[[Session], T]) -> T:
        """On PostgreSQL a transaction that another one overtook, or was broken off for, runs again."""
        runs = 0
        while True:
            runs += 1
            try:
                with self.engine.begin() as connection:
                    return _run(connection, work)
            except LostRace:
                if runs == _TRIES:
                    raise
            except OperationalError as error:
                if getattr(error.orig, "sqlstate", None) != _DEADLOCK or runs == _TRIES:
                    raise

    def read_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        connected = Quick(self.engine) if self.dialect == "sqlite" else self.engine.connect()
        with connected as connection:
            return self._over_snapshot(connection, lambda s: function(s, *args, **kwargs))

    def _over_snapshot(self, connection: Connection, function: Callable[[Session], T]) -> T:
        if self.dialect == "sqlite":
            _begin(connection, "BEGIN")
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        with _Session(connection, autoflush=False) as session:
            snapshot.begin(session)
            try:
                return function(session)
            finally:
                connection.rollback()

    def close(self) -> None:
        """Finish what is queued, then let go of every connection."""
        if self._writer is not None:
            self._writer.close()
        self._threads.shutdown()
        if self._reading is not None:
            self._reading.close()
        self.engine.dispose()


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Session], Any]
    ended: asyncio.Future[Any]
    aside: bool
    synced: bool
    deadline: float  # of time.monotonic(): until then it waits for another process


_Outcome = tuple[Any, Exception | None] | None  # None: its time is not over, so it is tried again


class _SQLiteWriter:
    """This process's one connection that writes to the file: one transaction at a time."""

    def __init__(self, engine: Engine, patience: float) -> None:
        self._engine = engine
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, "nod-write")
        self._waiting: deque[_Job] = deque()
        self._connection: Connection | None = None
        self._busy = False
        self._closed = False
        self._synced = True  # how the connection commits

    def submit(self, work: Callable[[Session], T], *, aside: bool, synced: bool) -> asyncio.Future[T]:
        if self._closed:
            raise RuntimeError("the database is closed")
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Job(work, ended, aside, synced, time.monotonic() + self._patience))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._next, loop)  # every caller that is ready in this round of the loop joins
        return ended

    def close(self) -> None:
        """Finish what is queued, in this thread."""
        self._closed = True
        self._thread.shutdown()
        while batch := self._take():
            self._tell(batch, self._whole(batch))
        if self._connection is not None:
            self._connection.close()

    def _take(self) -> list[_Job]:
        """Those that share the next transaction: some short ones, or one that may take long."""
        batch: list[_Job] = []
        while self._waiting and len(batch) < _MAX_BATCH:
            if batch and (batch[0].aside or self._waiting[0].aside):
                break
            job = self._waiting.popleft()
            if not job.ended.done():  # else its caller went away
                batch.append(job)
        return batch

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = [] if self._closed else self._take()
        if not batch:
            self._busy = False
            return
        outcomes = None if batch[0].aside else self._at_once(batch)
        if outcomes is None or _synced(batch):
            self._thread.submit(self._end, loop, batch, outcomes)
        else:
            self._ended(loop, batch, self._commit(outcomes))

    def _end(
        self, loop: asyncio.AbstractEventLoop, batch: list[_Job], outcomes: list[_Outcome] | None
    ) -> None:
        """In the thread: wait for the disk, and run everything that has been deferred."""
        outcomes = self._whole(batch) if outcomes is None else self._commit(outcomes)
        loop.call_soon_threadsafe(self._ended, loop, batch, outcomes)

    def _ended(self, loop: asyncio.AbstractEventLoop, batch: list[_Job], outcomes: list[_Outcome]) -> None:
        self._tell(batch, outcomes)
        loop.call_soon(self._next, loop)  # after the callers, who may have more for the next commit

    def _at_once(self, batch: list[_Job]) -> list[_Outcome] | None:
        """What came of each, without the commit; None where even to begin would mean to wait."""
        if self._connection is None:
            return None
        try:
            self._begin(self._connection, synced=_synced(batch))
        except OperationalError:
            self._undo()
            return None
        return _outcomes(self._connection, batch)

    def _begin(self, connection: Connection, *, synced: bool) -> None:
        if synced is not self._synced:
            self._synced = False  # until all of it was done
            for pragma in _SYNCED if synced else _UNSYNCED:
                _execute(connection, pragma)
            self._synced = synced
        _begin(connection)

    def _whole(self, batch: list[_Job]) -> list[_Outcome]:
        try:
            if self._connection is None:
                self._connection = Quick(self._engine)
            left = max(0.0, min(job.deadline for job in batch) - time.monotonic())
            _execute(self._connection, f"PRAGMA busy_timeout={left * 1000:.0f}")
            try:
                self._begin(self._connection, synced=True)
            finally:
                _execute(self._connection, _AT_ONCE)
        except Exception as error:  # noqa: BLE001 - whatever it is, every caller must get it
            self._undo()
            now = time.monotonic() if _busy(error) else math.inf
            return [(None, error) if job.deadline <= now else None for job in batch]
        return self._commit(_outcomes(self._connection, batch))

    def _commit(self, outcomes: list[_Outcome]) -> list[_Outcome]:
        try:
            if self._connection is not None and any(outcome and outcome[1] is None for outcome in outcomes):
                self._connection.commit()
                return outcomes
        except Exception as error:  # noqa: BLE001 - whatever the commit raised, every caller must get it
            outcomes = [(None, error)] * len(outcomes)
        self._undo()
        return outcomes

    def _tell(self, batch: list[_Job], outcomes: list[_Outcome]) -> None:
        again: list[_Job] = []
        for job, outcome in zip(batch, outcomes, strict=True):
            if job.ended.done():
                continue  # its caller went away
            if outcome is None:
                again.append(job)
            elif outcome[1] is None:
                job.ended.set_result(outcome[0])
            else:
                job.ended.set_exception(outcome[1])
        self._waiting.extendleft(reversed(again))

    def _undo(self) -> None:
        if self._connection is not None:
            self._connection.rollback()
            driver: Any = self._connection.connection
            driver.rollback()  # a COMMIT that failed is over for SQLAlchemy, but not for SQLite


def _synced(batch: Sequence[_Job]) -> bool:
    """Whether the disk has to be waited for."""
    return any(job.synced for job in batch)


def _touch(session: Session) -> None:
    """A write to the disk that changes no row."""
    if session.connection().dialect.name == "sqlite":
        number = session.execute(text("PRAGMA user_version")).scalar_one()
        session.execute(text(f"PRAGMA user_version = {(number + 1) % 1000}"))
    else:
        session.execute(text("SELECT pg_current_xact_id()"))


def _busy(error: Exception) -> bool:
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return bool(code & 0xFF == sqlite3.SQLITE_BUSY)


def _execute(connection: Connection, text: str) -> None:
    """Run ``text`` on SQLite's driver, past SQLAlchemy's own transaction; raises `DBAPIError` as it would."""
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute(text)
    except sqlite3.Error as error:
        raise DBAPIError.instance(text, (), error, sqlite3.Error) from error


def _begin(connection: Connection, words: str = "BEGIN IMMEDIATE") -> None:
    connection.begin()  # SQLAlchemy's part: a session joins this transaction and must not end it
    _execute(connection, words)


def _outcomes(connection: Connection, batch: list[_Job]) -> list[_Outcome]:
    try:
        if len(batch) == 1:  # it is alone in the transaction, so it needs no savepoint
            return [(_run(connection, batch[0].work), None)]
        return [_one(connection, job.work) for job in batch]
    except Exception as error:  # noqa: BLE001 - handed to the callers
        return [(None, error)] * len(batch)


def _one(connection: Connection, work: Callable[[Session], Any]) -> _Outcome:
    _execute(connection, "SAVEPOINT one")
    try:
        value = _run(connection, work)
    except Exception as error:  # noqa: BLE001 - handed to the caller; the others' work stands
        _execute(connection, "ROLLBACK TO one")
        return None, error
    _execute(connection, "RELEASE one")
    return value, None


def _run(connection: Connection, work: Callable[[Session], T]) -> T:
    with _Session(connection) as session:
        value = work(session)
        session.flush()
        return value
