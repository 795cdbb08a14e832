"""Turns as rows: a turn is one piece of the agent's work in a conversation, with one or more answers.

A turn is *wanted* from its request until it ends. A conversation has at most one wanted turn. The *owner* is
the id of the process that runs it. A process claims a wanted turn without a living owner (`claim_turn`), and
stores the agent's answers (`store_answer`). The last answer ends the turn, unless new lines (stored messages)
came. A turn whose process dies again and again is given up (`give_up_turn`).
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import bindparam, case, func, literal, literal_column, update
from sqlmodel import Session, col, or_, select

from bot.domain.conversations import MODEL_ROLES, Call, CallResult, LineRole, Turn, TurnEnd, Usage
from bot.domain.events import Ending
from bot.domain.jobs import Queue
from bot.domain.people import SHELL
from bot.domain.proposal_states import State
from bot.errors import TakenOver
from bot.store import conversations, messages, outputs, processes, rules, transcripts
from bot.store.inserts import insert_new
from bot.store.tables.conversations import ConversationRow, MessageRow, TurnRow
from bot.store.tables.people import AccountRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import count_changed, is_old, is_one_of, table_of

WANTED = "wanted"
OTHER_MODEL = "opinion"
"""The state of a row that is no turn: it holds the cost of another model's call (`add_cost`)."""
LONGEST_PAUSE = timedelta(minutes=10)  # the longest time between two tries of a turn
WAKE_UPS = Queue("wake-ups", max_running=20, runs_last=True)
"""The queue of turns that no person waits for."""
AFTER_A_CRASH = Queue("after a crash", max_running=4)
"""The queue of turns whose process died. One of them may have been the reason, so few run at a time."""
_NEW_TURN = {"attempts": 0, "model_calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
_USAGE_COLUMNS = ("model_calls", "prompt_tokens", "completion_tokens", "cost", "model")  # of `Usage`
FAILED = "failed"

_TURN = table_of(TurnRow)
_LINE = table_of(MessageRow)
_CONVERSATION = table_of(ConversationRow)
_PROPOSAL = table_of(ProposalRow)
_ACCOUNT = table_of(AccountRow)

# Statements that run often are built once: building one costs several times what running it costs.
# The state is a literal: with a parameter the database could not use the partial index over wanted turns.
IS_WANTED = _TURN.c.state == literal_column(f"'{WANTED}'")
_IS_WANTED_HERE = (_TURN.c.conversation_id == bindparam("conversation_id")) & IS_WANTED
_WANTED_TURN = select(_TURN.c.id).where(_IS_WANTED_HERE)
_LOCKED_TURN = _WANTED_TURN.with_for_update()

# for `load_turn`: the turn with its conversation and the version of the rules, and whether lines or files of
# the conversation are undelivered
_HAS_UNDELIVERED = (messages.UNDELIVERED.exists() | outputs.UNPOSTED.exists()).label("has_undelivered")
_WANTED_TURN_WITH_CONVERSATION = (
    select(
        _TURN.c.id.label("turn_id"),
        _TURN.c.owner.label("turn_owner"),
        *(_TURN.c[name] for name in _USAGE_COLUMNS),
    )
    .add_columns(*rules.VERSION_COLUMNS)
    .add_columns(_HAS_UNDELIVERED, *_CONVERSATION.c)
    .join_from(_TURN, _CONVERSATION, _CONVERSATION.c.id == _TURN.c.conversation_id)
    .where(_IS_WANTED_HERE)
)

# for `store_answer`, `end_turn` and `find_newest_end`
_UPDATE_AFTER_ANSWER = (
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), IS_WANTED, _TURN.c.owner == bindparam("turn_owner"))
    .values({name: bindparam(name) for name in (*_USAGE_COLUMNS, "asker", "asked", "state", "ended_at")})
    .values(attempts=0)  # an answer is progress: failed attempts are counted from here again
)
_CONTINUE = update(_TURN).where(_TURN.c.id == bindparam("turn_id")).values(state=WANTED, ended_at=None)
_OWNER = select(_TURN.c.owner).where(_TURN.c.id == bindparam("turn_id"), IS_WANTED)
_END_TURN = (
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), IS_WANTED)
    .values({name: bindparam(name) for name in ("state", "ended_at", "error", "retry_at")})
)
_NEWEST_END = (
    select(_TURN.c.id, _TURN.c.state, _TURN.c.error)
    .where(_TURN.c.conversation_id == bindparam("conversation_id"), ~IS_WANTED, _TURN.c.state != OTHER_MODEL)
    .order_by(_TURN.c.id.desc())
    .limit(1)
)

