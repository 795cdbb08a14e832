"""The lines of conversations as rows: messages of people, the agent's answers, notes and notices of Nod.

The agent answers *heard* lines: messages of people, and notes to the model. Heard lines and the agent's
answers are *spoken* lines. Notices to people and summaries are neither. A line is delivered once people were
shown its text. ``bot/store/conversations.py`` puts lines in the order the model reads.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, literal_column, true, update
from sqlmodel import Session, col, select

from bot.domain.conversations import ANSWERABLE_ROLES, MODEL_ROLES, Call, CallResult, Line, LineRole, Turn
from bot.domain.people import NOD, Actor
from bot.domain.text import replace_unstorable
from bot.store.tables.conversations import MessageRow
from bot.store.tables.row import is_one_of, table_of

MAX_LINES = 400  # the most lines that a turn reads; the token budget may leave out more
SHOWN_LINES = 500  # the most lines of a conversation that people open
_MESSAGE = table_of(MessageRow)

_NO_CONTENTS = {"text": "", "actor": None, "name": "", "calls": None, "results": None, "files": None}

# Statements that run often are built once: building one costs several times what running it costs. Those
# without an underscore are parts of other modules' statements.
_IN_CONVERSATION = _MESSAGE.c.conversation_id == bindparam("conversation_id")
_SELECT_CONVERSATION_OF_EVENT = select(_MESSAGE.c.conversation_id).where(
    _MESSAGE.c.channel == bindparam("channel"), _MESSAGE.c.event_id == bindparam("event_id")
)
_LINE_COLUMNS = (
    *("id", "role", "text", "after", "actor", "name"),
    *("calls", "results", "created_at", "event_id", "files"),
)
_SELECT_LINES = select(*(_MESSAGE.c[name] for name in _LINE_COLUMNS))
_SELECT_LAST_LINES = _SELECT_LINES.where(_IN_CONVERSATION).order_by(_MESSAGE.c.id.desc()).limit(MAX_LINES)
UNDELIVERED = _SELECT_LINES.where(_IN_CONVERSATION, ~_MESSAGE.c.delivered).order_by(_MESSAGE.c.id)
_SELECT_FIRST_HEARD = (
    _SELECT_LINES.where(_IN_CONVERSATION, is_one_of(_MESSAGE.c.role, sorted(ANSWERABLE_ROLES)))
    .order_by(_MESSAGE.c.id)
    .limit(1)
)
_COUNT_LINES = select(func.count()).select_from(_MESSAGE).where(_IN_CONVERSATION)
HEARD_SINCE = (
    select(_MESSAGE.c.id)
    .where(
        _MESSAGE.c.conversation_id == bindparam("heard_in"),
        _MESSAGE.c.id > bindparam("seen"),
        is_one_of(_MESSAGE.c.role, sorted(ANSWERABLE_ROLES)),
    )
    .limit(1)
)
_INSERT_LINE = insert(_MESSAGE).returning(_MESSAGE.c.id)
_INSERT_ANSWER = insert(_MESSAGE).returning(_MESSAGE.c.id, HEARD_SINCE.exists())
SPOKEN_SINCE = (
    select(_MESSAGE.c.id)
    .where(
        _IN_CONVERSATION, _MESSAGE.c.id > bindparam("seen"), is_one_of(_MESSAGE.c.role, sorted(MODEL_ROLES))
    )
    .limit(1)
)
COUNT_SENT_SINCE = select(func.count().label("found")).select_from(
    select(_MESSAGE.c.id)
    .where(
        _MESSAGE.c.role == literal_column(f"'{LineRole.USER}'"),
        _MESSAGE.c.actor == bindparam("actor"),
        _MESSAGE.c.created_at > bindparam("since"),
        _MESSAGE.c.created_at <= bindparam("now"),
    )
    .limit(bindparam("limit"))
    .subquery()
)


def find_conversation_of_event(session: Session, channel: str, event_id: str) -> str | None:
    """Return the id of the conversation in which an event became a line, or None."""
    event = {"channel": channel, "event_id": event_id}
    found: str | None = session.connection().execute(_SELECT_CONVERSATION_OF_EVENT, event).scalar()
    return found


def find_message_of_event(session: Session, channel: str, event_id: str) -> int | None:
    """Return the id of the line that an event became, or None."""
    return session.execute(
        select(MessageRow.id).where(MessageRow.channel == channel, MessageRow.event_id == event_id)
    ).scalar_one_or_none()


def add_note(
    session: Session,
    conversation_id: str,
    text: str,
    now: datetime,
    *,
    actor: Actor | None = None,
    event_id: str | None = None,
) -> int:
    """Add a line that only the model reads. ``actor``: the account that caused it, where known.

    ``event_id``: the id of a schedule's run; only one line can have it.
    """
    return _append(session, conversation_id, LineRole.NOTE, text, now, actor=actor, event_id=event_id)


def add_notice(
    session: Session, conversation_id: str, text: str, after: int, now: datetime, *, delivered: bool
) -> int:
    """Add a line that only people read. ``after``: the id of the heard line that it follows."""
    return _append(session, conversation_id, LineRole.NOTICE, text, now, after=after, delivered=delivered)


def add_summary(session: Session, conversation_id: str, text: str, upto: int, now: datetime) -> None:
    """Add a summary, which the model reads from now on in place of the lines up to the id ``upto``."""
    # a summary has the id of the last line that it stands for in the column ``after``
    _append(session, conversation_id, LineRole.SUMMARY, text, now, after=upto)


def has_notice(session: Session, conversation_id: str, text: str, since: datetime) -> bool:
    """Return whether a conversation has got a notice with exactly this text since then."""
    is_notice = (_MESSAGE.c.conversation_id == conversation_id, _MESSAGE.c.role == LineRole.NOTICE)
    found = select(_MESSAGE.c.id).where(*is_notice, _MESSAGE.c.text == text, _MESSAGE.c.created_at > since)
    return session.connection().execute(found.limit(1)).first() is not None


def find_name(session: Session, conversation_id: str, actor: Actor) -> str:
    """Return the latest name of an account in a conversation; empty where it wrote nothing there."""
    newest = (
        select(MessageRow.name)
        .where(MessageRow.conversation_id == conversation_id, MessageRow.actor == str(actor))
        .order_by(col(MessageRow.id).desc())
        .limit(1)
    )
    return session.execute(newest).scalar_one_or_none() or ""


def add_results(session: Session, message_id: int, results: dict[str, CallResult]) -> None:
    """Set results of an answer's calls that came only after the answer was stored."""
    stored = {key: result_to_json(result) for key, result in results.items()}
    session.execute(update(_MESSAGE).where(_MESSAGE.c.id == message_id).values(results=stored))


