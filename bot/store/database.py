"""The database behind an asyncio interface: synchronous transactions, run in threads.

A store function takes a `Session` first and is one short transaction. `Database.write` and `Database.read`
run it in a thread, from BEGIN to COMMIT, so no transaction can be open while anything else is awaited.

SQLite's file has one writer, so there is one thread that writes. Writes that wait for it share the next
transaction, and so one wait for the disk; where one of them fails, they run again, each in a savepoint of its
own. A caller continues only after the
commit is on disk (``synchronous=FULL``).
"""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar, TypeVarTuple

from sqlalchemy import Connection, event, make_url, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from bot.errors import LostRace
from bot.store.audit import chain
from bot.store.engine import (
    PATIENCE,
    POSTGRES_WRITERS,
    READERS,
    open_engine,
)
from bot.telemetry.outages import FileFault, is_damage

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_CHECK, _CHECKED = 2.0, 2.0  # seconds
_DEADLOCK = "40P01"  # PostgreSQL's code for it
_TRIES = 8  # times one write may run
_MAX_BATCH = 64  # writes that share a transaction on SQLite
_IN_A_ROW = 16  # of the first that go before one of the rest, so that none waits for good

NOTHING: Mapping[str, Any] = MappingProxyType({})
READ_ONCE = "read once"
"""Where a session that reads one snapshot to its end, and changes nothing, has a dictionary for it."""

_Outcome = tuple[Any, BaseException | None]  # a value, or a fault


_Identity = tuple[int, int]  # device and inode

_TOUCHES = (
    f"SET LOCAL lock_timeout = '{_CHECK / 2:.0f}s'",
    "LOCK TABLE conversation, message, turn, proposal, audit IN ROW EXCLUSIVE MODE",
    "UPDATE turn SET state = state WHERE false",  # refused where nothing may be written
    "SELECT pg_current_xact_id()",
)


