"""Schedules as rows: made, due, run once, paused, ended. What people do to them is in the audit log.

Any number of processes may look for what is due: a run is one guarded UPDATE (`take`).
"""

from collections.abc import Collection
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, literal_column, text, update
from sqlmodel import Session, col, select

from bot.domain.people import Actor
from bot.domain.proposals import SETTLED
from bot.features.schedules.schedule import Schedule
from bot.features.schedules.tables import LIVE, SCHEDULE, ScheduleRow
from bot.store.audit import admin_changes
from bot.store.audit.log import By
from bot.store.tables.conversations import ConversationRow, TurnRow, inside
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import among, count_changed, table_of, value_of

_ROW = table_of(ScheduleRow)
_OPEN = _ROW.c.ended_at.is_(None)
_LIVE = text(LIVE)
_WANTED_THERE = (
    select(TurnRow.id)
    .where(
        TurnRow.conversation_id == _ROW.c.conversation_id, col(TurnRow.state) == literal_column("'wanted'")
    )
    .correlate(_ROW)
)
_TOLERATED = timedelta(minutes=1)  # between the clocks of two processes
_LISTED = 200


def add_schedule(session: Session, made: Schedule, by: By, now: datetime) -> None:
    """Store a new one."""
    same = {each.name: getattr(made, each.name) for each in fields(made)}
    row = ScheduleRow(**same | {"person": str(made.person), "name": made.person.name})
    session.add(row)
    admin_changes.record(session, SCHEDULE, made.id, by, None, _state(row), now)


def get(session: Session, ident: str) -> Schedule | None:
    """Return the schedule with this id, or the only one whose id begins with it."""
    if not (ident.isalnum() and ident.isascii()):
        return None
    at = col(ScheduleRow.id)  # LIKE finds nothing by an index
    near = (at >= ident, at < f"{ident}z", at.startswith(ident, autoescape=True))
    found = session.exec(select(ScheduleRow).where(*near).limit(2)).all()
    if len(found) == 1:
        return _schedule(found[0])
    return None


def of_people(session: Session, accounts: Collection[str] | None, *, ended: bool = False) -> list[Schedule]:
    """Return the schedules of a person with these accounts, or everyone's (None), the next due first."""
    which = select(ScheduleRow) if ended else select(ScheduleRow).where(_OPEN)
    if accounts is not None:
        which = which.where(_ROW.c.person.in_(sorted(accounts)))
    rows = session.exec(which.order_by(_ROW.c.due_at.is_(None), _ROW.c.due_at, _ROW.c.id).limit(_LISTED))
    return [_schedule(row) for row in rows]


def of_conversation(session: Session, conversation_id: str) -> list[Schedule]:
    """Return the schedules that run in a conversation."""
    rows = session.exec(select(ScheduleRow).where(_OPEN, _ROW.c.conversation_id == conversation_id))
    return [_schedule(row) for row in rows]


def count(session: Session, accounts: Collection[str], place: str) -> tuple[int, int]:
    """Return the number of a person's live schedules, and of those in a chat and below it."""
    runs = _OPEN & (_ROW.c.due_at.is_not(None) | (_ROW.c.follows.is_not(None) & (_ROW.c.runs == 0)))
    many = select(func.count()).select_from(_ROW).where(runs)
    theirs = session.execute(many.where(_ROW.c.person.in_(sorted(accounts)))).scalar_one()
    there = many.join_from(_ROW, ConversationRow, col(ConversationRow.id) == _ROW.c.conversation_id)
    return theirs, session.execute(there.where(runs, inside(place))).scalar_one()


def list_due(session: Session, now: datetime, limit: int, held: Collection[str] = ()) -> list[Schedule]:
    """Return the schedules that are due, or whose proposal has ended, the longest waiting first.

    Of each conversation the one that waited longest, none where a turn is under way: each waits for its end.
    ``held``: ids of those that wait for their platform.
    """
    free = ~_WANTED_THERE.exists() & _ROW.c.id.not_in(sorted(held))
    nth = func.row_number().over(partition_by=_ROW.c.conversation_id, order_by=(_ROW.c.due_at, _ROW.c.id))
    each = select(_ROW.c.id, nth.label("nth")).where(_LIVE, free)
    ended = among(col(ProposalRow.state), sorted(SETTLED)) & (col(ProposalRow.id) == _ROW.c.follows)
    over = select(ProposalRow.id).where(ended).correlate(_ROW).exists()
    found = list[Schedule]()
    for ready in (_ROW.c.due_at <= now, _ROW.c.follows.is_not(None) & (_ROW.c.runs == 0) & over):
        first = each.where(ready).subquery()
        rows = select(ScheduleRow).join(first, first.c.id == _ROW.c.id).where(first.c.nth == 1)
        found += [_schedule(row) for row in session.exec(rows.order_by(_ROW.c.due_at).limit(limit))]
    return found


def take(session: Session, schedule: Schedule, due_at: datetime | None, now: datetime) -> bool:
    """Count one more run, the next of which is at ``due_at``; False where it was taken, paused or ended."""
    same = (_ROW.c.id == schedule.id) & _LIVE & (_ROW.c.runs == schedule.runs)
    taken = update(_ROW).where(same).values(ran_for=schedule.due_at, last_at=now, due_at=due_at)
    return bool(count_changed(session.execute(taken.values(runs=schedule.runs + 1, spent=0))))


def put_right(session: Session, now: datetime) -> int:
    """Set again what ran by a clock that was ahead, so that it does not wait for that time."""
    ahead = _OPEN & (_ROW.c.last_at > now + _TOLERATED)
    found = [_schedule(row) for row in session.exec(select(ScheduleRow).where(ahead))]
    for each in found:
        if each.times:
            due_at = each.times.after(max(now, each.ran_for or now))
        else:
            due_at = None
        same = (_ROW.c.id == each.id) & _OPEN & (_ROW.c.runs == each.runs)
        session.execute(update(_ROW).where(same).values(last_at=now, due_at=due_at))
    return len(found)


def change_schedule(session: Session, ident: str, by: By, now: datetime, **columns: Any) -> bool:
    """Set these columns, with a row in the audit log; False where it was ended."""
    row = session.get(ScheduleRow, ident, with_for_update=True)
    if row is None or row.ended_at is not None:
        return False
    before = _state(row)
    for name, value in columns.items():
        setattr(row, name, value)
    session.add(row)
    admin_changes.record(session, SCHEDULE, ident, by, before, _state(row), now)
    return True


def spend(session: Session, ident: str, tokens: int) -> None:
    """Add what an answer took to what the run has spent."""
    session.execute(update(_ROW).where(_ROW.c.id == ident).values(spent=_ROW.c.spent + tokens))


def count_spent(session: Session, ident: str) -> int:
    """Return the tokens that its last run has taken by now."""
    found: int | None = session.execute(select(_ROW.c.spent).where(_ROW.c.id == ident)).scalar()
    return found or 0


def _state(row: ScheduleRow) -> admin_changes.State:
    if row.ended_at:
        return None
    return {"schedule": row.id, "paused": row.paused_at is not None}


def _schedule(row: Any) -> Schedule:
    return value_of(Schedule, row, person=Actor.parse(row.person, row.name))
