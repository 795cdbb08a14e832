"""Conversations, their lines and their turns. Every function is one short transaction's work."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, literal, literal_column, update
from sqlmodel import Session, SQLModel, col, or_, select

from bot.domain.chat import SHELL, Address, Message, Request
from bot.domain.conversations import (
    HEARD,
    Call,
    CallResult,
    Conversation,
    Line,
    Role,
    Transcript,
    Turn,
    Usage,
)
from bot.domain.people import Actor
from bot.store import proposals as proposal_store
from bot.store.prepared import Prepared
from bot.store.tables import ConversationRow, MessageRow, ProposalRow, TurnRow
from bot.store.text import storable
from bot.store.upsert import prepared

WANTED = "wanted"
MAX_LINES = 400  # how far back a turn reads before the token budget has its say

_CONVERSATION: Any = ConversationRow.__table__  # type: ignore[attr-defined]
_MESSAGE: Any = MessageRow.__table__  # type: ignore[attr-defined]
_TURN: Any = TurnRow.__table__  # type: ignore[attr-defined]

# What each cycle uses is built once: to build a statement costs several times what it costs to run it.
# A literal where an index is over those rows alone: with a parameter in its place the index cannot be chosen.
_IS_WANTED = _TURN.c.state == literal_column(f"'{WANTED}'")
_IN_CONVERSATION = _MESSAGE.c.conversation_id == bindparam("conversation_id")
_GET = Prepared(select(_CONVERSATION).where(_CONVERSATION.c.id == bindparam("id")))
_OPEN_AT = Prepared(
    select(_CONVERSATION.c.id).where(
        _CONVERSATION.c.channel == bindparam("channel"),
        _CONVERSATION.c.key == bindparam("key"),
        _CONVERSATION.c.ended_at.is_(None),
    )
)
_OF_EVENT = Prepared(
    select(_MESSAGE.c.conversation_id).where(
        _MESSAGE.c.channel == bindparam("channel"), _MESSAGE.c.event_id == bindparam("event_id")
    )
)
_LINES = select(
    *(
        _MESSAGE.c[name]
        for name in ("id", "role", "text", "after", "actor", "name", "calls", "results", "created_at")
    )
)
_LAST_LINES = Prepared(_LINES.where(_IN_CONVERSATION).order_by(_MESSAGE.c.id.desc()).limit(MAX_LINES))
_INSERT_LINE = Prepared(insert(_MESSAGE).returning(_MESSAGE.c.id))
_HEARD_SINCE = Prepared(
    select(_MESSAGE.c.id)
    .where(
        _IN_CONVERSATION,
        _MESSAGE.c.id > bindparam("seen"),
        _MESSAGE.c.role.in_(map(literal, sorted(HEARD))),
    )
    .limit(1)
)
_SPOKEN_SINCE = Prepared(
    select(_MESSAGE.c.id)
    .where(_IN_CONVERSATION, _MESSAGE.c.id > bindparam("seen"), _MESSAGE.c.role != Role.NOTICE)
    .limit(1)
)
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


@dataclass(frozen=True, slots=True)
class Accepted:
    conversation_id: str
    message_id: int


def accept(session: Session, message: Message, now: datetime) -> Accepted | None:
    """Append a person's message and want a turn; None when its event was taken in before."""
    conversation_id = _open_at(session, message.address)
    if conversation_id is None:
        if of_event(session, message.address.channel, message.event_id):
            return None  # taken in elsewhere, or before what went on here was ended: it begins nothing
        conversation_id = _begin(session, message, message.text, now)
    message_id = _or_ignore(
        session,
        MessageRow,
        {
            "conversation_id": conversation_id,
            "role": Role.USER,
            "text": storable(message.text),
            "actor": str(message.actor),
            "name": storable(message.actor.name),
            "channel": message.address.channel,
            "event_id": message.event_id,
            "delivered": True,
            "created_at": now,
        },
    )
    if message_id is None:
        return None
    want_turn(session, conversation_id, now)
    return Accepted(conversation_id, message_id)


def of_event(session: Session, channel: str, event_id: str) -> str | None:
    """The conversation that took in an event; None when none did."""
    found: str | None = _OF_EVENT.value(session, {"channel": channel, "event_id": event_id})
    return found


def add_note(
    session: Session, conversation_id: str, text: str, now: datetime, *, actor: Actor | None = None
) -> None:
    """Tell the model something in a line of its own; ``actor`` is on whose wish, where that is known."""
    _insert_line(session, conversation_id, Role.NOTE, text, now, actor=actor)


def add_notice(
    session: Session, conversation_id: str, text: str, after: int, now: datetime, *, delivered: bool
) -> int:
    """Tell people something that the model need not know."""
    return _insert_line(session, conversation_id, Role.NOTICE, text, now, after=after, delivered=delivered)


