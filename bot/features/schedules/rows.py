"""Schedules as rows: made, due, run once, paused, ended. Changes by people are in the audit log.

Any number of processes may look for due schedules: a run begins with one guarded UPDATE (`claim_run`).
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
from bot.store.tables.row import count_changed, is_one_of, starts_with, table_of, value_of

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
_TOLERATED = timedelta(minutes=1)  # the tolerated difference between the clocks of two processes
_LISTED = 200


def add_schedule(session: Session, made: Schedule, by: By, now: datetime) -> None:
    """Store a new schedule."""
    columns = {field.name: getattr(made, field.name) for field in fields(made)}
    row = ScheduleRow(**columns | {"person": str(made.person), "name": made.person.name})
    session.add(row)
    admin_changes.record(session, SCHEDULE, made.id, by, None, _state(row), now)


def get(session: Session, ident: str) -> Schedule | None:
    """Return the schedule with this id, or the only schedule whose id begins with it."""
    if not (ident.isalnum() and ident.isascii()):
        return None
    found = session.exec(select(ScheduleRow).where(starts_with(col(ScheduleRow.id), ident)).limit(2)).all()
    if len(found) == 1:
        return _schedule(found[0])
    return None


def list_of_people(
    session: Session, accounts: Collection[str] | None, *, ended: bool = False
) -> list[Schedule]:
    """Return the schedules of a person with these accounts, for None everyone's, the next due first."""
    which = select(ScheduleRow) if ended else select(ScheduleRow).where(_OPEN)
    if accounts is not None:
        which = which.where(_ROW.c.person.in_(sorted(accounts)))
    rows = session.exec(which.order_by(_ROW.c.due_at.is_(None), _ROW.c.due_at, _ROW.c.id).limit(_LISTED))
    return [_schedule(row) for row in rows]


def list_in_conversation(session: Session, conversation_id: str) -> list[Schedule]:
    """Return the schedules that run in a conversation."""
    rows = session.exec(select(ScheduleRow).where(_OPEN, _ROW.c.conversation_id == conversation_id))
    return [_schedule(row) for row in rows]


def count_live(session: Session, accounts: Collection[str], place: str) -> tuple[int, int]:
    """Return the number of a person's live schedules, and of the live schedules in a chat and its threads."""
    waits_for_proposal = _ROW.c.follows.is_not(None) & (_ROW.c.runs == 0)
    will_run = _OPEN & (_ROW.c.due_at.is_not(None) | waits_for_proposal)
    count = select(func.count()).select_from(_ROW).where(will_run)
    theirs = session.execute(count.where(_ROW.c.person.in_(sorted(accounts)))).scalar_one()
    there = count.join_from(_ROW, ConversationRow, col(ConversationRow.id) == _ROW.c.conversation_id)
    return theirs, session.execute(there.where(will_run, inside(place))).scalar_one()


def list_due(session: Session, now: datetime, limit: int, held: Collection[str] = ()) -> list[Schedule]:
    """Return the schedules that are due, then those whose proposal has ended, the longest waiting first.

    Of each conversation only the schedule that waited longest is listed, and none while a turn is under way.
    ``held``: the ids of schedules that wait for their platform.
    """
    free = ~_WANTED_THERE.exists() & _ROW.c.id.not_in(sorted(held))
    nth = func.row_number().over(partition_by=_ROW.c.conversation_id, order_by=(_ROW.c.due_at, _ROW.c.id))
    numbered = select(_ROW.c.id, nth.label("nth")).where(_LIVE, free)
    is_due = _ROW.c.due_at <= now
    ended = is_one_of(col(ProposalRow.state), sorted(SETTLED)) & (col(ProposalRow.id) == _ROW.c.follows)
    has_ended = select(ProposalRow.id).where(ended).correlate(_ROW).exists()
    follows_ended = _ROW.c.follows.is_not(None) & (_ROW.c.runs == 0) & has_ended
    found = list[Schedule]()
    for condition in (is_due, follows_ended):
        first = numbered.where(condition).subquery()
        rows = select(ScheduleRow).join(first, first.c.id == _ROW.c.id).where(first.c.nth == 1)
        found += [_schedule(row) for row in session.exec(rows.order_by(_ROW.c.due_at).limit(limit))]
    return found


def claim_run(session: Session, schedule: Schedule, due_at: datetime | None, now: datetime) -> bool:
    """Count a run, and set the next to ``due_at``. Return False if it was claimed, paused or ended."""
    same = (_ROW.c.id == schedule.id) & _LIVE & (_ROW.c.runs == schedule.runs)
    taken = update(_ROW).where(same).values(ran_for=schedule.due_at, last_at=now, due_at=due_at)
    return bool(count_changed(session.execute(taken.values(runs=schedule.runs + 1, spent=0))))


def correct_due_times(session: Session, now: datetime) -> int:
    """Correct the next times of schedules that ran by a clock that was ahead. Return their number.

    Otherwise such a schedule would wait until the time of that clock.
    """
    ahead = _OPEN & (_ROW.c.last_at > now + _TOLERATED)
    schedules = [_schedule(row) for row in session.exec(select(ScheduleRow).where(ahead))]
    for schedule in schedules:
        due_at = None
        if schedule.times:
            due_at = schedule.times.after(max(now, schedule.ran_for or now))
        same = (_ROW.c.id == schedule.id) & _OPEN & (_ROW.c.runs == schedule.runs)
        session.execute(update(_ROW).where(same).values(last_at=now, due_at=due_at))
    return len(schedules)


def change_schedule(session: Session, ident: str, by: By, now: datetime, **columns: Any) -> bool:
    """Set these columns, with a row in the audit log. Return False if the schedule has ended."""
    row = session.get(ScheduleRow, ident, with_for_update=True)
    if row is None or row.ended_at is not None:
        return False
    before = _state(row)
    for name, value in columns.items():
        setattr(row, name, value)
    session.add(row)
    admin_changes.record(session, SCHEDULE, ident, by, before, _state(row), now)
    return True


def add_spent(session: Session, ident: str, tokens: int) -> None:
    """Add an answer's tokens to the tokens of the run."""
    session.execute(update(_ROW).where(_ROW.c.id == ident).values(spent=_ROW.c.spent + tokens))


def count_spent(session: Session, ident: str) -> int:
    """Return the tokens that the schedule's last run has taken so far."""
    found: int | None = session.execute(select(_ROW.c.spent).where(_ROW.c.id == ident)).scalar()
    return found or 0


def _state(row: ScheduleRow) -> admin_changes.State:
    if row.ended_at:
        return None
    return {"schedule": row.id, "paused": row.paused_at is not None}


def _schedule(row: Any) -> Schedule:
    return value_of(Schedule, row, person=Actor.parse(row.person, row.name))
