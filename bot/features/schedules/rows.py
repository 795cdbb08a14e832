"""The queries of schedules, which are tasks that the agent does at set times or after a proposal has ended.

A schedule with times runs when ``due_at`` has come, the time of its next run. A schedule that ``follows`` a
proposal runs once, after that proposal has ended; it waits for this as long as ``runs`` is 0. A live schedule
is neither paused nor ended.

Any number of processes may look for due schedules at the same time: a run begins with one guarded UPDATE
(`claim_run`), in which only one process succeeds. Changes by people are in the audit log.
"""

from collections.abc import Collection
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import func, literal_column, text, update
from sqlmodel import Session, col, select

from bot.domain.people import Actor
from bot.domain.proposal_states import SETTLED
from bot.features.schedules.schedule import Schedule
from bot.features.schedules.tables import LIVE, SCHEDULE, ScheduleRow
from bot.store.audit import admin_changes
from bot.store.audit.log import Author
from bot.store.tables.conversations import ConversationRow, TurnRow, is_inside
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import count_changed, is_one_of, starts_with, table_of, value_of

_TABLE = table_of(ScheduleRow)
_OPEN = _TABLE.c.ended_at.is_(None)  # not ended
_LIVE = text(LIVE)  # neither paused nor ended, as the partial index of the table has it
# selects a turn that is under way in the conversation of a schedule
_TURN_UNDER_WAY = (
    select(TurnRow.id)
    .where(
        TurnRow.conversation_id == _TABLE.c.conversation_id, col(TurnRow.state) == literal_column("'wanted'")
    )
    .correlate(_TABLE)
)
_CLOCK_TOLERANCE = timedelta(minutes=1)  # the tolerated difference between the clocks of two processes
_MAX_LISTED = 200


class ScheduleCounts(NamedTuple):
    """Numbers of schedules with a run to come; paused schedules count as well."""

    of_person: int
    of_chat: int  # in the chat and its threads


def add_schedule(session: Session, schedule: Schedule, author: Author, now: datetime) -> None:
    """Store a new schedule."""
    columns = {field.name: getattr(schedule, field.name) for field in fields(schedule)}
    row = ScheduleRow(**columns | {"person": str(schedule.person), "name": schedule.person.name})
    session.add(row)
    admin_changes.record(session, SCHEDULE, schedule.id, author, None, _make_audit_state(row), now)


def get(session: Session, id_prefix: str) -> Schedule | None:
    """Return the schedule whose id begins with ``id_prefix``; None without one, or if several ids do."""
    if not (id_prefix.isalnum() and id_prefix.isascii()):
        return None
    has_prefix = starts_with(col(ScheduleRow.id), id_prefix)
    found = session.exec(select(ScheduleRow).where(has_prefix).limit(2)).all()
    if len(found) == 1:
        return _make_schedule(found[0])
    return None


def list_of_people(
    session: Session, accounts: Collection[str] | None, *, ended: bool = False
) -> list[Schedule]:
    """Return the schedules of the person with these accounts, or everyone's for None, the next due first.

    ``ended``: schedules that have ended are included.
    """
    listed = select(ScheduleRow) if ended else select(ScheduleRow).where(_OPEN)
    if accounts is not None:
        listed = listed.where(_TABLE.c.person.in_(sorted(accounts)))
    # schedules without ``due_at`` come last
    ordered = listed.order_by(_TABLE.c.due_at.is_(None), _TABLE.c.due_at, _TABLE.c.id)
    return [_make_schedule(row) for row in session.exec(ordered.limit(_MAX_LISTED))]


def list_in_conversation(session: Session, conversation_id: str) -> list[Schedule]:
    """Return the schedules that run in a conversation and have not ended."""
    rows = session.exec(select(ScheduleRow).where(_OPEN, _TABLE.c.conversation_id == conversation_id))
    return [_make_schedule(row) for row in rows]


def count_schedules(session: Session, accounts: Collection[str], place: str) -> ScheduleCounts:
    """Count the schedules with a run to come, of the person with these accounts and in the chat ``place``."""
    waits_for_proposal = _TABLE.c.follows.is_not(None) & (_TABLE.c.runs == 0)
    will_run = _OPEN & (_TABLE.c.due_at.is_not(None) | waits_for_proposal)
    count = select(func.count()).select_from(_TABLE).where(will_run)
    of_person = session.execute(count.where(_TABLE.c.person.in_(sorted(accounts)))).scalar_one()
    by_chat = count.join_from(_TABLE, ConversationRow, col(ConversationRow.id) == _TABLE.c.conversation_id)
    of_chat = session.execute(by_chat.where(will_run, is_inside(place))).scalar_one()
    return ScheduleCounts(of_person, of_chat)


