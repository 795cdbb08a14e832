"""Turns as rows: wanted, taken up, answered in, ended. At most one per conversation is wanted at a time."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, case, func, literal, literal_column, update
from sqlmodel import Session, col, or_, select

from bot.domain.conversations import SPOKEN, Call, CallResult, LineRole, Turn, TurnEnd, Usage
from bot.domain.events import Ending
from bot.domain.jobs import Queue
from bot.domain.people import SHELL
from bot.domain.proposals import State
from bot.errors import TakenOver
from bot.store import conversations, messages, outputs, processes, rules
from bot.store.engine import id_of_new
from bot.store.tables.conversations import ConversationRow, MessageRow, TurnRow
from bot.store.tables.people import AccountRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import among, count_changed, since, table_of

WANTED = "wanted"
OPINION = "opinion"
"""The state of a row that is no turn: what a second opinion cost."""
_TURN = table_of(TurnRow)
# What each cycle uses is built once: to build a statement costs several times what it costs to run it.
# A literal where an index is over those rows alone: with a parameter in its place the index cannot be chosen.
IS_WANTED = _TURN.c.state == literal_column(f"'{WANTED}'")
_PLACE = table_of(ConversationRow)
_WANTED_HERE = (_TURN.c.conversation_id == bindparam("conversation_id")) & IS_WANTED
_WANTED_TURN = select(_TURN.c.id).where(_WANTED_HERE)
_LOCKED_TURN = _WANTED_TURN.with_for_update()
_USAGE = ("model_calls", "prompt_tokens", "completion_tokens", "cost", "model")
_HAS_UNDELIVERED = (messages.UNDELIVERED.exists() | outputs.UNPOSTED.exists()).label("has_undelivered")
_WITH_PLACE = (
    select(_TURN.c.id.label("turn_id"), _TURN.c.owner.label("runs_it"), *(_TURN.c[name] for name in _USAGE))
    .add_columns(*rules.VERSION, _HAS_UNDELIVERED, *_PLACE.c)
    .join_from(_TURN, _PLACE, _PLACE.c.id == _TURN.c.conversation_id)
    .where(_WANTED_HERE)
)
_ANSWERED = (
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), IS_WANTED, _TURN.c.owner == bindparam("runs_it"))
    .values({name: bindparam(name) for name in (*_USAGE, "asker", "asked", "state", "ended_at")})
    .values(attempts=0)  # it got somewhere: what kills a process after this is counted from here
)
_CONTINUE = update(_TURN).where(_TURN.c.id == bindparam("turn_id")).values(state=WANTED, ended_at=None)
_END_TURN = (
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), IS_WANTED)
    .values({name: bindparam(name) for name in ("state", "ended_at", "error", "retry_at")})
)
_OWNER = select(_TURN.c.owner).where(_TURN.c.id == bindparam("turn_id"), IS_WANTED)
_LINE = table_of(MessageRow)
_ASKER = (
    select(_LINE.c.actor)
    .where(_LINE.c.conversation_id == bindparam("conversation_id"), _LINE.c.actor.is_not(None))
    .order_by(_LINE.c.id.desc())
    .limit(1)
)
_NEWEST = (
    select(_LINE.c.id)
    .where(_LINE.c.conversation_id == bindparam("conversation_id"), among(_LINE.c.role, sorted(SPOKEN)))
    .order_by(_LINE.c.id.desc())
    .limit(1)
)
_IS_LEFT = case((_TURN.c.owner.in_(["", bindparam("process")]), 0), else_=1)
"""1 for a turn that another process had, which is gone by the time that it is taken over."""
_ATTEMPTS = select(_TURN.c.attempts + _IS_LEFT).where(_WANTED_HERE)
_PROPOSAL = table_of(ProposalRow)
_ACCOUNT = table_of(AccountRow)
_WHO = func.coalesce(func.nullif(_ASKER.scalar_subquery(), ""), _PLACE.c.owner)
_PERSON = select(_ACCOUNT.c.person_id).where(_ACCOUNT.c.actor == _WHO).correlate(_PLACE)
_DECIDED = select(_PROPOSAL.c.id).where(
    _PROPOSAL.c.message_id == _LINE.c.id, _PROPOSAL.c.state != literal(str(State.EXPIRED))
)
_WAITS = (
    select(
        _WHO.label("asker"),
        _PERSON.scalar_subquery().label("person"),
        _ATTEMPTS.scalar_subquery().label("attempts"),
        _LINE.c.role,
    )
    .add_columns(_DECIDED.correlate(_LINE).exists().label("decided"))
    .outerjoin_from(_PLACE, _LINE, _LINE.c.id == _NEWEST.scalar_subquery())
    .where(_PLACE.c.id == bindparam("conversation_id"))
)
_NEWEST_END = (
    select(_TURN.c.id, _TURN.c.state, _TURN.c.error)
    .where(_TURN.c.conversation_id == bindparam("conversation_id"), ~IS_WANTED, _TURN.c.state != OPINION)
    .order_by(_TURN.c.id.desc())
    .limit(1)
)
LONGEST_PAUSE = timedelta(minutes=10)  # between two tries of a turn
WAKE_UPS = Queue("wake-ups", 20, later=True)
AFTER_A_CRASH = Queue("after a crash", 4)
_NEW_TURN = {"attempts": 0, "model_calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
_FREE = (_TURN.c.owner == bindparam("process")) | processes.has_left(_TURN.c.owner, bindparam("process"))
_TAKE = (
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), IS_WANTED, _FREE)
    .where(_TURN.c.attempts + _IS_LEFT < bindparam("most"))
    .values(attempts=_TURN.c.attempts + _IS_LEFT, owner=bindparam("process"))
)
_GIVE_UP = (
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), IS_WANTED, _FREE)
    .where(_TURN.c.attempts + _IS_LEFT >= bindparam("most"))
    .values({name: bindparam(name) for name in ("state", "ended_at", "error")})
)
_WAITING = select(_TURN.c.conversation_id).where(IS_WANTED, _FREE)


def want_turn(session: Session, conversation_id: str, now: datetime, owner: str = "") -> bool:
    """Want a turn; False when one is wanted already: what comes in the meantime joins it.

    ``owner``: the process that begins it right after the commit; others leave it alone while that one lives.
    The turn that is joined is locked (PostgreSQL): it can't end before it sees what this transaction adds.
    """
    whose = {"conversation_id": conversation_id}
    fresh = whose | {"state": WANTED, "created_at": now, "owner": owner} | _NEW_TURN
    while True:
        if id_of_new(session, TurnRow, fresh) is not None:
            return True
        if session.connection().execute(_LOCKED_TURN, whose).first() is not None:
            return False


def is_wanted(session: Session, conversation_id: str) -> bool:
    """Return whether a turn of this conversation is under way, or will be."""
    whose = {"conversation_id": conversation_id}
    return session.connection().execute(_WANTED_TURN, whose).first() is not None


def queue(session: Session, conversation_id: str, most: int, process: str) -> Queue:
    """Return the queue in which a conversation's turn waits, with ``most`` of one person's at a time.

    After a crash, only a few of all run at a time. A turn that no person caused (an expired proposal, a note)
    can wait longer.
    """
    which = {"conversation_id": conversation_id, "process": process}
    found = session.connection().execute(_WAITS, which).first()
    if found is None:
        return WAKE_UPS
    if found.attempts:
        return AFTER_A_CRASH
    by_itself = found.role in (None, LineRole.NOTE) or (
        found.role == LineRole.ASSISTANT and not found.decided
    )
    if by_itself or not found.asker:
        return WAKE_UPS
    return Queue(found.person or found.asker, most)


def take_up(session: Session, conversation_id: str) -> Turn | None:
    """Read the wanted turn of a conversation with all the model will see; None when none is wanted."""
    row = session.connection().execute(_WITH_PLACE, {"conversation_id": conversation_id}).first()
    if row is None:
        return None
    turn_id, owner, *used, version, paused_at, has_undelivered = row[: 5 + len(_USAGE)]
    rules.know_version(session, version, paused_at)
    transcript = conversations.transcript_of(session, conversations.from_row(row))
    return Turn(turn_id, transcript, Usage(*used), owner, has_undelivered)


class Answered(NamedTuple):
    """A stored answer: the id of its line, and how the turn ended, if it did."""

    message_id: int
    ending: Ending | None


def store_answer(
    session: Session,
    turn: Turn,
    text: str,
    calls: Sequence[Call],
    results: dict[str, CallResult],
    ending: Ending | None,
    *,
    delivered: bool,
    now: datetime,
) -> Answered | None:
    """Store what the model said and what its reads gave, and end the turn, unless someone spoke since.

    None when the turn is no longer wanted (stopped). Raises TakenOver where another process runs it by now.
    """
    ends = {"state": ending or WANTED, "ended_at": now if ending else None}
    whose = {"asker": str(turn.transcript.asker), "asked": turn.transcript.order}
    values = {"turn_id": turn.id, "runs_it": turn.owner, **asdict(turn.usage), **whose, **ends}
    # the row is held from here: who speaks after the look below waits for it, and wants another turn
    if not count_changed(session.connection().execute(_ANSWERED, values)):
        check_owned(session, turn)
        return None
    message_id, heard = messages.add_answer(session, turn, text, calls, results, now, delivered=delivered)
    if ending and heard:
        session.connection().execute(_CONTINUE, {"turn_id": turn.id})
    return Answered(message_id, None if heard else ending)


def check_owned(session: Session, turn: Turn) -> None:
    """Raise TakenOver where another process runs the turn by now."""
    owner = session.connection().execute(_OWNER, {"turn_id": turn.id}).scalar()
    if owner is not None and owner != turn.owner:
        raise TakenOver


def end_turn(
    session: Session,
    turn: Turn,
    state: str,
    now: datetime,
    *,
    error: str | None = None,
    retry_at: datetime | None = None,
) -> None:
    """End a wanted turn."""
    end = {"turn_id": turn.id, "state": state, "ended_at": now, "error": error, "retry_at": retry_at}
    session.connection().execute(_END_TURN, end)


def retry(session: Session, now: datetime) -> None:
    """Want a turn for each that is due to be tried again; where nothing is left to say, it says nothing."""
    due = since(_TURN.c.retry_at, now, now + LONGEST_PAUSE) & _TURN.c.retry_at.is_not(None)
    found = update(_TURN).where(due).values(retry_at=None).returning(_TURN.c.conversation_id)
    for conversation_id in session.execute(found).scalars().all():
        want_turn(session, conversation_id, now)


def newest_end(session: Session, conversation_id: str) -> TurnEnd | None:
    """Return the end of a conversation's turn that ended last; None before any has."""
    found = session.connection().execute(_NEWEST_END, {"conversation_id": conversation_id}).first()
    return TurnEnd(*found) if found else None


