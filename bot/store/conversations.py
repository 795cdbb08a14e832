"""Conversations as rows: their addresses and owners, and the transcript for the model.

At one address there is one open conversation at a time; ``/nod new`` ends it, and the next message begins
another. The lines are in ``bot/store/messages.py``; `load_transcript_of` puts them in the order the model
reads, with their proposals and files. `find_calls_already_asked` finds the calls about which the agent need
not ask people again.

A conversation may be that of a *teammate*, an agent that the agent of another conversation, its *lead*, has
started.
"""

import secrets
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    String,
    bindparam,
    delete,
    exists,
    func,
    or_,
    text,
    tuple_,
    union_all,
    update,
)
from sqlmodel import Session, col, select

from bot.domain import kinds
from bot.domain.call_facts import Place
from bot.domain.chat import Address, Message, Request
from bot.domain.conversations import (
    ANSWERABLE_ROLES,
    Conversation,
    Line,
    LineRole,
    Transcript,
)
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.text import storable
from bot.store import database, messages, outputs, people
from bot.store import proposals as proposal_store
from bot.store.engine import insert_new
from bot.store.tables.conversations import ConversationRow, MessageRow, TeammateRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import count_changed, is_at_or_below, is_one_of, table_of, value_of

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


def find_calls_already_asked(session: Session, conversation_id: str, now: datetime) -> dict[str, str]:
    """Return the calls that people of a conversation were asked about already, by digest.

    These are calls that wait or run, and calls that were declined since a person last asked for work. The
    value is the name of the person who declined; empty for a call that waits or runs. A person asks for work
    by a message, also to the lead agent of a team, by a schedule's run, by an answer to a question, and by
    approving a plan.
    """
    values = {"conversation_id": conversation_id, "now": now}
    rows = session.connection().execute(_select_asked_already(), values)
    return {row.digest: row.decided_by if row.state == State.DECLINED else "" for row in rows}


@cache
def _select_asked_already() -> Any:
    """Return the query of `find_calls_already_asked`, built once."""
    conversation_id = bindparam("conversation_id", type_=String)
    last_request = _select_last_request(conversation_id)
    requested_at = select(_MESSAGE.c.created_at).where(_MESSAGE.c.id == last_request).scalar_subquery()
    # only up to now: a process whose clock was ahead may have dated a decision later
    was_decided_since = (_PROPOSAL.c.decided_at > requested_at) & (_PROPOSAL.c.decided_at <= bindparam("now"))
    was_proposed_since = _PROPOSAL.c.message_id > func.coalesce(last_request, 0)
    is_declined = (_PROPOSAL.c.state == State.DECLINED) & _PROPOSAL.c.cause.is_(None)
    still_counts = (was_proposed_since | was_decided_since) & ~_has_later_press()
    return select(_PROPOSAL.c.digest, _PROPOSAL.c.state, _PROPOSAL.c.decided_by).where(
        _PROPOSAL.c.conversation_id == conversation_id,
        is_one_of(_PROPOSAL.c.state, proposal_store.OPEN) | (is_declined & still_counts),
    )


def _select_last_request(conversation_id: Any) -> Any:
    """Return the subquery for the id of the last line that asks for work.

    The line is in this conversation or, if that is a teammate's, in the lead agent's.
    """
    lead_id = select(col(TeammateRow.lead_id)).where(col(TeammateRow.id) == conversation_id).scalar_subquery()
    begins_scheduled_run = (_MESSAGE.c.role == LineRole.NOTE) & _MESSAGE.c.event_id.is_not(None)
    asks_for_work = (_MESSAGE.c.role == LineRole.USER) | begins_scheduled_run
    last_line = select(func.max(_MESSAGE.c.id).label("id")).where(asks_for_work)
    # a query for each conversation: for both together, PostgreSQL reads the messages of all conversations
    last_here = last_line.where(_MESSAGE.c.conversation_id == conversation_id)
    last_of_lead = last_line.where(_MESSAGE.c.conversation_id == lead_id)
    return select(func.max(union_all(last_here, last_of_lead).subquery().c.id)).scalar_subquery()


def _has_later_press() -> Any:
    """Return the condition that people asked for work by a press after a proposal was decided.

    The answer to a question and the approval of a plan ask for work like a message.
    """
    answered = _PROPOSAL.alias("answered")
    return exists().where(
        answered.c.conversation_id == _PROPOSAL.c.conversation_id,
        answered.c.kind.in_([kinds.QUESTION.name, kinds.PLAN.name]),
        # ``NOT … <>`` so that SQLite uses the index by conversation, as explained at `WAITS`
        text(f"NOT answered.state <> '{State.SUCCEEDED}'"),
        answered.c.decided_at > _PROPOSAL.c.decided_at,
    )


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
            "id": message.begin or secrets.token_hex(8),
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
        raise ValueError(f"a conversation called {message.begin} is already elsewhere")
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
    words: str = "",
) -> list[Conversation]:
    """Return the conversations that an account began in a channel, newest first, without deleted ones.

    ``before``: only conversations that began before this time and id. ``words``: only conversations with
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
    if words:
        query = query.where(_has_words(words))
    newest = query.order_by(*(column.desc() for column in mark)).limit(limit)
    return [from_row(row) for row in session.connection().execute(newest)]


def _has_words(words: str) -> ColumnElement[bool]:
    """Return the SQL condition that the title or a message has these words, in any case."""
    in_title = _CONVERSATION.c.title.icontains(words, autoescape=True)
    in_message = exists().where(
        _MESSAGE.c.conversation_id == _CONVERSATION.c.id, _MESSAGE.c.text.icontains(words, autoescape=True)
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
    line = storable(" ".join(title.split()))
    if len(line) <= _MAX_TITLE_CHARS:
        return line
    return f"{line[: _MAX_TITLE_CHARS - 1].rstrip()}…"


def read_transcript(
    session: Session, conversation_id: str, limit: int | None = messages.MAX_LINES
) -> Transcript | None:
    """Return the last ``limit`` lines (None: all) in the model's order, with their proposals and files.

    None if there is no such conversation.
    """
    conversation = get_conversation(session, conversation_id)
    if conversation:
        return load_transcript_of(session, conversation, limit)
    return None


def load_transcript_of(
    session: Session, conversation: Conversation, limit: int | None = messages.MAX_LINES
) -> Transcript:
    """Return the transcript of a conversation whose row was read already, as `read_transcript` does."""
    newest_first = messages.list_latest(session, conversation.id, limit)
    # the newest summary, which stands for the lines before it
    summary = next((line for line in newest_first if line.role is LineRole.SUMMARY), None)
    lines = [line for line in newest_first if line.role is not LineRole.SUMMARY]
    lines.sort(key=_place_for_model)
    proposals = {}
    if any(line.calls for line in lines):
        for proposal in proposal_store.list_of_conversation(session, conversation.id):
            proposals[proposal.message_id, proposal.call_id] = proposal
    handles = [handle for line in lines for handle in line.files]
    files = outputs.find_attached(session, conversation.id, handles) if handles else {}
    return Transcript(conversation, lines, proposals, files=files, summary=summary)


def _place_for_model(line: Line) -> tuple[int, bool, int]:
    """Return a line's place in the model's order, as a key to sort by.

    An answer comes after the lines that it answers, and before those that came while it was written.
    """
    is_heard = line.role in ANSWERABLE_ROLES  # the agent answers it: a message, or a note
    return line.after, not is_heard, line.id


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