def list_due(
    session: Session, now: datetime, limit: int, excluded_ids: Collection[str] = ()
) -> list[Schedule]:
    """Return the schedules whose time has come, then those whose proposal has ended, the longest due first.

    At most ``limit`` of either sort are returned, and of either sort at most one in each conversation. Left
    out are schedules with a turn under way in their conversation, and those of ``excluded_ids``, which can't
    run for now.
    """
    is_free = ~_TURN_UNDER_WAY.exists() & _TABLE.c.id.not_in(sorted(excluded_ids))
    # 1 for the schedule that is due first in its conversation
    place_in_conversation = func.row_number().over(
        partition_by=_TABLE.c.conversation_id, order_by=(_TABLE.c.due_at, _TABLE.c.id)
    )
    numbered = select(_TABLE.c.id, place_in_conversation.label("nth")).where(_LIVE, is_free)
    is_due = _TABLE.c.due_at <= now
    is_followed = col(ProposalRow.id) == _TABLE.c.follows
    has_ended = is_one_of(col(ProposalRow.state), sorted(SETTLED))
    ended_proposal = select(ProposalRow.id).where(is_followed, has_ended).correlate(_TABLE)
    follows_ended = _TABLE.c.follows.is_not(None) & (_TABLE.c.runs == 0) & ended_proposal.exists()
    found: list[Schedule] = []
    for condition in (is_due, follows_ended):
        ranked = numbered.where(condition).subquery()
        rows = select(ScheduleRow).join(ranked, ranked.c.id == _TABLE.c.id).where(ranked.c.nth == 1)
        found += [_make_schedule(row) for row in session.exec(rows.order_by(_TABLE.c.due_at).limit(limit))]
    return found


def claim_run(
    session: Session, schedule: Schedule, next_due_at: datetime | None, now: datetime, *, counts: bool = True
) -> bool:
    """Claim a run of a schedule, and set the time of its next run.

    ``ran_for`` becomes the time for which this run was due, and ``spent``, the tokens of the last run,
    becomes 0. ``counts``: False for a run that a person starts before the awaited proposal has ended: the
    schedule continues to wait. Return False if another process has claimed the run, or if the schedule was
    paused, ended or made due at another time since it was read.
    """
    is_unchanged = (_TABLE.c.id == schedule.id) & _LIVE & (_TABLE.c.runs == schedule.runs)
    is_unchanged &= _TABLE.c.due_at.is_not_distinct_from(schedule.due_at)
    runs = schedule.runs + 1 if counts else schedule.runs
    claim = update(_TABLE).where(is_unchanged)
    claim = claim.values(ran_for=schedule.due_at, last_at=now, due_at=next_due_at, runs=runs, spent=0)
    return bool(count_changed(session.execute(claim)))


def correct_due_times(session: Session, now: datetime) -> int:
    """Compute again the next times of schedules that ran by a clock that was ahead. Return their number.

    Without this, such a schedule would not run again before the wrong time that the clock showed.
    """
    ahead = _OPEN & (_TABLE.c.last_at > now + _CLOCK_TOLERANCE)
    schedules = [_make_schedule(row) for row in session.exec(select(ScheduleRow).where(ahead))]
    for schedule in schedules:
        due_at = None
        if schedule.times:
            due_at = schedule.times.find_next(max(now, schedule.ran_for or now))
        is_unchanged = (_TABLE.c.id == schedule.id) & _OPEN & (_TABLE.c.runs == schedule.runs)
        session.execute(update(_TABLE).where(is_unchanged).values(last_at=now, due_at=due_at))
    return len(schedules)


def change_schedule(session: Session, ident: str, author: Author, now: datetime, **columns: Any) -> bool:
    """Set these columns, with a row in the audit log. Return False if there is no such open schedule."""
    row = session.get(ScheduleRow, ident, with_for_update=True)
    if row is None or row.ended_at is not None:
        return False
    before = _make_audit_state(row)
    for name, value in columns.items():
        setattr(row, name, value)
    session.add(row)
    admin_changes.record(session, SCHEDULE, ident, author, before, _make_audit_state(row), now)
    return True


def add_spent(session: Session, ident: str, tokens: int) -> None:
    """Add tokens to those of the last run of a schedule."""
    session.execute(update(_TABLE).where(_TABLE.c.id == ident).values(spent=_TABLE.c.spent + tokens))


def count_spent(session: Session, ident: str) -> int:
    """Return the tokens that the last run of a schedule has used so far."""
    found: int | None = session.execute(select(_TABLE.c.spent).where(_TABLE.c.id == ident)).scalar()
    return found or 0


def _make_audit_state(row: ScheduleRow) -> admin_changes.ThingState:
    """Return a schedule's state for the audit log; None for an ended schedule, which counts as deleted."""
    if row.ended_at:
        return None
    return {"schedule": row.id, "paused": row.paused_at is not None}


def _make_schedule(row: Any) -> Schedule:
    return value_of(Schedule, row, person=Actor.parse(row.person, row.name))