def spend(session: Session, turn: Turn, usage: Usage) -> None:
    """Keep what a turn has used by now. Raises TakenOver where another process runs it."""
    check_owned(session, turn)
    session.execute(update(_TURN).where(_TURN.c.id == turn.id, IS_WANTED).values(asdict(usage)))


def add_cost(
    session: Session, conversation_id: str, asker: str, asked: int | None, usage: Usage, now: datetime
) -> None:
    """Store what another model cost where a turn's cost stands, so that usage and budgets count it.

    It gave a second opinion, or heard what was said; it is no turn of the agent. ``asked`` is the id of the
    person's line that led to it.
    """
    row = TurnRow(
        conversation_id=conversation_id,
        state=OPINION,
        **asdict(usage),
        asker=asker,
        asked=asked,
        created_at=now,
        ended_at=now,
    )
    session.add(row)


def hold_turn(session: Session, turn: Turn) -> None:
    """Lock a turn, so that nothing joins it until this transaction ends (SQLite has one writer)."""
    session.execute(select(TurnRow.id).where(TurnRow.id == turn.id).with_for_update())


def hold_wanted(session: Session, conversation_id: str) -> None:
    """Lock the wanted turn of a conversation, like `hold_turn`."""
    session.connection().execute(_LOCKED_TURN, {"conversation_id": conversation_id}).first()