# for `claim_turn`, `give_up_turn` and `list_wanted`: no other living process owns the turn
_IS_FREE = (_TURN.c.owner == bindparam("process")) | processes.has_no_living_owner(
    _TURN.c.owner, process=bindparam("process")
)
_ATTEMPT_OF_DEAD_OWNER = case((_TURN.c.owner.in_(["", bindparam("process")]), 0), else_=1)
"""1 if a process that died owned the turn, else 0: that process's attempt failed.

It is only used together with `_IS_FREE`. That condition makes sure that the other process is dead, which this
expression does not check.
"""
_CLAIM = (
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), IS_WANTED, _IS_FREE)
    .where(_TURN.c.attempts + _ATTEMPT_OF_DEAD_OWNER < bindparam("max_attempts"))
    .values(attempts=_TURN.c.attempts + _ATTEMPT_OF_DEAD_OWNER, owner=bindparam("process"))
)
_GIVE_UP = (
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), IS_WANTED, _IS_FREE)
    .where(_TURN.c.attempts + _ATTEMPT_OF_DEAD_OWNER >= bindparam("max_attempts"))
    .values({name: bindparam(name) for name in ("state", "ended_at", "error")})
)
_LIST_WANTED = select(_TURN.c.conversation_id).where(IS_WANTED, _IS_FREE)


def request_turn(session: Session, conversation_id: str, now: datetime, owner: str = "") -> bool:
    """Request a turn of a conversation; False if a turn is wanted already, which this request joins.

    ``owner``: the id of the process that begins the turn right after the commit, so that others leave the
    turn alone; empty: any process may take it. A joined turn is locked (on PostgreSQL), so that it can't end
    before it reads the new rows of this transaction.
    """
    parameters = {"conversation_id": conversation_id}
    new = {**_NEW_TURN, **parameters, "state": WANTED, "created_at": now, "owner": owner}
    while True:  # both statements fail if a turn ends between them: then try again
        if insert_new(session, TurnRow, new) is not None:
            return True
        if session.connection().execute(_LOCKED_TURN, parameters).first() is not None:
            return False


def is_turn_wanted(session: Session, conversation_id: str) -> bool:
    """Return whether a turn of this conversation is under way, or will be."""
    parameters = {"conversation_id": conversation_id}
    return session.connection().execute(_WANTED_TURN, parameters).first() is not None


def find_queue(session: Session, conversation_id: str, max_turns: int, process: str) -> Queue:
    """Return the queue of a conversation's turn.

    It is the queue of the person whose line or decision caused the turn; ``max_turns`` of it run at a time. A
    turn that no person caused (an expired proposal, a note) is in `WAKE_UPS`, a failed one in
    `AFTER_A_CRASH`. ``process``: the id of this process.
    """
    parameters = {"conversation_id": conversation_id, "process": process}
    facts = session.connection().execute(_select_queue_facts(), parameters).first()
    if facts is None:
        return WAKE_UPS
    if facts.attempts:
        return AFTER_A_CRASH
    if not facts.asker or facts.role in (None, LineRole.NOTE):
        return WAKE_UPS
    if facts.role == LineRole.ASSISTANT and not facts.has_unexpired_call:  # no person decided one
        return WAKE_UPS
    return Queue(facts.person or facts.asker, max_turns)


