"""The dialogues as they are kept: one per person and chat; a new one ends the old."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from telegram import User

from bot.channels.telegram.dialogue import Dialogue
from bot.channels.telegram.places import NAME, TelegramPlace
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.store import events
from bot.store.database import Database

NOT_YOURS = "This form is not open for you. Begin on the card."
MOVED_ON = "This was decided or changed in the meantime."


async def _nothing_to_answer() -> None:
    """What they did was no press."""


@dataclass(frozen=True, slots=True)
class Who:
    """The person in a dialogue, and where; ``answered`` is called before what waits for the chat's pace."""

    user: User
    actor: Actor
    place: TelegramPlace
    title: str = ""  # of the chat, where it has one
    answered: Callable[[], Awaitable[None]] = field(default=_nothing_to_answer, compare=False)

    @property
    def key(self) -> str:
        return f"ask:{self.place.chat_id}/{self.user.id}"


@dataclass(frozen=True, slots=True)
class Dialogues:
    database: Database
    clock: Clock

    async def load(self, who: Who) -> Dialogue | None:
        state = await self.database.read(events.dialogue, NAME, who.key)
        return Dialogue.from_state(state) if state else None

    async def prompted(self, who: Who, dialogue: Dialogue, message_id: int) -> None:
        """Remember the message that asks, unless something else has been begun while it was on its way."""
        if await self.load(who) == dialogue:
            await self.keep(who, dialogue.prompted(message_id))

    async def keep(self, who: Who, dialogue: Dialogue | None) -> None:
        state = dialogue.state() if dialogue else None
        await self.database.write(events.keep_dialogue, NAME, who.key, state, self.clock())
