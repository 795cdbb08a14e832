"""The dialogues as they are kept: one per person and chat; a new one ends the old."""

from dataclasses import dataclass

from telegram import User

from bot.channels.telegram.dialogue import Dialogue
from bot.channels.telegram.places import CHANNEL, Spot
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.store import events
from bot.store.database import Database

NOT_YOURS = "This form is not open for you. Begin on the card."
MOVED_ON = "This was decided or changed meanwhile."


@dataclass(frozen=True, slots=True)
class Who:
    """The person in a dialogue, and where."""

    user: User
    actor: Actor
    spot: Spot

    @property
    def key(self) -> str:
        return f"ask:{self.spot.chat_id}/{self.user.id}"


@dataclass(frozen=True, slots=True)
class Dialogues:
    database: Database
    clock: Clock

    async def load(self, who: Who) -> Dialogue | None:
        state = await self.database.read(events.dialogue, CHANNEL, who.key)
        return Dialogue.from_state(state) if state else None

    async def keep(self, who: Who, dialogue: Dialogue | None) -> None:
        state = dialogue.state() if dialogue else None
        await self.database.write(events.keep_dialogue, CHANNEL, who.key, state, self.clock())