def call_to_json(call: Call) -> list[Any]:
    """Return a call as stored JSON; empty ``server_fields`` are left out."""
    plain = [call.id, call.tool_name, call.arguments, call.summary]
    if call.server_fields:
        return [*plain, dict(call.server_fields)]
    return plain


def result_to_json(result: CallResult) -> list[Any]:
    """Return a result as stored JSON: the text, the success, and False if the text is not the tool's own."""
    if result.is_from_tool:
        return [result.text, result.ok]
    return [result.text, result.ok, False]


def find_last_heard(session: Session, conversation_id: str) -> int:
    """Return the id of the last heard line of a conversation, or 0."""
    newest = session.execute(
        select(func.max(MessageRow.id)).where(
            MessageRow.conversation_id == conversation_id, col(MessageRow.role).in_(ANSWERABLE_ROLES)
        )
    )
    return newest.scalar_one() or 0


def find_last_answer(session: Session, conversation_id: str) -> int | None:
    """Return the id of the agent's last answer, or None."""
    is_answer = (MessageRow.conversation_id == conversation_id, MessageRow.role == LineRole.ASSISTANT)
    found: int | None = session.execute(select(func.max(MessageRow.id)).where(*is_answer)).scalar_one()
    return found


def has_heard_since(session: Session, conversation_id: str, seen: int) -> bool:
    """Return whether there is a heard line after the line with the id ``seen``."""
    found = session.connection().execute(HEARD_SINCE, {"heard_in": conversation_id, "seen": seen})
    return found.first() is not None


def list_undelivered(session: Session, conversation_id: str) -> list[Line]:
    """Return the undelivered lines, oldest first."""
    rows = session.connection().execute(UNDELIVERED, {"conversation_id": conversation_id})
    return [_to_line(row) for row in rows]


def delete_all(session: Session, conversation_ids: Sequence[str]) -> None:
    """Delete all lines of these conversations.

    The newest line of the table stays, without contents: SQLite would reuse its id, and proposals name it.
    """
    theirs = _MESSAGE.c.conversation_id.in_(conversation_ids)
    newest = select(func.max(_MESSAGE.c.id)).scalar_subquery()
    session.execute(update(_MESSAGE).where(theirs, _MESSAGE.c.id == newest).values(_NO_CONTENTS))
    session.execute(delete(_MESSAGE).where(theirs, _MESSAGE.c.id != newest))


def mark_delivered(session: Session, message_ids: Sequence[int]) -> None:
    session.execute(update(MessageRow).where(col(MessageRow.id).in_(message_ids)).values(delivered=True))