def add_request(session: Session, request: Request, call: Call, now: datetime) -> Accepted | None:
    """Append the notice that a request's card stands under; None when its event was taken in before."""
    conversation_id = request.into or _open_at(session, request.address)
    if conversation_id is None:
        conversation_id = _begin(session, request, call.summary, now)
    message_id = _or_ignore(
        session,
        MessageRow,
        {
            "conversation_id": conversation_id,
            "role": Role.NOTICE,
            "text": storable(request.text),
            "after": last_heard(session, conversation_id),
            "name": "",
            "channel": request.address.channel if request.event_id else None,
            "event_id": request.event_id,
            "calls": [[call.id, call.tool_name, call.arguments, call.summary]],
            "delivered": False,
            "created_at": now,
        },
    )
    return None if message_id is None else Accepted(conversation_id, message_id)


def name_of(session: Session, conversation_id: str, actor: Actor) -> str:
    """What somebody was last called in a conversation; empty where they said nothing there."""
    newest = (
        select(MessageRow.name)
        .where(MessageRow.conversation_id == conversation_id, MessageRow.actor == str(actor))
        .order_by(col(MessageRow.id).desc())
        .limit(1)
    )
    return session.execute(newest).scalar_one_or_none() or ""


def message_of_event(session: Session, channel: str, event_id: str) -> int | None:
    """The line that took in an event; None when none did."""
    return session.execute(
        select(MessageRow.id).where(MessageRow.channel == channel, MessageRow.event_id == event_id)
    ).scalar_one_or_none()


def want_turn(session: Session, conversation_id: str, now: datetime) -> bool:
    """Want a turn; False when one is wanted already: what comes meanwhile joins it.

    That one is locked (PostgreSQL), so that it cannot end before it can see what this transaction adds.
    """
    whose = {"conversation_id": conversation_id}
    fresh = whose | {"state": WANTED, "created_at": now} | _NEW_TURN
    while True:
        if _or_ignore(session, TurnRow, fresh) is not None:
            return True
        if _LOCKED_TURN.row(session, whose) is not None:
            return False


