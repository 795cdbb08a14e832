"""Addresses in Telegram: a chat with or without a topic, and one posted message.

A group that becomes a supergroup gets a new id for good, and its messages stay behind. A chat keeps the id it
had when Nod first met it for everything outside this folder: settings, rules, conversations and copies of
cards name it by that. Only what goes to Telegram, and what comes from there, is translated here. Old messages
can't be changed; open cards are posted again at the new id.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

from sqlmodel import Session

from bot.domain.chat import Address, Clock
from bot.domain.jobs import Peers
from bot.errors import CopyGone, NotDeliverable
from bot.store import posted_cards
from bot.store.database import Database
from bot.store.state import keep_state, list_states
from bot.telemetry.logs import logger

NAME = "telegram"
_KEY = "moved:"
_TOLD = "telegram moved"  # what processes tell each other


@dataclass(frozen=True, slots=True)
class TelegramPlace:
    """A chat, or one topic of it; groups and channels have negative ids, people positive ones.

    ``home`` is the id the rest of Nod knows the chat by, where it has another today.
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
        """Return the name of its chat, where it has one: private chats have none."""
        if title and not self.private:
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
    """One message; written ``chat/message`` where a copy of a card is remembered.

    One that ``receiver`` alone sees has minus its ephemeral id as its number: Telegram counts those apart.
    """

    chat_id: int
    message_id: int
    receiver: int | None = None

    def __str__(self) -> str:
        return f"{self.chat_id}/{self.message_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote; raises CopyGone for what is not of the form ``chat/message``."""
        chat, _, message = text.partition("/")
        try:
            return cls(int(chat), int(message))
        except ValueError:
            raise CopyGone(f"{text!r} is no message in Telegram.") from None

    @property
    def private(self) -> dict[str, int | None]:
        """The Bot API parameters that name an ephemeral message, which one person alone sees."""
        return {
            "chat_id": self.chat_id,
            "receiver_user_id": self.receiver,
            "ephemeral_message_id": -self.message_id,
        }


@dataclass(frozen=True, slots=True)
class Alone:
    """One person of a group, and what lets Nod write there to them alone: their press, or their answer.

    Documented: either counts for 15 s, the receiver need not get it, and an app may drop it at a restart
    (https://core.telegram.org/bots/api#ephemeral-messages-and-commands). Not documented: how a refusal reads,
    how often a press counts, and what becomes of a message that is replaced
    (``replace_callback_query_message``) once it changes. So nothing is replaced, and any refusal leads to a
    message for all.
    """

    user_id: int
    query_id: str | None = None
    answer: int | None = None  # the ephemeral message that they answered with

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that make a send ephemeral (Bot API 10.3)."""
        to: dict[str, Any] = {"receiver_user_id": self.user_id}
        if self.query_id is not None:
            return {"ephemeral_message_parameters": {**to, "callback_query_id": self.query_id}}
        reply = {"ephemeral_message_id": self.answer}
        return {"ephemeral_message_parameters": to, "reply_parameters": reply}


log = logger(__name__)


class Moves:
    """The chats that moved to another id, stored in the database and cached here."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._to: dict[int, int] = {}
        self._home: dict[int, int] = {}
        self._others: Peers | None = None

    def share(self, others: Peers) -> None:
        """Tell other processes what is learned here; they tell this one."""
        self._others = others
        others.on(_TOLD, lambda told: self._note(*told))

    async def load(self) -> None:
        for key, state in (await self._database.read(list_states, NAME, _KEY)).items():
            self._note(int(key.removeprefix(_KEY)), state)

    async def learn(self, old: int, new: int) -> None:
        """Remember that a chat moved; the cards that stand in it are behind from now on."""
        if old == new or self._to.get(old) == new:
            return
        state = await self._database.write(self._learn, old, new)
        self._note(old, state)
        if self._others is not None:
            self._others.broadcast(_TOLD, [old, state])
        log.info("a telegram group has a new id", old=old, new=new)

    def has_moved(self, chat_id: int) -> bool:
        """Return whether the chat moved away from this id, so that its messages can't be changed."""
        return chat_id in self._to

    def now(self, chat_id: int) -> int:
        """Give the id Telegram knows the chat by today."""
        return self._to.get(chat_id, chat_id)

    def home(self, chat_id: int) -> int:
        """Give the id the rest of Nod knows the chat by."""
        return self._home.get(chat_id, chat_id)

    def place(self, address: Address) -> TelegramPlace:
        """Return the current place of an address. Raises NotDeliverable for what is no Telegram chat."""
        place = TelegramPlace.of(address)
        now = self.now(place.chat_id)
        if now == place.chat_id:
            return place
        return TelegramPlace(now, place.thread_id, home=place.chat_id)

    def here(self, chat_id: int, thread_id: int | None = None) -> TelegramPlace:
        """Return the place of an incoming message."""
        home = self.home(chat_id)
        return TelegramPlace(chat_id, thread_id, home=None if home == chat_id else home)

    def _learn(self, session: Session, old: int, new: int) -> dict[str, Any]:
        # people may have talked at the new id before anything told that the group moved: then it has its own
        state = {"to": new, "home": not posted_cards.is_known(session, NAME, str(new))}
        keep_state(session, NAME, f"{_KEY}{old}", state, self._clock())
        posted_cards.fall_behind(session, NAME, f"{old}/")
        return state

    def _note(self, old: int, state: dict[str, Any]) -> None:
        self._to[old] = state["to"]
        if state["home"]:
            self._home[state["to"]] = old
