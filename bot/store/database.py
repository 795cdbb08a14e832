"""The one bridge between asyncio and the synchronous store.

A store function takes a `Session` first and is one short transaction. `Database.write` and `Database.read`
run it as a whole, without a pause, so no transaction can be open while anything else is awaited.

On SQLite its statements run right here, in the event loop: each takes microseconds, and to hand them to
another thread and back costs more than they do. What can take long, the wait for the disk at a commit and
the wait for another process that writes, is left to one thread. Functions that queue up while a commit is on
its way share the next one, each in its own savepoint, and so one fsync; a caller continues only after that
commit is on disk (``synchronous=FULL``).

Work that grows with the data (a search, a sweep, the whole audit) takes `write_aside` and `read_aside`: a
thread does all of it. PostgreSQL, which is a network away, has a small pool of threads for everything.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from bot.store.prepared import execute

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE = "PRAGMA busy_timeout=10000"  # milliseconds to wait for another process that writes
_AT_ONCE = "PRAGMA busy_timeout=0"
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    _PATIENCE,
    "PRAGMA foreign_keys=ON",
    "PRAGMA cache_size=-16000",
)
_MAX_BATCH = 64
_SQLITE_THREADS = 2
_POSTGRES_THREADS = 8
_DEADLOCK = "40P01"  # PostgreSQL's code for it
_DEADLOCKS = 6  # times one write may run


def open_engine(url: str) -> Engine:
    """An engine with our pragmas; SQLite leaves BEGIN and COMMIT to us (SQLAlchemy's documented recipe)."""
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(url, pool_size=_POSTGRES_THREADS, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in _PRAGMAS:
            connection.execute(pragma)

    return engine


class Database:
    """Runs store functions in transactions."""

    def __init__(self, url: str) -> None:
        self.engine = open_engine(url)
        self.dialect: str = self.engine.dialect.name
        sqlite = self.dialect == "sqlite"
        self._writer = _SQLiteWriter(self.engine) if sqlite else None
        self._reading: Connection | None = None  # SQLite: the event loop's own, kept open
        self._threads = ThreadPoolExecutor(_SQLITE_THREADS if sqlite else _POSTGRES_THREADS, "nod-db")

    async def write(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``function(session, …)`` in a transaction and return after its commit."""
        return await self._write(lambda s: function(s, *args, **kwargs), aside=False)

    async def read(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``function(session, …)`` over one snapshot; it must not write."""
        if self._writer is None:
            return await self.read_aside(function, *args, **kwargs)
        if self._reading is None:
            self._reading = self.engine.connect()
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

    async def _write(self, work: Callable[[Session], T], *, aside: bool) -> T:
        if self._writer is not None:
            return await self._writer.submit(work, aside=aside)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.write_now, work)

    def write_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same in this thread, for the command line and for tests."""
        if self._writer is None:
            return self._until_no_deadlock(lambda s: function(s, *args, **kwargs))
        with self.engine.connect() as connection:
            _begin(connection)
            value = _run(connection, lambda s: function(s, *args, **kwargs))
            connection.commit()
            return value

    def _until_no_deadlock(self, work: Callable[[Session], T]) -> T:
        """Of two transactions that wait for each other PostgreSQL breaks one off: that one runs anew."""
        runs = 0
        while True:
            runs += 1
            try:
                with Session(self.engine, expire_on_commit=False) as session, session.begin():
                    return work(session)
            except OperationalError as error:
                if getattr(error.orig, "sqlstate", None) != _DEADLOCK or runs == _DEADLOCKS:
                    raise

    def read_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self.engine.connect() as connection:
            return self._over_snapshot(connection, lambda s: function(s, *args, **kwargs))

    def _over_snapshot(self, connection: Connection, function: Callable[[Session], T]) -> T:
        if self.dialect == "sqlite":
            _begin(connection, "BEGIN")
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        with Session(connection, expire_on_commit=False, autoflush=False) as session:
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


_Outcome = tuple[Any, Exception | None]


class _SQLiteWriter:
    """This process's one connection that writes to the file: one transaction at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "nod-write")
        self._waiting: deque[_Job] = deque()
        self._connection: Connection | None = None
        self._busy = False
        self._closed = False

    def submit(self, work: Callable[[Session], T], *, aside: bool = False) -> asyncio.Future[T]:
        if self._closed:
            raise RuntimeError("the database is closed")
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Job(work, ended, aside))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._next, loop)  # whoever is ready in this round of the loop comes along
        return ended

    def close(self) -> None:
        """Finish what is queued, in this thread."""
        self._closed = True
        self._thread.shutdown()
        while batch := self._take():
            _tell(batch, self._whole(batch))
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
        self._thread.submit(self._end, loop, batch, None if batch[0].aside else self._at_once(batch))

    def _end(
        self, loop: asyncio.AbstractEventLoop, batch: list[_Job], outcomes: list[_Outcome] | None
    ) -> None:
        """In the thread: wait for the disk, and do all of what was not done at once."""
        outcomes = self._whole(batch) if outcomes is None else self._commit(outcomes)
        loop.call_soon_threadsafe(self._ended, loop, batch, outcomes)

    def _ended(self, loop: asyncio.AbstractEventLoop, batch: list[_Job], outcomes: list[_Outcome]) -> None:
        _tell(batch, outcomes)
        loop.call_soon(self._next, loop)  # after the callers, who may have more for the next commit

    def _at_once(self, batch: list[_Job]) -> list[_Outcome] | None:
        """What came of each, without the commit; None where even to begin would mean to wait."""
        if self._connection is None:
            return None
        try:
            _begin(self._connection)
        except OperationalError:
            self._undo()
            return None
        return _outcomes(self._connection, batch)

    def _whole(self, batch: list[_Job]) -> list[_Outcome]:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            execute(self._connection, _PATIENCE)
            try:
                _begin(self._connection)
            finally:
                execute(self._connection, _AT_ONCE)
        except Exception as error:  # noqa: BLE001 - whatever it is, every caller must hear it
            self._undo()
            return [(None, error)] * len(batch)
        return self._commit(_outcomes(self._connection, batch))

    def _commit(self, outcomes: list[_Outcome]) -> list[_Outcome]:
        try:
            if self._connection is not None and any(error is None for _, error in outcomes):
                self._connection.commit()
                return outcomes
        except Exception as error:  # noqa: BLE001 - whatever broke the commit, every caller must hear it
            outcomes = [(None, error)] * len(outcomes)
        self._undo()
        return outcomes

    def _undo(self) -> None:
        if self._connection is not None:
            self._connection.rollback()
            driver: Any = self._connection.connection
            driver.rollback()  # a COMMIT that failed is over for SQLAlchemy, but not for SQLite