def under_way(session: Session, conversation_ids: Sequence[str]) -> bool:
    """Return whether in one of them a turn is wanted, or something that was approved has not ended."""
    turn = IS_WANTED & _TURN.c.conversation_id.in_(conversation_ids)
    moving = _PROPOSAL.c.state.in_((State.APPROVED, State.EXECUTING))
    call = moving & _PROPOSAL.c.conversation_id.in_(conversation_ids)
    found = select(_TURN.c.id).where(turn).exists() | select(_PROPOSAL.c.id).where(call).exists()
    return bool(session.connection().execute(select(found)).scalar())


def stop_turn(
    session: Session, conversation_id: str, now: datetime, begun_by: datetime | None = None
) -> bool:
    """Stop the turn that is wanted, or to be tried again, for a person; False when there was none.

    ``begun_by``: only one that was wanted by then.
    """
    found = update(TurnRow).where(
        col(TurnRow.conversation_id) == conversation_id, or_(IS_WANTED, _TURN.c.retry_at.is_not(None))
    )
    if begun_by is not None:
        found = found.where(_TURN.c.created_at <= begun_by)
    stopped = session.execute(found.values(state="stopped", ended_at=now, retry_at=None))
    return bool(count_changed(stopped))


def list_wanted(session: Session, process: str = "") -> list[str]:
    """Return the conversations with a wanted turn that belongs to this ``process`` or to no living one."""
    return list(session.execute(_WAITING, {"process": process}).scalars())


