"""The one bridge between asyncio and the synchronous store.

A store function takes a `Session` first and is one short transaction. `Database.write` and `Database.read`
run it as a whole in a worker thread, so no transaction can be open across an ``await``.

SQLite has one writer thread. Functions that queue up while it works share one transaction, each in its own
savepoint, and so one fsync; a caller continues only after that commit is on disk (``synchronous=FULL``).
PostgreSQL has a small pool of threads, each function a transaction of its own.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlmodel import Session

P = ParamSpec("P")
T = TypeVar("T")

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA busy_timeout=10000",
    "PRAGMA foreign_keys=ON",
    "PRAGMA cache_size=-16000",
)
_MAX_BATCH = 64
_POSTGRES_THREADS = 8


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
    """Runs store functions in transactions, off the event loop."""

    def __init__(self, url: str) -> None:
        self.engine = open_engine(url)
        self.dialect: str = self.engine.dialect.name
        self._writer: _SQLiteWriter | None = None
        self._reading: Connection | None = None  # SQLite: the reader thread's own, kept open
        if self.dialect == "sqlite":
            self._writer = _SQLiteWriter(self.engine)
            self._readers = ThreadPoolExecutor(1, "nod-read")
        else:
            self._readers = ThreadPoolExecutor(_POSTGRES_THREADS, "nod-db")

    async def write(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``function(session, …)`` in a transaction and return after its commit."""
        if self._writer is not None:
            return await asyncio.wrap_future(self._writer.submit(lambda s: function(s, *args, **kwargs)))
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, lambda: self.write_now(function, *args, **kwargs)
        )

    async def read(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``function(session, …)`` over one snapshot; it must not write."""
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, lambda: self._read(lambda s: function(s, *args, **kwargs))
        )

    def write_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same in this thread, for the command line and for tests."""
        if self._writer is not None:
            return self._writer.submit(lambda s: function(s, *args, **kwargs)).result()
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            return function(session, *args, **kwargs)

    def read_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self.engine.connect() as connection:
            return self._over_snapshot(connection, lambda s: function(s, *args, **kwargs))

    def _read(self, function: Callable[[Session], T]) -> T:
        if self._writer is None:
            return self.read_now(function)
        if self._reading is None:
            self._reading = self.engine.connect()
        return self._over_snapshot(self._reading, function)

    def _over_snapshot(self, connection: Connection, function: Callable[[Session], T]) -> T:
        if self.dialect == "sqlite":
            connection.exec_driver_sql("BEGIN")
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
        self._readers.shutdown()
        if self._reading is not None:
            self._reading.close()
        self.engine.dispose()


_Job = tuple[Callable[[Session], Any], "Future[Any]"]
_Outcome = tuple[Any, BaseException | None]


class _SQLiteWriter:
    """The only thread that writes to the file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="nod-write", daemon=True)
        self._closed = False
        self._connection: Connection | None = None
        self._thread.start()

    def submit(self, function: Callable[[Session], T]) -> "Future[T]":
        future: Future[T] = Future()
        if self._closed:
            raise RuntimeError("the database is closed")
        self._jobs.put((function, future))
        return future

    def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        with contextlib.ExitStack() as stack:
            while (job := self._jobs.get()) is not None:
                batch = [job]
                while len(batch) < _MAX_BATCH:
                    try:
                        more = self._jobs.get_nowait()
                    except queue.Empty:
                        break
                    if more is None:
                        self._jobs.put(None)
                        break
                    batch.append(more)
                self._commit(stack, [j for j in batch if j[1].set_running_or_notify_cancel()])

    def _commit(self, stack: contextlib.ExitStack, batch: list[_Job]) -> None:
        connection = self._connection
        outcomes: list[_Outcome]
        try:
            if connection is None:
                connection = self._connection = stack.enter_context(self._engine.connect())
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            if len(batch) == 1:  # nobody shares its fate, so it needs no savepoint
                outcomes = [(_run(connection, batch[0][0]), None)]
            else:
                outcomes = [self._one(connection, work) for work, _ in batch]
            connection.commit()
        except BaseException as error:  # noqa: BLE001 - whatever broke the commit, every caller must hear it
            if connection is not None:
                connection.rollback()
                driver: Any = connection.connection
                driver.rollback()  # a COMMIT that failed is over for SQLAlchemy, but not for SQLite
            outcomes = [(None, error) for _ in batch]
        for (_, future), (value, failure) in zip(batch, outcomes, strict=True):
            if failure is None:
                future.set_result(value)
            else:
                future.set_exception(failure)

    @staticmethod
    def _one(connection: Connection, work: Callable[[Session], Any]) -> _Outcome:
        connection.exec_driver_sql("SAVEPOINT one")
        try:
            value = _run(connection, work)
        except Exception as error:  # noqa: BLE001 - handed to the caller; the others' work stands
            connection.exec_driver_sql("ROLLBACK TO one")
            return None, error
        connection.exec_driver_sql("RELEASE one")
        return value, None


def _run(connection: Connection, work: Callable[[Session], T]) -> T:
    with Session(connection, expire_on_commit=False, join_transaction_mode="rollback_only") as session:
        value = work(session)
        session.flush()
        return value