@cache
def _select_queue_facts() -> Any:
    """Return the query of `find_queue`, built once: one row for a conversation.

    Its columns:

    - ``asker``: the account for which the agent works
    - ``person``: the id of the Person behind that account
    - ``attempts``: the failed attempts of the turn
    - ``role``: the role of the newest line that the model reads
    - ``has_unexpired_call``: whether that line has a call that did not expire
    """
    here = _LINE.c.conversation_id == bindparam("conversation_id")
    newest_account = (
        select(_LINE.c.actor).where(here, _LINE.c.actor.is_not(None)).order_by(_LINE.c.id.desc()).limit(1)
    )
    newest_model_line = (
        select(_LINE.c.id)
        .where(here, is_one_of(_LINE.c.role, sorted(MODEL_ROLES)))
        .order_by(_LINE.c.id.desc())
        .limit(1)
    )
    asker = func.coalesce(func.nullif(newest_account.scalar_subquery(), ""), _CONVERSATION.c.owner)
    person = select(_ACCOUNT.c.person_id).where(_ACCOUNT.c.actor == asker).correlate(_CONVERSATION)
    attempts = select(_TURN.c.attempts + _ATTEMPT_OF_DEAD_OWNER).where(_IS_WANTED_HERE)
    unexpired_calls = select(_PROPOSAL.c.id).where(
        _PROPOSAL.c.message_id == _LINE.c.id, _PROPOSAL.c.state != literal(str(State.EXPIRED))
    )
    return (
        select(
            asker.label("asker"),
            person.scalar_subquery().label("person"),
            attempts.scalar_subquery().label("attempts"),
            _LINE.c.role,
        )
        .add_columns(unexpired_calls.correlate(_LINE).exists().label("has_unexpired_call"))
        .outerjoin_from(_CONVERSATION, _LINE, _LINE.c.id == newest_model_line.scalar_subquery())
        .where(_CONVERSATION.c.id == bindparam("conversation_id"))
    )


def load_turn(session: Session, conversation_id: str) -> Turn | None:
    """Return the wanted turn of a conversation with its transcript; None if no turn is wanted."""
    row = (
        session.connection()
        .execute(_WANTED_TURN_WITH_CONVERSATION, {"conversation_id": conversation_id})
        .first()
    )
    if row is None:
        return None
    # the query has read the version of the rules too, which saves a query of its own
    rules.cache_version(session, row.rules_version, row.rules_paused_at)
    transcript = transcripts.load_transcript_of(session, conversations.from_row(row))
    usage = Usage(*(getattr(row, name) for name in _USAGE_COLUMNS))
    return Turn(row.turn_id, transcript, usage, row.turn_owner, row.has_undelivered)


class StoredAnswer(NamedTuple):
    """The result of `store_answer`."""

    message_id: int  # the id of the answer's line
    ending: Ending | None  # how the turn ended; None: it continues, perhaps because new lines came


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
) -> StoredAnswer | None:
    """Store an answer of the agent, with the results of those calls that only read.

    ``ending``: how the turn ends with this answer; None: the turn continues. If new lines came while the
    answer was written, the turn continues in any case, to answer them. ``delivered``: people have seen the
    text already. Returns None if the turn is no longer wanted, because a person stopped it. Raises TakenOver
    if another process runs it by now.
    """
    values = {
        "turn_id": turn.id,
        "turn_owner": turn.owner,
        **asdict(turn.usage),
        "asker": str(turn.transcript.asker),
        "asked": turn.transcript.request_line_id,
        "state": ending or WANTED,
        "ended_at": now if ending else None,
    }
    # The row is locked from here. `messages.add_answer` looks for new messages; one that comes later waits
    # for this lock, and then requests another turn.
    if not count_changed(session.connection().execute(_UPDATE_AFTER_ANSWER, values)):
        check_owned(session, turn)
        return None
    message_id, has_new_lines = messages.add_answer(
        session, turn, text, calls, results, now, delivered=delivered
    )
    if ending and has_new_lines:
        session.connection().execute(_CONTINUE, {"turn_id": turn.id})
    return StoredAnswer(message_id, None if has_new_lines else ending)


