"""The processes on this database, and their leases. Others take over the work of a process whose row is gone.

A process shows that it lives by raising its ``beats``, at the same pace as the others. `FailureDetector` in
``bot/domain/jobs.py`` judges, without a clock, which processes have stopped, and their rows are removed. A
*lease* is a task that one process at a time may do, for as long as that process lives.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Field, Session
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.jobs import Process
from bot.errors import LeasedElsewhere
from bot.store.database import Database
from bot.store.inserts import insert_or_ignore
from bot.store.tables.row import Row, count_changed, table_of


class ProcessRow(Row, table=True):
    """A process that works on this database. A process without a row owns no work."""

    __tablename__ = "process"

    id: str = Field(primary_key=True)
    host: str
    pid: int
    began_at: datetime = Field(sa_type=UTCDateTime)
    beats: int = 0


class LeaseRow(Row, table=True):
    """A lease: a task by its name, such as polling Telegram, and the process that does it."""

    __tablename__ = "hold"

    name: str = Field(primary_key=True)
    owner: str


_PROCESS = table_of(ProcessRow)
_LEASE = table_of(LeaseRow)


def has_no_living_owner(owner: Any, process: Any) -> ColumnElement[bool]:
    """Return the SQL condition that no living process has the id in the column ``owner``, or it is NULL.

    ``process``: the id of the process that asks, which counts as living.
    """
    is_registered = exists().where(_PROCESS.c.id == owner)
    condition: ColumnElement[bool] = owner.is_(None) | ((owner != process) & ~is_registered)
    return condition


def enter_process(session: Session, process: Process, now: datetime) -> None:
    """Register this process."""
    values = {"id": process.id, "host": process.host, "pid": process.pid, "began_at": now, "beats": 0}
    session.execute(insert_or_ignore(session, ProcessRow), values)


def enter_alone(session: Session, process: Process, now: datetime) -> None:
    """Register this process and remove all others, none of which can be at work."""
    session.execute(delete(_PROCESS).where(_PROCESS.c.id != process.id))
    enter_process(session, process, now)


def raise_beats(session: Session, process: Process, now: datetime) -> dict[str, int]:
    """Raise the beats of this process by one, also if its row was removed; return those of the others."""
    mine = update(_PROCESS).where(_PROCESS.c.id == process.id)
    if not count_changed(session.execute(mine.values(beats=_PROCESS.c.beats + 1))):
        enter_process(session, process, now)
    others = select(_PROCESS).where(_PROCESS.c.id != process.id)
    return {row.id: row.beats for row in session.execute(others)}


def forget_processes(session: Session, silent: Mapping[str, int]) -> list[str]:
    """Remove these processes and their leases, unless their beats were raised since; return the removed ids.

    ``silent``: the beats at which each process stopped, by its id.
    """
    gone = []
    for process_id, beats in silent.items():
        is_silent = (_PROCESS.c.id == process_id) & (_PROCESS.c.beats == beats)
        if count_changed(session.execute(delete(_PROCESS).where(is_silent))):
            gone.append(process_id)
    if gone:
        session.execute(delete(_LEASE).where(_LEASE.c.owner.in_(gone)))
    return gone


def leave_process(session: Session, process: Process) -> None:
    """Remove this process, which ends in order, and its leases."""
    session.execute(delete(_LEASE).where(_LEASE.c.owner == process.id))
    session.execute(delete(_PROCESS).where(_PROCESS.c.id == process.id))


def take_lease(session: Session, name: str, process: str) -> str:
    """Take the lease on a name if no living process has it, and return its owner."""
    has_name = _LEASE.c.name == name
    may_be_taken = (_LEASE.c.owner == process) | has_no_living_owner(_LEASE.c.owner, process)
    while True:
        new = insert_or_ignore(session, LeaseRow, "owner")
        if session.execute(new, {"name": name, "owner": process}).first():
            return process
        session.execute(update(_LEASE).where(has_name, may_be_taken).values(owner=process))
        owner = session.execute(select(_LEASE.c.owner).where(has_name)).scalar()
        if owner:  # else the lease was released in this moment: try again
            return str(owner)


def release_lease(session: Session, name: str, process: str) -> None:
    """Give back the lease on a name."""
    session.execute(delete(_LEASE).where(_LEASE.c.name == name, _LEASE.c.owner == process))


class Leases:
    """The leases of this process, such as for posting in a conversation or redrawing the cards of an answer.

    Leases keep other processes out; within this process, the caller makes sure that no name is held twice at
    the same time. On SQLite there is a single process, so a lease needs no row.
    """

    def __init__(self, database: Database, process: str) -> None:
        self._database = database
        self._process = process
        self._held: set[str] = set()

    def has(self, name: str) -> bool:
        """Return whether this process holds the lease on a name now."""
        return name in self._held

    @contextlib.asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        """Hold the lease on a name in the context; raises LeasedElsewhere if another process has it."""
        shared = self._database.dialect == "postgresql"
        if shared:
            owner = await self._database.write(take_lease, name, self._process)
            if owner != self._process:
                raise LeasedElsewhere(owner)
        self._held.add(name)
        try:
            yield
        finally:
            self._held.discard(name)
            if shared:
                with contextlib.suppress(SQLAlchemyError):  # then this process keeps the lease
                    await self._database.write(release_lease, name, self._process)