def get_line(session: Session, message_id: int, conversation_id: str | None = None) -> Line | None:
    """Return one line; None where no such line is in this conversation."""
    is_there: Any = true() if conversation_id is None else _MESSAGE.c.conversation_id == conversation_id
    row = session.execute(_SELECT_LINES.where(_MESSAGE.c.id == message_id, is_there)).one_or_none()
    return _to_line(row) if row else None


def list_latest(session: Session, conversation_id: str, limit: int | None = MAX_LINES) -> list[Line]:
    """Return the last ``limit`` lines of a conversation (None: all), newest first.

    A turn reads a conversation with `MAX_LINES`. Of a long conversation it then gets the first heard line and
    the last 200 to 399 lines. The number grows by one with each new line, and falls to 200 when the
    conversation reaches a multiple of 200. So most turns begin with the same line as the turn before, and the
    cache of the model's server can be used.
    """
    if limit != MAX_LINES:
        here = _SELECT_LINES.where(_MESSAGE.c.conversation_id == conversation_id)
        newest = here.order_by(_MESSAGE.c.id.desc()).limit(limit)
        return [_to_line(row) for row in session.connection().execute(newest)]
    values = {"conversation_id": conversation_id}
    rows = session.connection().execute(_SELECT_LAST_LINES, values).all()
    if len(rows) == MAX_LINES:
        half = MAX_LINES // 2  # the first line that is read changes only once in this number of new lines
        count: int = session.connection().execute(_COUNT_LINES, values).scalar_one()
        rows = rows[: half + count % half]
        first = session.connection().execute(_SELECT_FIRST_HEARD, values).first()
        if first is not None and first.id < rows[-1].id:
            rows = [*rows, first]
    return [_to_line(row) for row in rows]


def list_until(session: Session, conversation_id: str, message_id: int, limit: int) -> list[Line]:
    """Return the last lines of a conversation up to ``message_id``, newest first."""
    here = (_MESSAGE.c.conversation_id == conversation_id, _MESSAGE.c.id <= message_id)
    rows = session.execute(_SELECT_LINES.where(*here).order_by(_MESSAGE.c.id.desc()).limit(limit))
    return [_to_line(row) for row in rows]


def _to_line(row: Any) -> Line:
    # the columns of `_LINE_COLUMNS`
    ident, role, text, after, actor, name, calls, results, created_at, event_id, files = row
    return Line(
        id=ident,
        role=LineRole(role),
        text=text,
        after=ident if after is None else after,
        actor=Actor.parse(actor, name) if actor else None,
        calls=[Call(*call) for call in calls or ()],
        results={key: CallResult(*result) for key, result in (results or {}).items()},
        created_at=created_at,
        event_id=event_id,
        files=files or (),
    )


def add_answer(
    session: Session,
    turn: Turn,
    text: str,
    calls: Sequence[Call],
    results: Mapping[str, CallResult],
    now: datetime,
    *,
    delivered: bool,
) -> tuple[int, bool]:
    """Store the agent's answer. Return its id, and True if heard lines came while it was written."""
    last_heard_id = turn.transcript.last_heard_id  # the last line that the model has read
    conversation_id = turn.transcript.conversation.id
    row = {
        "conversation_id": conversation_id,
        "role": LineRole.ASSISTANT,
        "text": replace_unstorable(text),
        "name": "",
        "after": last_heard_id,
        "calls": [call_to_json(call) for call in calls] or None,
        "results": {key: result_to_json(result) for key, result in results.items()} or None,
        "delivered": delivered,
        "created_at": now,
        "event_id": turn.key(turn.usage.model_calls),  # unique, so that an answer is stored once
    }
    heard_since = {"heard_in": conversation_id, "seen": last_heard_id}  # the parameters of `HEARD_SINCE`
    message_id, has_heard = session.connection().execute(_INSERT_ANSWER, row | heard_since).one()
    return message_id, has_heard


def _append(
    session: Session,
    conversation_id: str,
    role: LineRole,
    text: str,
    now: datetime,
    *,
    after: int | None = None,
    delivered: bool = True,
    actor: Actor | None = None,
    event_id: str | None = None,
) -> int:
    """Store a line and return its id."""
    row: dict[str, Any] = {
        "conversation_id": conversation_id,
        "role": role,
        "text": replace_unstorable(text),
        "name": replace_unstorable(actor.name) if actor else "",
        "after": after,
        "delivered": delivered,
        "created_at": now,
    }
    if actor:
        row["actor"] = str(actor)
    if event_id:
        row |= {"channel": NOD, "event_id": event_id}  # both together are unique
    line_id: int = session.connection().execute(_INSERT_LINE, row).scalar_one()
    return line_id