def check_owned(session: Session, turn: Turn) -> None:
    """Raise TakenOver if the turn is wanted and another process owns it."""
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
    """End a wanted turn.

    ``state``: an `Ending`, or `FAILED`. ``error``: the text for people. ``retry_at``: the time of the next
    try, if any.
    """
    end = {"turn_id": turn.id, "state": state, "ended_at": now, "error": error, "retry_at": retry_at}
    session.connection().execute(_END_TURN, end)


def request_due_retries(session: Session, now: datetime) -> None:
    """Request a turn for each failed turn whose next try is due."""
    # a time later than the longest pause was stored before the clock was set back, so it counts as due
    is_due = is_old(_TURN.c.retry_at, now, now + LONGEST_PAUSE) & _TURN.c.retry_at.is_not(None)
    clear_retries = update(_TURN).where(is_due).values(retry_at=None).returning(_TURN.c.conversation_id)
    for conversation_id in session.execute(clear_retries).scalars().all():
        request_turn(session, conversation_id, now)


def find_newest_end(session: Session, conversation_id: str) -> TurnEnd | None:
    """Return the end of a conversation's newest ended turn; None if no turn has ended."""
    row = session.connection().execute(_NEWEST_END, {"conversation_id": conversation_id}).first()
    return TurnEnd(*row) if row else None


def store_usage(session: Session, turn: Turn, usage: Usage) -> None:
    """Store the usage of a turn so far. Raises TakenOver if another process runs the turn."""
    check_owned(session, turn)
    session.execute(update(_TURN).where(_TURN.c.id == turn.id, IS_WANTED).values(asdict(usage)))


def add_cost(
    session: Session, conversation_id: str, asker: str, asked_line_id: int | None, usage: Usage, now: datetime
) -> None:
    """Store the cost of another model's call, as of a second opinion or a transcription, in a row of its own.

    The call is no turn of the agent, but usage and budgets count it like a turn. ``asked_line_id``: the id of
    the person's line that led to it.
    """
    row = TurnRow(
        conversation_id=conversation_id,
        state=OTHER_MODEL,
        **asdict(usage),
        asker=asker,
        asked=asked_line_id,
        created_at=now,
        ended_at=now,
    )
    session.add(row)


def lock_turn(session: Session, turn: Turn) -> None:
    """Lock a turn, so that nothing joins it until this transaction ends.

    On SQLite nothing is locked: it has one writer anyway.
    """
    session.execute(select(TurnRow.id).where(TurnRow.id == turn.id).with_for_update())


def lock_wanted_turn(session: Session, conversation_id: str) -> None:
    """Lock the wanted turn of a conversation, like `lock_turn`."""
    session.connection().execute(_LOCKED_TURN, {"conversation_id": conversation_id}).first()


def is_under_way(session: Session, conversation_ids: Sequence[str]) -> bool:
    """Return whether one of the conversations has a wanted turn, or an approved call that has not ended."""
    wanted = IS_WANTED & _TURN.c.conversation_id.in_(conversation_ids)
    is_approved = _PROPOSAL.c.state.in_((State.APPROVED, State.EXECUTING))
    approved_calls = is_approved & _PROPOSAL.c.conversation_id.in_(conversation_ids)
    has_turn = select(_TURN.c.id).where(wanted).exists()
    has_approved_call = select(_PROPOSAL.c.id).where(approved_calls).exists()
    return bool(session.connection().execute(select(has_turn | has_approved_call)).scalar())


