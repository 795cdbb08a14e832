"""The threads in which Nod answers only when mentioned, by the choice of the people there.

Below its first answer in a thread among people, Nod offers a button. A press toggles if Nod answers every
message in the thread, or only those that mention it. ``stream.py`` shows the button, ``presses.py`` takes the
press, and ``inbound.py`` asks for the choice.
"""

from dataclasses import dataclass

from bot.channels.slack import blocks
from bot.channels.slack.blocks import Block
from bot.channels.slack.places import NAME, SlackPlace
from bot.domain.chat import Clock
from bot.store.database import Database
from bot.store.state import load_state, store_state

MENTIONS_ACTION = "nod:mentions"  # the button that toggles if Nod answers in a thread without a mention
_ONLY_MENTIONS_TEXT = "I answer in this thread only when I'm mentioned. Press again to change that."
_ALL_MESSAGES_TEXT = "I answer every message in this thread."


@dataclass(frozen=True, slots=True)
class FollowedThreads:
    """The choice of people in each thread: Nod answers every message there, or only when mentioned.

    People choose by a button below Nod's first answer. "Every message" is stored when the button is offered.
    """

    database: Database
    clock: Clock

    async def offer(self, place: SlackPlace) -> list[Block]:
        """Return the button for Nod's first answer in a thread among people, else nothing."""
        if place.private or place.thread is None or await self._load_choice(place) is not None:
            return []
        await self._store_choice(place, only_mentions=False)
        return [blocks.actions(blocks.button("Only when mentioned", MENTIONS_ACTION, "thread"))]

    async def listens(self, place: SlackPlace) -> bool:
        """Tell if Nod answers messages without a mention, too."""
        choice = await self._load_choice(place)
        return choice is None or not choice["only"]

    async def handle_press(self, place: SlackPlace) -> str:
        """Toggle the choice, and return the reply for the person."""
        only_mentions = await self.listens(place)
        await self._store_choice(place, only_mentions=only_mentions)
        return _ONLY_MENTIONS_TEXT if only_mentions else _ALL_MESSAGES_TEXT

    async def _load_choice(self, place: SlackPlace) -> dict[str, bool] | None:
        return await self.database.read(load_state, NAME, f"thread:{place.address.key}")

    async def _store_choice(self, place: SlackPlace, *, only_mentions: bool) -> None:
        key = f"thread:{place.address.key}"
        await self.database.write(store_state, NAME, key, {"only": only_mentions}, self.clock())
