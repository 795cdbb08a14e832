"""Conversations as rows: their addresses, their owners and their titles.

At one address there is one open conversation at a time; ``/nod new`` ends it, and the next message begins
another. The lines are in ``bot/store/messages.py``; ``bot/store/transcripts.py`` puts them in the order the
model reads.

A conversation may be that of a *teammate*, an agent that the agent of another conversation, its *lead*, has
started.
"""

import secrets
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, bindparam, delete, exists, func, or_, tuple_, update
from sqlmodel import Session, col, select

from bot.domain.call_facts import Place
from bot.domain.chat import Address, Message, Request
from bot.domain.conversations import Conversation, LineRole
from bot.domain.people import Actor
from bot.domain.text import replace_unstorable
from bot.store import database, messages, people
from bot.store import proposals as proposal_store
from bot.store.inserts import insert_new
from bot.store.tables.conversations import ConversationRow, MessageRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import count_changed, is_at_or_below, table_of, value_of

_MAX_TITLE_CHARS = 80
_CONVERSATION = table_of(ConversationRow)
_MESSAGE = table_of(MessageRow)
# Statements that run often are built once: building one costs several times what running it costs.
_GET = select(_CONVERSATION).where(_CONVERSATION.c.id == bindparam("id"))
_SELECT_OPEN_AT = select(_CONVERSATION.c.id).where(
    _CONVERSATION.c.channel == bindparam("channel"),
    _CONVERSATION.c.key == bindparam("key"),
    _CONVERSATION.c.ended_at.is_(None),
)
# the columns of `Arrival`; the first column of `people.SELECT_PERSON` is the id of the Person
_SELECT_ARRIVAL = select(
    _SELECT_OPEN_AT.scalar_subquery(),
    messages.COUNT_SENT_SINCE.scalar_subquery(),
    people.SELECT_PERSON.selected_columns[0],
)
_COUNT_BEGUN_SINCE = select(func.count().label("found")).select_from(
    select(_CONVERSATION.c.id)
    .where(
        _CONVERSATION.c.channel == bindparam("channel"),
        _CONVERSATION.c.owner == bindparam("owner"),
        _CONVERSATION.c.created_at > bindparam("since"),
        _CONVERSATION.c.created_at <= bindparam("now"),
    )
    .limit(bindparam("limit"))
    .subquery()
)
# the columns of `AnswerProgress`
_SELECT_PROGRESS = select(proposal_store.OPEN_OF_ANSWER.exists(), messages.SPOKEN_SINCE.exists())
_PROPOSAL = table_of(ProposalRow)
_SELECT_BY_PROPOSALS = (
    select(_PROPOSAL.c.id.label("proposal_id"), *_CONVERSATION.c)
    .join_from(_PROPOSAL, _CONVERSATION, _CONVERSATION.c.id == _PROPOSAL.c.conversation_id)
    .where(_PROPOSAL.c.id.in_(bindparam("proposal_ids", expanding=True)))
)


def get_conversation(session: Session, conversation_id: str) -> Conversation | None:
    return database.read_once(
        session, (Conversation, conversation_id), lambda: _load_conversation(session, conversation_id)
    )


def _load_conversation(session: Session, conversation_id: str) -> Conversation | None:
    row = session.connection().execute(_GET, {"id": conversation_id}).first()
    return from_row(row) if row else None


def map_by_proposal(session: Session, proposal_ids: Collection[str]) -> dict[str, Conversation]:
    """Return the conversation of each of these proposals, by the proposal's id."""
    if not proposal_ids:
        return {}
    by_proposal: dict[str, Conversation] = {}
    for row in session.connection().execute(_SELECT_BY_PROPOSALS, {"proposal_ids": list(proposal_ids)}):
        conversation = from_row(row)
        by_proposal[row.proposal_id] = conversation
        database.cache_read(session, (Conversation, conversation.id), conversation)
    return by_proposal


def has_written_in(session: Session, accounts: Collection[str], scope: str) -> bool:
    """Return whether one of these accounts wrote at the address ``scope`` (as text) or below.

    Below the address of a chat are those of its threads.
    """
    channel, _, key = scope.partition(":")
    is_there = (_CONVERSATION.c.channel == channel) & is_at_or_below(_CONVERSATION.c.key, key)
    has_their_message = exists().where(
        _MESSAGE.c.conversation_id == _CONVERSATION.c.id,
        _MESSAGE.c.role == LineRole.USER,
        _MESSAGE.c.actor.in_(sorted(accounts)),
    )
    return bool(session.execute(select(exists().where(is_there, has_their_message))).scalar())


