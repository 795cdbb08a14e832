"""The database behind an asyncio interface: synchronous transactions, run in threads.

A *store function* takes a `Session` first and is one short transaction. `Database.write` and `Database.read`
run it in a thread, from BEGIN to COMMIT, so no transaction can be open while anything else is awaited. Most
other modules of this folder are store functions and what they return.

SQLite's file has one writer, so there is one thread that writes. Writes that wait for the thread share
the next transaction, and so one wait for the disk. Where one of the writes fails, all run again, each in a
savepoint of its own. A caller continues only after the commit is on disk (``synchronous=FULL``). PostgreSQL
has several threads that write, each write in a transaction of its own.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, TypeVarTuple

from sqlalchemy import Connection, event, make_url, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from bot.errors import LostRace
from bot.store.audit import chain
from bot.store.engine import LOCK_PATIENCE_SECONDS, POSTGRES_WRITERS, READERS, open_engine
from bot.store.sqlite_file import SQLiteFile
from bot.store.write_queue import QueuedWrite, WriteQueue
from bot.telemetry.outages import FileFault

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_CHECK_TIMEOUT_SECONDS = 2.0
_CHECK_VALID_SECONDS = 2.0
_DEADLOCK = "40P01"  # PostgreSQL's code for a deadlock
_MAX_TRIES = 8  # the most tries of one transaction
_MAX_BATCH = 64  # writes that share a transaction on SQLite

EMPTY_INFO: Mapping[str, Any] = MappingProxyType({})
"""An empty ``info`` of a session, the dictionary in which it has what store functions need."""
SNAPSHOT_CACHE = "read once"
"""The key of the cache in the ``info`` of a session that reads one snapshot and changes nothing."""

# for `_touch`: write to PostgreSQL's disk without changing a row, by taking the number of a transaction
_TOUCH_STATEMENTS = (
    f"SET LOCAL lock_timeout = '{_CHECK_TIMEOUT_SECONDS / 2:.0f}s'",
    "LOCK TABLE conversation, message, turn, proposal, audit IN ROW EXCLUSIVE MODE",
    "UPDATE turn SET state = state WHERE false",  # the database refuses this where nothing may be written
    "SELECT pg_current_xact_id()",
)


class _Outcome(NamedTuple):
    """The outcome of a write: a value, or the fault with which it failed."""

    value: Any
    fault: BaseException | None = None


class Database:
    """Runs store functions in transactions."""

    def __init__(
        self,
        url: str,
        audit_keys: Sequence[bytes] = (),
        *,
        readonly: bool = False,
        patience: float = LOCK_PATIENCE_SECONDS,
    ) -> None:
        """``readonly``: no file is changed or made.

        ``patience``: seconds that a write waits while another process writes to SQLite's file; then it fails.
        """
        self.engine = open_engine(url, audit_keys, readonly=readonly, patience=patience)
        self.dialect: str = self.engine.dialect.name
        self._file: SQLiteFile | None = None
        if self.dialect == "sqlite":
            self._snapshots = self.engine
            self._file = SQLiteFile(Path(make_url(url).database or ""))
            event.listen(self.engine, "connect", self._file.on_connect)
        else:
            self._snapshots = self.engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        self.info: dict[str, Any] = {}  # copied into the ``info`` of every session
        self._writable_until = 0.0  # the last check is valid until then, in seconds of time.monotonic()
        self._queue = WriteQueue()
        self._writers = ThreadPoolExecutor(1 if self._file else POSTGRES_WRITERS, "nod-write")
        self._readers = ThreadPoolExecutor(READERS, "nod-read")

    @property
    def exists(self) -> bool:
        """True unless SQLite's file is missing; a connection would create it."""
        return self.dialect != "sqlite" or Path(self.engine.url.database or "").exists()

    async def write(self, function: Callable[[Session, *Ts], T], *args: *Ts, urgent: bool = False) -> T:
        """Run ``function(session, …)`` in a transaction and return after its commit.

        - ``function`` may run several times, so it must itself read the rows that it changes: a row that its
          caller has read may be stale by then
        - ``args``: its arguments; keyword arguments are given with `functools.partial`, as in asyncio
        - ``urgent``: this write comes before others that wait, since a person waits for it

        Raises LostRace if other transactions were faster each time.
        """
        write: QueuedWrite = QueuedWrite(lambda session: function(session, *args))
        self._queue.add(write, urgent=urgent)
        # a thread takes the write that is next, perhaps another one, or all that wait
        self._writers.submit(self._do_waiting_writes if self._file else self._do_next_write)
        try:
            value: T = await asyncio.wrap_future(write.ended)
        except DBAPIError as error:
            if self._file:
                self._file.on_error(error)
            raise
        return value

    async def read(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``function(session, …)`` in a thread, over one snapshot of the database; it must not write."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, lambda: self.read_now(function, *args, **kwargs))

    async def check_writable(self) -> None:
        """Write to the disk without a change, unless that succeeded a moment ago (`_CHECK_VALID_SECONDS`).

        Raises SQLAlchemyError, or TimeoutError after `_CHECK_TIMEOUT_SECONDS`.
        """
        if self._file:
            self._file.check()
        if time.monotonic() < self._writable_until:
            return
        async with asyncio.timeout(_CHECK_TIMEOUT_SECONDS):
            await self.write(_touch)
        self._writable_until = time.monotonic() + _CHECK_VALID_SECONDS

    def write_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a write in this thread, for the command line and tests; else like `write`."""
        return self._write_alone(lambda session: function(session, *args, **kwargs))

    def read_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a read in this thread; else like `read`."""

        def run_once() -> T:
            with self._snapshots.connect() as connection:
                if self._file:
                    connection.exec_driver_sql("BEGIN")
                info = {SNAPSHOT_CACHE: {}, **self.info}
                with Session(connection, autoflush=False, expire_on_commit=False, info=info) as session:
                    value = function(session, *args, **kwargs)
                    if not self._file:
                        session.commit()  # psycopg forgets its prepared statements at a ROLLBACK
                    return value

        try:
            return _repeat_until_done(run_once)
        except DBAPIError as error:
            if self._file:
                self._file.on_error(error)
            raise

    def close(self) -> None:
        """Finish the queued writes, then close every connection."""
        self._writers.shutdown()
        self._readers.shutdown()
        self.engine.dispose()

    def _write_alone(self, work: Callable[[Session], T]) -> T:
        """Run a write in a transaction of its own."""

        def run_once() -> T:
            with self._begin_write() as connection:
                return run_in_transaction(connection, work, self.info)

        return _repeat_until_done(run_once)

    @contextlib.contextmanager
    def _begin_write(self) -> Iterator[Connection]:
        """Begin a write transaction; on SQLite, wait until no other is open."""
        with self.engine.begin() as connection:
            if self._file:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def _do_next_write(self) -> None:
        """Do the next write, in a thread, on PostgreSQL."""
        for write in self._queue.take(1):
            try:
                write.ended.set_result(self._write_alone(write.work))
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                write.ended.set_exception(error)

    def _do_waiting_writes(self) -> None:
        """Do all waiting writes in one transaction, in the writer's thread, on SQLite.

        If another process keeps the file locked for too long, all these writes fail.
        """
        writes = self._queue.take(_MAX_BATCH)
        if not writes:
            return  # an earlier transaction has done this write, too
        outcomes: Sequence[_Outcome]
        try:
            if self._file:
                self._file.check()
            outcomes = self._run_in_one_transaction(writes)
        except BaseException as error:  # noqa: BLE001 - whatever it is, every caller must get it
            outcomes = [_Outcome(None, error)] * len(writes)
        for write, (value, fault) in zip(writes, outcomes, strict=True):
            if fault is None:
                write.ended.set_result(value)
            else:
                write.ended.set_exception(fault)

    def _run_in_one_transaction(self, writes: list[QueuedWrite]) -> Sequence[_Outcome]:
        """Run these writes, and those that came since, in one transaction, which adds to the audit log once.

        The writes that came since are appended to ``writes``, also for the caller. The outcomes are in the
        order of this list. If one write fails, the transaction is rolled back, and all run again, each in a
        savepoint of its own.
        """
        try:
            with self._begin_write() as connection:
                writes += self._queue.take(_MAX_BATCH - len(writes))
                works = [write.work for write in writes]
                return [_Outcome(value) for value in _run_all(connection, works, self.info)]
        except (FileFault, OperationalError):  # each write would fail the same way alone
            raise
        except Exception:
            if len(writes) == 1:
                raise
            # otherwise the others may succeed without the one that failed
        with self._begin_write() as connection:
            return [_in_savepoint(connection, write.work, self.info) for write in writes]


def is_snapshot(session: Session) -> bool:
    """Return whether a session only reads, over one snapshot, so that it sees only committed rows."""
    return SNAPSHOT_CACHE in session.info


def cache_read(session: Session, key: Hashable, value: object) -> None:
    """Cache a value that another statement has read, for `read_once` in this snapshot."""
    cache = session.info.get(SNAPSHOT_CACHE)
    if cache is not None:
        cache[key] = value


def read_once(session: Session, key: Hashable, read: Callable[[], T]) -> T:
    """Return ``read()``, cached for the rest of this snapshot.

    A transaction that writes has no cache, since its own changes would make the values stale.
    """
    cache = session.info.get(SNAPSHOT_CACHE)
    if cache is None:
        return read()
    if key not in cache:
        cache[key] = read()
    value: T = cache[key]
    return value


def _repeat_until_done(transaction: Callable[[], T]) -> T:
    """Run a transaction, again if another one was faster or if PostgreSQL ended it before its COMMIT.

    After `_MAX_TRIES` tries, the last error is raised.
    """
    for _ in range(_MAX_TRIES - 1):
        with contextlib.suppress(LostRace):
            try:
                return transaction()
            except OperationalError as error:
                # a COMMIT has no ``statement``; after a lost COMMIT, no one knows if it was carried out
                is_lost_before_commit = error.connection_invalidated and error.statement is not None
                is_deadlock = getattr(error.orig, "sqlstate", None) == _DEADLOCK
                if not is_lost_before_commit and not is_deadlock:
                    raise
    return transaction()


def run_in_transaction(
    connection: Connection, work: Callable[[Session], T], info: Mapping[str, Any] = EMPTY_INFO
) -> T:
    """Run a store function in the transaction of this connection, which its caller commits."""
    [value] = _run_all(connection, [work], info)
    return value


def _run_all(
    connection: Connection, works: Sequence[Callable[[Session], T]], info: Mapping[str, Any]
) -> list[T]:
    """Run each function in a session of its own, then add what all of them recorded to the audit log."""
    new_rows = chain.NewRows()
    values = []
    for work in works:
        with Session(
            connection,
            expire_on_commit=False,
            join_transaction_mode="rollback_only",
            info={chain.NEW_ROWS_KEY: new_rows, **info},
        ) as session:
            values.append(work(session))
            session.flush()
    chain.insert_rows(connection, new_rows)
    return values


def _in_savepoint(
    connection: Connection, work: Callable[[Session], Any], info: Mapping[str, Any]
) -> _Outcome:
    """Run one write in a savepoint, so that its failure leaves the others' work intact."""
    try:
        with connection.begin_nested():
            return _Outcome(run_in_transaction(connection, work, info))
    except Exception as error:  # noqa: BLE001 - handed to the caller
        return _Outcome(None, error)


def _touch(session: Session) -> None:
    """Write to the disk without a change of any row."""
    if session.connection().dialect.name == "sqlite":
        number = session.execute(text("PRAGMA user_version")).scalar_one()
        next_number = (number + 1) % 1000  # it only has to change
        session.execute(text(f"PRAGMA user_version = {next_number}"))
    else:
        for statement in _TOUCH_STATEMENTS:
            session.execute(text(statement))