def take_up(session: Session, conversation_id: str) -> Turn | None:
    """Read the wanted turn of a conversation with all the model will see; None when none is wanted."""
    row = _WANTED_TURN.row(session, {"conversation_id": conversation_id})
    if row is None:
        return None
    transcript = read_transcript(session, conversation_id)
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
    return _insert_line(
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


def add_results(session: Session, message_id: int, results: dict[str, CallResult]) -> None:
    """Set what the calls of an answer gave, where that was known only after it was stored."""
    kept = {key: [r.text, r.ok] for key, r in results.items()}
    session.execute(update(_MESSAGE).where(_MESSAGE.c.id == message_id).values(results=kept))


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
    if seen is not None and heard_since(session, turn.transcript.conversation.id, seen):
        return False
    _END_TURN.count(session, {"turn_id": turn.id, "state": state, "ended_at": now, "error": error})
    return True


def hold_turn(session: Session, turn: Turn) -> None:
    """Nothing more joins the turn until this transaction ends (PostgreSQL; SQLite has one writer)."""
    session.execute(select(TurnRow.id).where(TurnRow.id == turn.id).with_for_update())


def hold_wanted(session: Session, conversation_id: str) -> None:
    """As `hold_turn`, of whatever turn a conversation wants."""
    _LOCKED_TURN.row(session, {"conversation_id": conversation_id})


def heard_since(session: Session, conversation_id: str, seen: int) -> bool:
    """Whether people spoke, or Nod told the model something, after the line ``seen``."""
    return _HEARD_SINCE.row(session, {"conversation_id": conversation_id, "seen": seen}) is not None


def last_heard(session: Session, conversation_id: str) -> int:
    """The id of the last line that the agent answers to; 0 where there is none."""
    newest = session.execute(
        select(func.max(MessageRow.id)).where(
            MessageRow.conversation_id == conversation_id, col(MessageRow.role).in_(HEARD)
        )
    )
    return newest.scalar_one() or 0


def stop_turn(session: Session, conversation_id: str, now: datetime) -> bool:
    """A person stops the wanted turn; False when there was none."""
    stopped = session.execute(
        update(TurnRow)
        .where(col(TurnRow.conversation_id) == conversation_id, col(TurnRow.state) == WANTED)
        .values(state="stopped", ended_at=now)
    )
    return bool(stopped.rowcount)  # type: ignore[attr-defined]


def spoken_since(session: Session, conversation_id: str, message_id: int) -> bool:
    """Whether people or the agent said more after this message."""
    return _SPOKEN_SINCE.row(session, {"conversation_id": conversation_id, "seen": message_id}) is not None


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


def undelivered(session: Session, conversation_id: str) -> list[int]:
    """Ids of the messages that were said but not shown, oldest first."""
    rows = session.exec(
        select(MessageRow.id)
        .where(MessageRow.conversation_id == conversation_id, ~col(MessageRow.delivered))
        .order_by(col(MessageRow.id))
    )
    return [ident for ident in rows if ident is not None]


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


def mark_delivered(session: Session, message_ids: Sequence[int]) -> None:
    session.execute(update(MessageRow).where(col(MessageRow.id).in_(message_ids)).values(delivered=True))


def get_conversation(session: Session, conversation_id: str) -> Conversation | None:
    row = _GET.row(session, {"id": conversation_id})
    return _conversation(row) if row else None


def open_conversation(session: Session, address: Address) -> Conversation | None:
    """The conversation going on at an address, if one is."""
    conversation_id = _open_at(session, address)
    return get_conversation(session, conversation_id) if conversation_id else None


def end_conversation(session: Session, address: Address, now: datetime) -> bool:
    """The next message there starts anew; False when there was nothing to end."""
    ended = session.execute(
        update(ConversationRow)
        .where(
            col(ConversationRow.channel) == address.channel,
            col(ConversationRow.key) == address.key,
            col(ConversationRow.ended_at).is_(None),
        )
        .values(ended_at=now)
    )
    return bool(ended.rowcount)  # type: ignore[attr-defined]


def conversations_of(session: Session, channel: str, owner: str, limit: int = 50) -> list[Conversation]:
    """What one actor began in a channel, newest first."""
    rows = session.exec(
        select(ConversationRow)
        .where(ConversationRow.channel == channel, ConversationRow.owner == owner)
        .order_by(col(ConversationRow.created_at).desc(), col(ConversationRow.id))
        .limit(limit)
    )
    return [_conversation(row) for row in rows]


def get_line(session: Session, message_id: int) -> Line | None:
    row = session.execute(_LINES.where(_MESSAGE.c.id == message_id)).one_or_none()
    return _line(row) if row else None


def read_transcript(session: Session, conversation_id: str) -> Transcript | None:
    """All lines (the last `MAX_LINES`) in the model's order, and their proposals."""
    conversation = get_conversation(session, conversation_id)
    if conversation is None:
        return None
    rows = _LAST_LINES.rows(session, {"conversation_id": conversation_id})
    lines = sorted((_line(row) for row in rows), key=lambda x: (x.after, x.role not in HEARD, x.id))
    proposals = {}
    if any(line.calls for line in lines):
        found = proposal_store.of_conversation(session, conversation_id)
        proposals = {(p.message_id, p.call_id): p for p in found}
    return Transcript(conversation, lines, proposals)


_NEW_TURN = {"attempts": 0, "model_calls": 0, "prompt_tokens": 0, "completion_tokens": 0}


def _line(row: Any) -> Line:
    ident, role, text, after, actor, name, calls, results, created_at = row
    return Line(
        id=ident,
        role=Role(role),
        text=text,
        after=ident if after is None else after,
        actor=Actor.parse(actor, name) if actor else None,
        calls=[Call(*c) for c in calls or ()],
        results={key: CallResult(*r) for key, r in (results or {}).items()},
        created_at=created_at,
    )


def _conversation(row: Any) -> Conversation:
    return Conversation(
        id=row.id,
        address=Address(row.channel, row.key),
        private=row.private,
        requester=Actor.parse(row.owner),
        title=row.title,
        created_at=row.created_at,
        ended_at=row.ended_at,
        shown_at=Address.parse(row.shown_at) if row.shown_at else None,
    )


def _open_at(session: Session, address: Address) -> str | None:
    where = {"channel": address.channel, "key": address.key}
    found: str | None = _OPEN_AT.value(session, where)
    return found


def _begin(session: Session, message: Message | Request, title: str, now: datetime) -> str:
    """A new conversation; two first messages at once agree on one."""
    begun: str | None = _or_ignore(
        session,
        ConversationRow,
        {
            "id": message.begin or secrets.token_hex(8),
            "channel": message.address.channel,
            "key": message.address.key,
            "private": message.private,
            "owner": str(message.actor),
            "title": storable(" ".join(title.split())[:80]),
            "created_at": now,
        },
    )
    found = begun or _open_at(session, message.address)
    if found is None:
        raise ValueError(f"a conversation called {message.begin} is already elsewhere")
    return found


def _insert_line(
    session: Session,
    conversation_id: str,
    role: Role,
    text: str,
    now: datetime,
    *,
    after: int | None = None,
    calls: list[list[str]] | None = None,
    results: dict[str, list[Any]] | None = None,
    delivered: bool = True,
    actor: Actor | None = None,
) -> int:
    wish = {"actor": str(actor), "name": storable(actor.name)} if actor else {"name": ""}
    ident: int = _INSERT_LINE.value(
        session,
        {
            "conversation_id": conversation_id,
            "role": role,
            "text": storable(text),
            **wish,
            "after": after,
            "calls": calls,
            "results": results,
            "delivered": delivered,
            "created_at": now,
        },
    )
    return ident


def _or_ignore(session: Session, table: type[SQLModel], values: Mapping[str, Any]) -> Any:
    """The id of the row inserted; None where a unique key of it is taken."""
    return prepared(session.get_bind().dialect.name, table, "id").value(session, values)


def open_counts(session: Session, conversation_ids: Sequence[str]) -> dict[str, int]:
    """How many proposals wait in each conversation."""
    rows = session.execute(
        select(ProposalRow.conversation_id, func.count())
        .where(col(ProposalRow.conversation_id).in_(conversation_ids), ProposalRow.state == "proposed")
        .group_by(col(ProposalRow.conversation_id))
    )
    return {row[0]: row[1] for row in rows}
