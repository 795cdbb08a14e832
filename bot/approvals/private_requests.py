"""Requests that only one person sees, wherever that person is."""

import secrets

from bot.domain.chat import Address, Request
from bot.domain.people import Actor
from bot.store import notices


def make_private_request(person: Actor, text: str) -> Request:
    """Return a request that only one person sees; the caller adds its tool and arguments.

    In a chat, the request comes in the private conversation with that person. A channel that posts nothing,
    such as the console, has no such conversation, so the request begins a new conversation there.
    """
    key = person.key
    new_conversation_id = None
    if person.channel in notices.CHANNELS_WITHOUT_CHATS:
        new_conversation_id = secrets.token_hex(8)
        key = f"{person.key}/{new_conversation_id}"
    address = Address(person.channel, key)
    return Request(person, "", {}, address, text, private=True, new_conversation_id=new_conversation_id)
