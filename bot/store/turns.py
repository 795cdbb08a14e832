"""Turns as rows: wanted, taken up, answered in, ended. At most one per conversation is wanted at a time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, literal_column, update
from sqlmodel import Session, col, or_, select

from bot.domain.chat import SHELL
from bot.domain.conversations import Call, CallResult, Role, Turn, Usage
from bot.store import conversations, messages
from bot.store.prepared import Prepared
from bot.store.tables import ConversationRow, MessageRow, TurnRow
from bot.store.upsert import id_of_new

WANTED = "wanted"
_TURN: Any = TurnRow.__table__  # type: ignore[attr-defined]
# What each cycle uses is built once: to build a statement costs several times what it costs to run it.
# A literal where an index is over those rows alone: with a parameter in its place the index cannot be chosen.
_IS_WANTED = _TURN.c.state == literal_column(f"'{WANTED}'")
_SELECT_WANTED = select(
    _TURN.c.id, _TURN.c.model_calls, _TURN.c.prompt_tokens, _TURN.c.completion_tokens
).where(_TURN.c.conversation_id == bindparam("conversation_id"), _IS_WANTED)
_WANTED_TURN = Prepared(_SELECT_WANTED)
_LOCKED_TURN = Prepared(_SELECT_WANTED.with_for_update())
_NOTE_USAGE = Prepared(
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), _IS_WANTED)
    .values({name: bindparam(name) for name in ("model_calls", "prompt_tokens", "completion_tokens")})
)
_END_TURN = Prepared(
    update(_TURN)
    .where(_TURN.c.id == bindparam("turn_id"), _IS_WANTED)
    .values({name: bindparam(name) for name in ("state", "ended_at", "error")})
)
_NEW_TURN = {"attempts": 0, "model_calls": 0, "prompt_tokens": 0, "completion_tokens": 0}


def want_turn(session: Session, conversation_id: str, now: datetime) -> bool:
    """Want a turn; False when one is wanted already: what comes meanwhile joins it.

    That one is locked (PostgreSQL), so that it cannot end before it can see what this transaction adds.
    """
    whose = {"conversation_id": conversation_id}
    fresh = whose | {"state": WANTED, "created_at": now} | _NEW_TURN
    while True:
        if id_of_new(session, TurnRow, fresh) is not None:
            return True
        if _LOCKED_TURN.row(session, whose) is not None:
            return False


def take_up(session: Session, conversation_id: str) -> Turn | None:
    """Read the wanted turn of a conversation with all the model will see; None when none is wanted."""
    row = _WANTED_TURN.row(session, {"conversation_id": conversation_id})
    if row is None:
        return None
    transcript = conversations.read_transcript(session, conversation_id)
    return Turn(row[0], transcript, Usage(*row[1:])) if transcript else None


def answer(
    session: Session,
    turn: Turn,
    text: str,
    calls: Sequence[Call],
    results: dict[str, CallResult],
    usage: Usage,
    *,
    delivered: bool,
    now: datetime,
) -> int | None:
    """Store what the model said and what its reads gave; None when the turn is no longer wanted (stopped)."""
    kept = _NOTE_USAGE.count(
        session,
        {
            "turn_id": turn.id,
            "model_calls": usage.model_calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        },
    )
    if kept != 1:
        return None
    return messages.append(
        session,
        turn.transcript.conversation.id,
        Role.ASSISTANT,
        text,
        now,
        after=turn.transcript.seen,
        calls=[[c.id, c.tool_name, c.arguments, c.summary] for c in calls] or None,
        results={key: [r.text, r.ok] for key, r in results.items()} or None,
        delivered=delivered,
    )


def end_turn(
    session: Session,
    turn: Turn,
    state: str,
    now: datetime,
    *,
    seen: int | None = None,
    error: str | None = None,
) -> bool:
    """End a wanted turn. With ``seen``, only if nobody spoke since; False says that it goes on."""
    if seen is not None and messages.heard_since(session, turn.transcript.conversation.id, seen):
        return False
    _END_TURN.count(session, {"turn_id": turn.id, "state": state, "ended_at": now, "error": error})
    return True


def hold_turn(session: Session, turn: Turn) -> None:
    """Nothing more joins the turn until this transaction ends (PostgreSQL; SQLite has one writer)."""
    session.execute(select(TurnRow.id).where(TurnRow.id == turn.id).with_for_update())


def hold_wanted(session: Session, conversation_id: str) -> None:
    """As `hold_turn`, of whatever turn a conversation wants."""
    _LOCKED_TURN.row(session, {"conversation_id": conversation_id})


def stop_turn(session: Session, conversation_id: str, now: datetime) -> bool:
    """A person stops the wanted turn; False when there was none."""
    stopped = session.execute(
        update(TurnRow)
        .where(col(TurnRow.conversation_id) == conversation_id, col(TurnRow.state) == WANTED)
        .values(state="stopped", ended_at=now)
    )
    return bool(stopped.rowcount)  # type: ignore[attr-defined]


def wanted(session: Session) -> list[str]:
    """Conversations whose turn waits to be run."""
    return list(session.exec(select(TurnRow.conversation_id).where(_IS_WANTED)))


def count_attempts(session: Session, most: int, now: datetime) -> list[str]:
    """Count one more attempt for every wanted turn; give up and return those that never end."""
    session.execute(update(_TURN).where(_IS_WANTED).values(attempts=_TURN.c.attempts + 1))
    given_up = session.execute(
        update(_TURN)
        .where(_IS_WANTED, _TURN.c.attempts > most)
        .values(state="failed", ended_at=now, error="given up after repeated restarts")
        .returning(_TURN.c.conversation_id)
    )
    return list(given_up.scalars())


def with_undelivered(session: Session, before: datetime) -> list[str]:
    """Conversations with a message from before then that was not shown, and no turn under way.

    What the shell opened is due at once: its process shows nothing itself.
    """
    shell = select(ConversationRow.id).where(ConversationRow.channel == SHELL)
    busy = select(TurnRow.conversation_id).where(_IS_WANTED)
    rows = session.exec(
        select(MessageRow.conversation_id).where(
            ~col(MessageRow.delivered),
            or_(col(MessageRow.created_at) <= before, col(MessageRow.conversation_id).in_(shell)),
            col(MessageRow.conversation_id).not_in(busy),
        )
    )
    return list(dict.fromkeys(rows))  # DISTINCT would lead SQLite to an index of all messages
