"""Conversations: where they are, whose, and what the model reads of them."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, update
from sqlmodel import Session, col, select

from bot.domain.chat import Address, Message, Request
from bot.domain.conversations import (
    HEARD,
    Conversation,
    Transcript,
)
from bot.domain.people import Actor
from bot.store import messages
from bot.store import proposals as proposal_store
from bot.store.prepared import Prepared
from bot.store.tables import ConversationRow, ProposalRow
from bot.store.text import storable
from bot.store.upsert import id_of_new

_CONVERSATION: Any = ConversationRow.__table__  # type: ignore[attr-defined]
_GET = Prepared(select(_CONVERSATION).where(_CONVERSATION.c.id == bindparam("id")))
_OPEN_AT = Prepared(
    select(_CONVERSATION.c.id).where(
        _CONVERSATION.c.channel == bindparam("channel"),
        _CONVERSATION.c.key == bindparam("key"),
        _CONVERSATION.c.ended_at.is_(None),
    )
)


def get_conversation(session: Session, conversation_id: str) -> Conversation | None:
    row = _GET.row(session, {"id": conversation_id})
    return _conversation(row) if row else None


def has_ended(session: Session, conversation_id: str) -> bool:
    found = get_conversation(session, conversation_id)
    return found is None or found.ended_at is not None


def open_conversation(session: Session, address: Address) -> Conversation | None:
    """The conversation going on at an address, if one is."""
    conversation_id = open_at(session, address)
    return get_conversation(session, conversation_id) if conversation_id else None


def open_at(session: Session, address: Address) -> str | None:
    """The id of the conversation going on at an address, if one is."""
    where = {"channel": address.channel, "key": address.key}
    found: str | None = _OPEN_AT.value(session, where)
    return found


def begin(session: Session, message: Message | Request, title: str, now: datetime) -> str:
    """A new conversation; two first messages at once agree on one."""
    begun: str | None = id_of_new(
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
    found = begun or open_at(session, message.address)
    if found is None:
        raise ValueError(f"a conversation called {message.begin} is already elsewhere")
    return found


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


def read_transcript(session: Session, conversation_id: str) -> Transcript | None:
    """All lines (the last `MAX_LINES`) in the model's order, and their proposals."""
    conversation = get_conversation(session, conversation_id)
    if conversation is None:
        return None
    said = messages.latest(session, conversation_id)
    lines = sorted(said, key=lambda x: (x.after, x.role not in HEARD, x.id))
    proposals = {}
    if any(line.calls for line in lines):
        found = proposal_store.of_conversation(session, conversation_id)
        proposals = {(p.message_id, p.call_id): p for p in found}
    return Transcript(conversation, lines, proposals)


def open_counts(session: Session, conversation_ids: Sequence[str]) -> dict[str, int]:
    """How many proposals wait in each conversation."""
    rows = session.execute(
        select(ProposalRow.conversation_id, func.count())
        .where(col(ProposalRow.conversation_id).in_(conversation_ids), ProposalRow.state == "proposed")
        .group_by(col(ProposalRow.conversation_id))
    )
    return {row[0]: row[1] for row in rows}


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