def load_place(session: Session, conversation_id: str) -> Place:
    """Return the place of a conversation, as rules name it; its address is empty without one."""
    found = get_conversation(session, conversation_id)
    return Place(str(found.origin) if found else "", private=found is not None and found.private)


def filter_private_addresses(session: Session, addresses: Collection[str]) -> set[str]:
    """Return the addresses, as text, that are private chats of one person."""
    if not addresses:
        return set()
    pairs = [(address.channel, address.key) for address in map(Address.parse, addresses)]
    found = select(ConversationRow.channel, ConversationRow.key).where(
        tuple_(col(ConversationRow.channel), col(ConversationRow.key)).in_(pairs),
        col(ConversationRow.private),
    )
    return {str(Address(channel, key)) for channel, key in session.exec(found)}


def has_ended(session: Session, conversation_id: str) -> bool:
    """Return whether a conversation was ended, or does not exist."""
    found = get_conversation(session, conversation_id)
    return found is None or found.ended_at is not None


def find_current_conversation(session: Session, address: Address) -> Conversation | None:
    """Return the current conversation at an address, or None."""
    conversation_id = find_current_id(session, address)
    if conversation_id:
        return get_conversation(session, conversation_id)
    return None


def find_current_id(session: Session, address: Address) -> str | None:
    """Return the id of the current conversation at an address, or None."""
    values = {"channel": address.channel, "key": address.key}
    found: str | None = session.connection().execute(_SELECT_OPEN_AT, values).scalar()
    return found


class AnswerProgress(NamedTuple):
    """The progress of a conversation past an answer of the agent."""

    is_unsettled: bool  # a proposal of the answer has not ended
    has_continued: bool  # there are later messages, notes or answers


def find_progress(session: Session, conversation_id: str, message_id: int) -> AnswerProgress:
    """Return the progress of a conversation past the agent's answer ``message_id``."""
    # the proposals are of the line ``message_id``, the later lines come after the line ``seen``
    values = {"conversation_id": conversation_id, "message_id": message_id, "seen": message_id}
    return AnswerProgress(*session.connection().execute(_SELECT_PROGRESS, values).one())


class Arrival(NamedTuple):
    """The stored facts about a message before it is accepted: its conversation, and its sender."""

    conversation_id: str | None  # the current conversation at its address
    sent_count: int  # the number of messages that the sender's account has sent since a moment, up to a limit
    person: str  # the id of the Person behind the account


def load_arrival(session: Session, message: Message, since: datetime, now: datetime, limit: int) -> Arrival:
    """Return the stored facts on a message; messages since ``since`` are counted up to ``limit``."""
    address, sender = message.address, str(message.actor)
    values = {
        "channel": address.channel,
        "key": address.key,
        "actor": sender,
        "since": since,
        "now": now,
        "limit": limit,
    }
    conversation_id, sent_count, person = session.connection().execute(_SELECT_ARRIVAL, values).one()
    # an account that is not linked is its own Person
    return Arrival(conversation_id, sent_count, person or sender)


def begin_conversation(session: Session, message: Message | Request, title: str, now: datetime) -> str:
    """Begin a conversation and return its id; two simultaneous first messages share one conversation.

    The id is the one in ``message.begin`` or, without that, a random one. Raises ValueError if a conversation
    at another address has that id.
    """
    begun: str | None = insert_new(
        session,
        ConversationRow,
        {
            "id": message.new_conversation_id or secrets.token_hex(8),
            "channel": message.address.channel,
            "key": message.address.key,
            "private": message.private,
            "owner": str(message.actor),
            "title": _shorten_title(title),
            "created_at": now,
        },
    )
    found = begun or find_current_id(session, message.address)
    if found is None:
        raise ValueError(f"a conversation called {message.new_conversation_id} is already elsewhere")
    return found


def delete_if_empty(session: Session, conversation_id: str) -> None:
    """Delete a conversation if it has no lines."""
    has_lines = exists().where(_MESSAGE.c.conversation_id == conversation_id)
    session.execute(delete(ConversationRow).where(col(ConversationRow.id) == conversation_id, ~has_lines))


