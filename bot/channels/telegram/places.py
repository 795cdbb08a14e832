"""Addresses in Telegram: a chat with or without a topic, and one posted message.

A group that becomes a supergroup gets a new id for good. The rest of Nod keeps the id by which it first knew
the group (its home id); `Moves` translates between the two, see `bot/channels/moved_chats.py`. The messages
of the group stay at the old id and can't be changed, so open cards are posted again at the new id.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

from bot.channels.moved_chats import ChatMoves
from bot.domain.chat import Address, Clock
from bot.errors import CopyGone, NotDeliverable
from bot.store.database import Database

NAME = "telegram"


@dataclass(frozen=True, slots=True)
class TelegramPlace:
    """A chat, or one topic of it; groups and channels have negative ids, people positive ones."""

    chat_id: int  # the id by which Telegram knows the chat today
    thread_id: int | None = None
    home_id: int | None = None  # the home id, if it differs from ``chat_id``

    @property
    def is_private(self) -> bool:
        return self.chat_id > 0

    @property
    def address(self) -> Address:
        chat_id = self.chat_id if self.home_id is None else self.home_id
        key = str(chat_id) if self.thread_id is None else f"{chat_id}/{self.thread_id}"
        return Address(NAME, key)

    def make_names(self, title: str | None) -> dict[str, str]:
        """Return the chat's name by its address, as `Press.names`; empty without a title, and in private."""
        if title and not self.is_private:
            return {str(replace(self, thread_id=None).address): title}
        return {}

    @classmethod
    def of(cls, address: Address) -> Self:
        """Read ``chat`` or ``chat/topic``; raises NotDeliverable for anything else."""
        chat, _, thread = address.key.partition("/")
        try:
            return cls(int(chat), int(thread) if thread else None)
        except ValueError:
            raise NotDeliverable(f"{address} is not a Telegram chat.") from None


@dataclass(frozen=True, slots=True)
class TelegramPosted:
    """One message; its text form ``chat/message`` is the reference of a card's copy.

    An ephemeral message is one that a single person of a group sees. Telegram numbers ephemeral messages
    apart from others, so here their ids are negative.
    """

    chat_id: int
    message_id: int
    receiver: int | None = None  # the only person who sees the message; None: everyone in the chat

    def __str__(self) -> str:
        return f"{self.chat_id}/{self.message_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text of `str`. Raises CopyGone for a text not of the form ``chat/message``."""
        chat, _, message = text.partition("/")
        try:
            return cls(int(chat), int(message))
        except ValueError:
            raise CopyGone(f"{text!r} is no message in Telegram.") from None

    @property
    def is_ephemeral(self) -> bool:
        return self.receiver is not None

    @property
    def ephemeral_parameters(self) -> dict[str, int | None]:
        """The Bot API parameters that name an ephemeral message."""
        return {
            "chat_id": self.chat_id,
            "receiver_user_id": self.receiver,
            "ephemeral_message_id": -self.message_id,
        }


@dataclass(frozen=True, slots=True)
class EphemeralTarget:
    """The person of a group who gets an ephemeral message, and their press or message that allows it.

    Documented at https://core.telegram.org/bots/api#ephemeral-messages-and-commands:

    - a press or a message allows an ephemeral message for 15 s
    - its delivery is not guaranteed
    - an app may drop it at a restart

    Not documented:

    - the words of a refusal, so any refusal leads to a message for all
    - how often a press counts
    - what happens to a replaced message (``replace_callback_query_message``) when it changes, so nothing is
      replaced
    """

    user_id: int
    query_id: str | None = None  # the press; None: the person wrote ``message_id``
    message_id: int | None = None  # Telegram's number of the ephemeral message that the person wrote

    @property
    def send_parameters(self) -> dict[str, Any]:
        """The parameters that make a send ephemeral (Bot API 10.3)."""
        receiver: dict[str, Any] = {"receiver_user_id": self.user_id}
        if self.query_id is not None:
            return {"ephemeral_message_parameters": {**receiver, "callback_query_id": self.query_id}}
        reply = {"ephemeral_message_id": self.message_id}
        return {"ephemeral_message_parameters": receiver, "reply_parameters": reply}


class Moves:
    """The groups that became supergroups: `ChatMoves` with Telegram's numeric ids."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._moves = ChatMoves(NAME, database, clock)
        self.connect = self._moves.connect
        self.load = self._moves.load

    async def remember_move(self, old: int, new: int) -> None:
        """Remember that a group has a new id."""
        await self._moves.store_new_key(str(old), str(new))

    def has_moved(self, chat_id: int) -> bool:
        """Tell if the chat has another id now, so that messages at this one can't be changed."""
        return self._moves.has_moved(str(chat_id))

    def find_current_chat_id(self, chat_id: int) -> int:
        """Return the id by which Telegram knows the chat today."""
        return int(self._moves.find_current_key(str(chat_id)))

    def find_home_chat_id(self, chat_id: int) -> int:
        """Return the id by which the rest of Nod knows the chat."""
        return int(self._moves.find_home_key(str(chat_id)))

    def find_current_place(self, address: Address) -> TelegramPlace:
        """Return the current place of an address. Raises NotDeliverable if it is not a Telegram chat."""
        place = TelegramPlace.of(address)
        current_id = self.find_current_chat_id(place.chat_id)
        if current_id == place.chat_id:
            return place
        return TelegramPlace(current_id, place.thread_id, home_id=place.chat_id)

    def make_incoming_place(self, chat_id: int, thread_id: int | None = None) -> TelegramPlace:
        """Return the place of an incoming message."""
        home_id = self.find_home_chat_id(chat_id)
        return TelegramPlace(chat_id, thread_id, home_id=None if home_id == chat_id else home_id)