def take(session: Session, turn_id: int, process: str, most: int) -> bool:
    """Let this process run the turn; a process that is gone, and had it, is counted as one that died over it.

    False where another process runs it, where ``most`` died over it, or where it has ended. What ends in
    order lets go of it (`release`), and an answer starts the count over.
    """
    which = {"turn_id": turn_id, "process": process, "most": most}
    return bool(count_changed(session.connection().execute(_TAKE, which)))


def release(session: Session, turn_id: int, process: str, *, failed: bool = False) -> None:
    """Give up a turn before its end; ``failed`` counts as if the process had died over it."""
    mine = (_TURN.c.id == turn_id, IS_WANTED, _TURN.c.owner == process)
    attempts = _TURN.c.attempts + 1 if failed else 0
    session.execute(update(_TURN).where(*mine).values(attempts=attempts, owner=""))


def give_up(session: Session, turn_id: int, process: str, most: int, explanation: str, now: datetime) -> bool:
    """End a wanted turn that took ``most`` processes down with it; False where it has not, or has ended."""
    how = {"state": "failed", "ended_at": now, "error": explanation}
    which = {"turn_id": turn_id, "process": process, "most": most}
    return bool(count_changed(session.connection().execute(_GIVE_UP, how | which)))


def has_joined(session: Session, turn_id: int, conversation_id: str) -> bool:
    """Return whether a person wrote after the turn was wanted, so that it joined the turn."""
    wanted_at = select(TurnRow.created_at).where(TurnRow.id == turn_id).scalar_subquery()
    said = select(MessageRow.id).where(
        MessageRow.conversation_id == conversation_id,
        MessageRow.role == LineRole.USER,
        col(MessageRow.created_at) > wanted_at,
    )
    return session.execute(said.limit(1)).first() is not None


def with_undelivered(session: Session, before: datetime, now: datetime) -> list[str]:
    """Return the conversations with an undelivered message from before then, and no turn under way.

    What the command line opened is due immediately: its process posts nothing itself.
    """
    from_shell = (
        select(ConversationRow.id)
        .where(ConversationRow.id == MessageRow.conversation_id, ConversationRow.channel == SHELL)
        .exists()
    )
    busy = select(TurnRow.conversation_id).where(IS_WANTED)
    rows = session.exec(
        select(MessageRow.conversation_id).where(
            ~col(MessageRow.delivered),
            or_(since(MessageRow.created_at, before, now), from_shell),
            col(MessageRow.conversation_id).not_in(busy),
        )
    )
    return list(dict.fromkeys(rows))  # DISTINCT would lead SQLite to an index of all messages