def count_started_since(session: Session, actor: Actor, since: datetime, now: datetime, limit: int) -> int:
    """Return the number of conversations that an account has begun since then, up to ``limit``."""
    values = {"channel": actor.channel, "owner": str(actor), "since": since, "now": now, "limit": limit}
    found: int = session.connection().execute(_COUNT_BEGUN_SINCE, values).scalar_one()
    return found


def end_conversation(session: Session, address: Address, now: datetime) -> bool:
    """End the conversation at an address; return False if there was none.

    The next message there begins another.
    """
    ended = session.execute(
        update(ConversationRow)
        .where(
            col(ConversationRow.channel) == address.channel,
            col(ConversationRow.key) == address.key,
            col(ConversationRow.ended_at).is_(None),
        )
        .values(ended_at=now)
    )
    return bool(count_changed(ended))


def list_conversations_of(
    session: Session,
    channel: str,
    owner: str,
    limit: int = 50,
    before: tuple[datetime, str] | None = None,
    text: str = "",
) -> list[Conversation]:
    """Return the conversations that an account began in a channel, newest first, without deleted ones.

    ``before``: only conversations that began before this time and id. ``text``: only conversations with
    these words in the title or a message.
    """
    mark = (_CONVERSATION.c.created_at, _CONVERSATION.c.id)
    query = (
        select(_CONVERSATION)
        .where(_CONVERSATION.c.channel == channel, _CONVERSATION.c.owner == owner)
        .where(_CONVERSATION.c.deleted_at.is_(None))
    )
    if before:
        query = query.where(tuple_(*mark) < tuple_(*before))
    if text:
        query = query.where(_has_words(text))
    newest = query.order_by(*(column.desc() for column in mark)).limit(limit)
    return [from_row(row) for row in session.connection().execute(newest)]


def _has_words(text: str) -> ColumnElement[bool]:
    """Return the SQL condition that the title or a message has these words, in any case."""
    in_title = _CONVERSATION.c.title.icontains(text, autoescape=True)
    in_message = exists().where(
        _MESSAGE.c.conversation_id == _CONVERSATION.c.id, _MESSAGE.c.text.icontains(text, autoescape=True)
    )
    return or_(in_title, in_message)


def rename_conversation(session: Session, conversation_id: str, title: str) -> None:
    session.execute(
        update(_CONVERSATION).where(_CONVERSATION.c.id == conversation_id).values(title=_shorten_title(title))
    )


def forget_conversations(session: Session, conversation_ids: Sequence[str], now: datetime) -> None:
    """Delete the messages of these conversations, and end the conversations.

    Files are left to the caller. Proposals and their audit stay: they are the record.
    """
    session.execute(
        update(_CONVERSATION)
        .where(_CONVERSATION.c.id.in_(conversation_ids))
        .values(deleted_at=now, ended_at=func.coalesce(_CONVERSATION.c.ended_at, now), title="")
    )
    messages.delete_all(session, conversation_ids)


def _shorten_title(title: str) -> str:
    """Return a title on one line with at most `_MAX_TITLE_CHARS` characters."""
    line = replace_unstorable(" ".join(title.split()))
    if len(line) <= _MAX_TITLE_CHARS:
        return line
    return f"{line[: _MAX_TITLE_CHARS - 1].rstrip()}…"


def count_waiting_proposals(session: Session, conversation_ids: Sequence[str]) -> dict[str, int]:
    """Return the number of waiting proposals by conversation; one without any is left out."""
    rows = session.execute(
        select(ProposalRow.conversation_id, func.count())
        .where(col(ProposalRow.conversation_id).in_(conversation_ids), ProposalRow.state == "proposed")
        .group_by(col(ProposalRow.conversation_id))
    )
    return {row[0]: row[1] for row in rows}


def from_row(row: Any) -> Conversation:
    address = Address(row.channel, row.key)
    shown_at = Address.parse(row.shown_at) if row.shown_at else None
    return value_of(
        Conversation,
        row,
        address=address,
        origin=shown_at or address,
        requester=Actor.parse(row.owner),
        shown_at=shown_at,
        deleted=row.deleted_at is not None,
    )
