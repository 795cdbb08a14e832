"""Writes to SQLite's file, one transaction at a time; those that are ready together share one."""

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from bot.store.quick import Quick
from bot.store.sqlite_file import SQLiteFile
from bot.store.transaction import begin, execute, run
from bot.store.waiting_line import WaitingLine

T = TypeVar("T")

_AT_ONCE = "PRAGMA busy_timeout=0"
# An unsynced commit moves no log into the file either, which would wait for the disk.
_SYNCED = ("PRAGMA synchronous=FULL", "PRAGMA wal_autocheckpoint=1000")
_UNSYNCED = ("PRAGMA synchronous=NORMAL", "PRAGMA wal_autocheckpoint=0")
_MAX_BATCH = 64


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Session], Any]
    ended: asyncio.Future[Any]
    aside: bool
    synced: bool
    first: bool  # a person waits for it
    deadline: float  # of time.monotonic(): until then it waits for another process


_Outcome = tuple[Any, Exception | None] | None  # None: its time is not over, so it is tried again


class SQLiteWriter:
    """This process's one connection that writes to the file: one transaction at a time."""

    def __init__(self, engine: Engine, patience: float, file: SQLiteFile) -> None:
        self._engine = engine
        self._file = file
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, "nod-write")
        self._waiting: WaitingLine[_Job] = WaitingLine()
        self._connection: Connection | None = None
        self._busy = False
        self._closed = False
        self._synced = True  # how the connection commits

    def submit(
        self, work: Callable[[Session], T], *, aside: bool, synced: bool, first: bool
    ) -> asyncio.Future[T]:
        if self._closed:
            raise RuntimeError("the database is closed")
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()
        job = _Job(work, ended, aside, synced, first, time.monotonic() + self._patience)
        self._waiting.add(job, first=first)
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
            if batch and (batch[0].aside or self._waiting.next().aside):
                break
            job = self._waiting.take()
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
        self._file.check()
        if synced is not self._synced:
            self._synced = False  # until all of it was done
            for pragma in _SYNCED if synced else _UNSYNCED:
                execute(connection, pragma)
            self._synced = synced
        begin(connection)

    def _whole(self, batch: list[_Job]) -> list[_Outcome]:
        try:
            if self._connection is None:
                self._connection = Quick(self._engine)
            left = max(0.0, min(job.deadline for job in batch) - time.monotonic())
            execute(self._connection, f"PRAGMA busy_timeout={left * 1000:.0f}")
            try:
                self._begin(self._connection, synced=True)
            finally:
                execute(self._connection, _AT_ONCE)
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
        for job in reversed(again):
            self._waiting.put_back(job, first=job.first)

    def _undo(self) -> None:
        if self._connection is not None:
            self._connection.rollback()
            driver: Any = self._connection.connection
            driver.rollback()  # a COMMIT that failed is over for SQLAlchemy, but not for SQLite


def _synced(batch: Sequence[_Job]) -> bool:
    """Whether the disk has to be waited for."""
    return any(job.synced for job in batch)


def _busy(error: Exception) -> bool:
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return bool(code & 0xFF == sqlite3.SQLITE_BUSY)


def _outcomes(connection: Connection, batch: list[_Job]) -> list[_Outcome]:
    try:
        if len(batch) == 1:  # it is alone in the transaction, so it needs no savepoint
            return [(run(connection, batch[0].work), None)]
        return [_one(connection, job.work) for job in batch]
    except Exception as error:  # noqa: BLE001 - handed to the callers
        return [(None, error)] * len(batch)


def _one(connection: Connection, work: Callable[[Session], Any]) -> _Outcome:
    execute(connection, "SAVEPOINT one")
    try:
        value = run(connection, work)
    except Exception as error:  # noqa: BLE001 - handed to the caller; the others' work stands
        execute(connection, "ROLLBACK TO one")
        return None, error
    execute(connection, "RELEASE one")
    return value, None
