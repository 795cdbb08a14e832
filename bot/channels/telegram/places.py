"""Where things are in Telegram: a chat with or without a topic, and one posted message."""

from dataclasses import dataclass, replace
from typing import Self

from bot.domain.chat import Address
from bot.errors import NotDeliverable

NAME = "telegram"


@dataclass(frozen=True, slots=True)
class TelegramPlace:
    """A chat, or one topic of it; groups and channels have negative ids, people positive ones.

    ``home`` is the id the rest of Nod knows the chat by, where it has another today: see ``moves.py``.
    """

    chat_id: int
    thread_id: int | None = None
    home: int | None = None

    @property
    def private(self) -> bool:
        return self.chat_id > 0

    @property
    def address(self) -> Address:
        chat_id = self.chat_id if self.home is None else self.home
        key = str(chat_id) if self.thread_id is None else f"{chat_id}/{self.thread_id}"
        return Address(NAME, key)

    def named(self, title: str | None) -> dict[str, str]:
        """The name of its chat, where it has one: private chats have none."""
        return {str(replace(self, thread_id=None).address): title} if title and not self.private else {}

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
    """One message; written ``chat/message`` where a copy of a card is remembered."""

    chat_id: int
    message_id: int

    def __str__(self) -> str:
        return f"{self.chat_id}/{self.message_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote; raises ValueError when ``text`` is not of the form ``chat/message``."""
        chat, _, message = text.partition("/")
        return cls(int(chat), int(message))
