"""What comes in becomes a line of its conversation, once for each event of its channel."""

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from bot.domain.chat import Message, Request
from bot.domain.conversations import Call, Role
from bot.store import conversations, messages, turns
from bot.store.tables import MessageRow
from bot.store.text import storable
from bot.store.upsert import id_of_new


@dataclass(frozen=True, slots=True)
class Accepted:
    """Where something that came in has its line."""

    conversation_id: str
    message_id: int


def accept(session: Session, message: Message, now: datetime) -> Accepted | None:
    """Append a person's message and want a turn; None when its event was taken in before."""
    conversation_id = conversations.open_at(session, message.address)
    if conversation_id is None:
        if messages.of_event(session, message.address.channel, message.event_id):
            return None  # taken in elsewhere, or before what went on here was ended: it begins nothing
        conversation_id = conversations.begin(session, message, message.text, now)
    message_id = id_of_new(
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
    turns.want_turn(session, conversation_id, now)
    return Accepted(conversation_id, message_id)


def add_request(session: Session, request: Request, call: Call, now: datetime) -> Accepted | None:
    """Append the notice that a request's card stands under; None when its event was taken in before."""
    conversation_id = request.into or conversations.open_at(session, request.address)
    if conversation_id is None:
        conversation_id = conversations.begin(session, request, call.summary, now)
    message_id = id_of_new(
        session,
        MessageRow,
        {
            "conversation_id": conversation_id,
            "role": Role.NOTICE,
            "text": storable(request.text),
            "after": messages.last_heard(session, conversation_id),
            "name": "",
            "channel": request.address.channel if request.event_id else None,
            "event_id": request.event_id,
            "calls": [[call.id, call.tool_name, call.arguments, call.summary]],
            "delivered": False,
            "created_at": now,
        },
    )
    return None if message_id is None else Accepted(conversation_id, message_id)