def _begin(connection: Connection, words: str = "BEGIN IMMEDIATE") -> None:
    connection.begin()  # SQLAlchemy's part: a session shall join this transaction, not end it
    execute(connection, words)


def _outcomes(connection: Connection, batch: list[_Job]) -> list[_Outcome]:
    try:
        if len(batch) == 1:  # nobody shares its fate, so it needs no savepoint
            return [(_run(connection, batch[0].work), None)]
        return [_one(connection, job.work) for job in batch]
    except Exception as error:  # noqa: BLE001 - handed to the callers
        return [(None, error)] * len(batch)


def _one(connection: Connection, work: Callable[[Session], Any]) -> _Outcome:
    execute(connection, "SAVEPOINT one")
    try:
        value = _run(connection, work)
    except Exception as error:  # noqa: BLE001 - handed to the caller; the others' work stands
        execute(connection, "ROLLBACK TO one")
        return None, error
    execute(connection, "RELEASE one")
    return value, None


def _run(connection: Connection, work: Callable[[Session], T]) -> T:
    with Session(connection, expire_on_commit=False, join_transaction_mode="rollback_only") as session:
        value = work(session)
        session.flush()
        return value


def _tell(batch: list[_Job], outcomes: list[_Outcome]) -> None:
    for job, (value, error) in zip(batch, outcomes, strict=True):
        if job.ended.done():
            continue  # its caller went away
        if error is None:
            job.ended.set_result(value)
        else:
            job.ended.set_exception(error)