class SQLiteFile:
    """The file behind the open connections of this process: it may be moved or damaged while Nod runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: _Identity | None = None
        self._damaged = False

    def opened(self, *_: object) -> None:
        """Note an opened connection; the first one identifies the file."""
        self._opened = self._opened or self._identity()

    def check(self) -> None:
        """Raise FileFault where what is written now would be lost, or written to a damaged file."""
        if self._damaged:
            raise FileFault(
                f"The database file {self._path.name} is damaged. Stop Nod, and restore a backup."
            )
        if self._opened is not None and self._opened != self._identity():
            raise FileFault(
                f"The database file {self._path.name} was moved or replaced while Nod ran. "
                "Put it back, or restart Nod."
            )

    def failed(self, error: BaseException) -> None:
        """Check the file after a failed statement.

        Raises FileFault where it is damaged, as does each `check` from then on.
        """
        if isinstance(error, DBAPIError) and is_damage(error):
            self._damaged = True
            self.check()

    def _identity(self) -> _Identity | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


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
        self.engine = open_engine(url, audit_keys, readonly=readonly, patience=patience)
        self.dialect: str = self.engine.dialect.name
        self._file: SQLiteFile | None = None
        if self.dialect == "sqlite":
            self._snapshots = self.engine
            self._file = SQLiteFile(Path(make_url(url).database or ""))
            event.listen(self.engine, "connect", self._file.opened)
        else:
            self._snapshots = self.engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        self.info: dict[str, Any] = {}  # what every session of it carries
        self._writable_until = 0.0  # of time.monotonic()
        self._waiting = _Waiting()
        self._writers = ThreadPoolExecutor(1 if self._file else POSTGRES_WRITERS, "nod-write")
        self._readers = ThreadPoolExecutor(READERS, "nod-read")

    @property
    def there(self) -> bool:
        """True if there is something to look at; SQLite would make the file."""
        return self.dialect != "sqlite" or Path(self.engine.url.database or "").exists()

    async def write(self, function: Callable[[Session, *Ts], T], *args: *Ts, first: bool = False) -> T:
        """Run ``function(session, …)`` in a transaction and return after its commit.

        What ``function`` takes by keyword comes with `functools.partial`, as in asyncio.
        ``first``: before everything else that waits, since a person waits for it.
        Raises LostRace where others were faster every time. What ``function`` is given must not be a row
        that was read earlier: a second run would find it as stale as the first.
        """
        write: _Write = _Write(lambda session: function(session, *args))
        self._waiting.add(write, first=first)
        self._writers.submit(self._write_together if self._file else self._write_next)
        try:
            value: T = await asyncio.wrap_future(write.ended)
        except DBAPIError as error:
            if self._file:
                self._file.failed(error)
            raise
        return value

    async def read(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``function(session, …)`` over one snapshot; it must not write."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, lambda: self.read_now(function, *args, **kwargs))

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

    def write_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a write in this thread, for the command line and tests; else like `write`."""
        return self._write(lambda session: function(session, *args, **kwargs))

    def read_now(
        self, function: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a read in this thread; else like `read`."""

        def once() -> T:
            with self._snapshots.connect() as connection:
                if self._file:
                    connection.exec_driver_sql("BEGIN")
                info = {READ_ONCE: {}, **self.info}
                with Session(connection, autoflush=False, expire_on_commit=False, info=info) as session:
                    value = function(session, *args, **kwargs)
                    if not self._file:
                        session.commit()  # psycopg forgets what it has prepared at a ROLLBACK
                    return value

        try:
            return _until_done(once)
        except DBAPIError as error:
            if self._file:
                self._file.failed(error)
            raise

    def close(self) -> None:
        """Finish what is queued, then let go of every connection."""
        self._writers.shutdown()
        self._readers.shutdown()
        self.engine.dispose()

    def _write(self, work: Callable[[Session], T]) -> T:
        """Run a write in a transaction of its own."""

        def once() -> T:
            with self._writing() as connection:
                return run_in_transaction(connection, work, self.info)

        return _until_done(once)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Begin a write transaction; on SQLite it waits until no other one is open."""
        with self.engine.begin() as connection:
            if self._file:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def _write_next(self) -> None:
        """Do the next write, in a thread, on PostgreSQL."""
        for write in self._waiting.take(1):
            try:
                write.ended.set_result(self._write(write.work))
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                write.ended.set_exception(error)

    def _write_together(self) -> None:
        """Do all waiting writes in one transaction, in the writer's thread, on SQLite.

        Where another process keeps the file for too long, those fail that waited for all of that time.
        """
        writes = self._waiting.take(_MAX_BATCH)
        if not writes:
            return  # an earlier transaction took it along
        outcomes: Sequence[_Outcome]
        try:
            if self._file:
                self._file.check()
            outcomes = self._run_together(writes)
        except BaseException as error:  # noqa: BLE001 - whatever it is, every caller must get it
            outcomes = [(None, error)] * len(writes)
        for write, (value, fault) in zip(writes, outcomes, strict=True):
            if fault is None:
                write.ended.set_result(value)
            else:
                write.ended.set_exception(fault)

    def _run_together(self, writes: "list[_Write]") -> Sequence[_Outcome]:
        """Run these writes and those that came since in one transaction, which links the audit log once.

        Where one fails nothing of it is kept, and all run again, each in a savepoint of its own.
        """
        try:
            with self._writing() as connection:
                writes += self._waiting.take(_MAX_BATCH - len(writes))
                works = [write.work for write in writes]
                return [(value, None) for value in _run_all(connection, works, self.info)]
        except (FileFault, OperationalError):  # which would meet every one of them
            raise
        except Exception:
            if len(writes) == 1:
                raise
        with self._writing() as connection:
            return [_in_savepoint(connection, write.work, self.info) for write in writes]


def is_snapshot(session: Session) -> bool:
    """Return whether it only reads, so that all it sees is committed."""
    return READ_ONCE in session.info


def keep_read(session: Session, key: Hashable, found: object) -> None:
    """Cache a value that another statement has read, so that `once` need not read it in this snapshot."""
    kept = session.info.get(READ_ONCE)
    if kept is not None:
        kept[key] = found


def once(session: Session, key: Hashable, read: Callable[[], T]) -> T:
    """Return ``read()``, cached for the rest of this snapshot."""
    kept = session.info.get(READ_ONCE)
    if kept is None:
        return read()
    if key not in kept:
        kept[key] = read()
    found: T = kept[key]
    return found


def _until_done(transaction: Callable[[], T]) -> T:
    """Run it again where another one was faster, or PostgreSQL ended it before its COMMIT."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(LostRace):
            try:
                return transaction()
            except OperationalError as error:
                lost = error.connection_invalidated and error.statement is not None  # which a COMMIT has not
                if not lost and getattr(error.orig, "sqlstate", None) != _DEADLOCK:
                    raise
    return transaction()


def run_in_transaction(
    connection: Connection, work: Callable[[Session], T], info: Mapping[str, Any] = NOTHING
) -> T:
    """Run a store function in the transaction of this connection, which its caller commits."""
    [value] = _run_all(connection, [work], info)
    return value


def _run_all(
    connection: Connection, works: Sequence[Callable[[Session], T]], info: Mapping[str, Any]
) -> list[T]:
    """Run each in a session of its own, and add what all of them recorded to the audit log at the end."""
    added = chain.Additions()
    values = []
    for work in works:
        with Session(
            connection,
            expire_on_commit=False,
            join_transaction_mode="rollback_only",
            info={chain.ADDITIONS: added, **info},
        ) as session:
            values.append(work(session))
            session.flush()
    chain.link(connection, added)
    return values


def _in_savepoint(
    connection: Connection, work: Callable[[Session], Any], info: Mapping[str, Any]
) -> _Outcome:
    """Run one write in a savepoint, so that its failure leaves the others' work intact."""
    try:
        with connection.begin_nested():
            return run_in_transaction(connection, work, info), None
    except Exception as error:  # noqa: BLE001 - handed to the caller
        return None, error


@dataclass(frozen=True, slots=True)
class _Write:
    """A store function that waits for a thread."""

    work: Callable[[Session], Any]
    ended: Future[Any] = field(default_factory=Future)


class _Waiting:
    """A thread-safe queue of writes; those that a person waits for come first."""

    def __init__(self) -> None:
        self._first: deque[_Write] = deque()
        self._rest: deque[_Write] = deque()
        self._in_a_row = 0
        self._lock = threading.Lock()

    def add(self, write: _Write, *, first: bool) -> None:
        with self._lock:
            (self._first if first else self._rest).append(write)

    def take(self, most: int) -> list[_Write]:
        """Take up to ``most`` writes from the queue, without those whose callers are gone."""
        taken: list[_Write] = []
        with self._lock:
            while len(taken) < most and (self._first or self._rest):
                write = self._next()
                if write.ended.set_running_or_notify_cancel():
                    taken.append(write)
        return taken

    def _next(self) -> _Write:
        enough = self._in_a_row >= _IN_A_ROW and self._rest
        if not self._first or enough:
            self._in_a_row = 0
            return self._rest.popleft()
        self._in_a_row = self._in_a_row + 1 if self._rest else 0
        return self._first.popleft()


def _touch(session: Session) -> None:
    """Write to the disk without a change of any row."""
    if session.connection().dialect.name == "sqlite":
        number = session.execute(text("PRAGMA user_version")).scalar_one()
        session.execute(text(f"PRAGMA user_version = {(number + 1) % 1000}"))
    else:
        for words in _TOUCHES:
            session.execute(text(words))