def stop_turn(
    session: Session, conversation_id: str, now: datetime, begun_by: datetime | None = None
) -> bool:
    """End the turn that is wanted, or is to be tried again, as stopped; False if there was none.

    ``begun_by``: a time; stop only a turn that was requested by then.
    """
    stop = update(TurnRow).where(
        col(TurnRow.conversation_id) == conversation_id, or_(IS_WANTED, _TURN.c.retry_at.is_not(None))
    )
    if begun_by is not None:
        stop = stop.where(_TURN.c.created_at <= begun_by)
    result = session.execute(stop.values(state=Ending.STOPPED, ended_at=now, retry_at=None))
    return bool(count_changed(result))


def list_wanted(session: Session, process: str = "") -> list[str]:
    """Return the conversations with a wanted turn that this ``process`` or no living process owns."""
    return list(session.execute(_LIST_WANTED, {"process": process}).scalars())


def claim_turn(session: Session, turn_id: int, process: str, max_attempts: int) -> bool:
    """Let this process run the turn; False if it can't.

    It can't if another process runs the turn, after ``max_attempts`` failed attempts, or if the turn has
    ended. If the last owner died while it ran the turn, that counts as a failed attempt. A process that ends
    in order releases the turn (`release_turn`), which does not count. With each answer the attempts are
    counted from 0 again.
    """
    parameters = {"turn_id": turn_id, "process": process, "max_attempts": max_attempts}
    return bool(count_changed(session.connection().execute(_CLAIM, parameters)))


def release_turn(session: Session, turn_id: int, process: str, *, failed: bool = False) -> None:
    """Release a turn before its end.

    ``failed``: it counts as a failed attempt; else the attempts are counted from 0 again.
    """
    own_turn = (_TURN.c.id == turn_id, IS_WANTED, _TURN.c.owner == process)
    attempts = _TURN.c.attempts + 1 if failed else 0
    session.execute(update(_TURN).where(*own_turn).values(attempts=attempts, owner=""))


def give_up_turn(
    session: Session, turn_id: int, process: str, max_attempts: int, explanation: str, now: datetime
) -> bool:
    """End a wanted turn as failed, after ``max_attempts`` failed attempts.

    False if there were fewer, if the turn has ended, or if another process runs it.
    """
    parameters = {
        "turn_id": turn_id,
        "process": process,
        "max_attempts": max_attempts,
        "state": FAILED,
        "ended_at": now,
        "error": explanation,
    }
    return bool(count_changed(session.connection().execute(_GIVE_UP, parameters)))


def has_later_message(session: Session, turn_id: int, conversation_id: str) -> bool:
    """Return whether a person wrote after the turn was requested, so that the message joined the turn."""
    requested_at = select(TurnRow.created_at).where(TurnRow.id == turn_id).scalar_subquery()
    later_messages = select(MessageRow.id).where(
        MessageRow.conversation_id == conversation_id,
        MessageRow.role == LineRole.USER,
        col(MessageRow.created_at) > requested_at,
    )
    return session.execute(later_messages.limit(1)).first() is not None


def list_with_undelivered(session: Session, before: datetime, now: datetime) -> list[str]:
    """Return the conversations with an undelivered message from before ``before``, and no wanted turn.

    A message from the command line is due immediately, since the process of a command posts nothing.
    """
    from_shell = (
        select(ConversationRow.id)
        .where(ConversationRow.id == MessageRow.conversation_id, ConversationRow.channel == SHELL)
        .exists()
    )
    with_turn = select(TurnRow.conversation_id).where(IS_WANTED)
    rows = session.exec(
        select(MessageRow.conversation_id).where(
            ~col(MessageRow.delivered),
            or_(is_old(MessageRow.created_at, before, now), from_shell),
            col(MessageRow.conversation_id).not_in(with_turn),
        )
    )
    return list(dict.fromkeys(rows))  # DISTINCT would lead SQLite to an index of all messages
