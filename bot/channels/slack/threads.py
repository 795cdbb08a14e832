"""Threads in channels: whether Nod reads all that is said in one, or only what mentions it."""

from bot.channels.slack import blocks as b
from bot.channels.slack.blocks import Block
from bot.channels.slack.places import NAME, SlackPlace
from bot.domain.chat import Clock
from bot.store import events
from bot.store.database import Database

ACTION = "nod:mentions"
_ONLY = "I answer in this thread only when I'm mentioned. Press again to change that."
_ALL = "I answer every message in this thread."


class FollowedThreads:
    """What people chose with the button below Nod's first answer in a thread."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def offer(self, place: SlackPlace) -> list[Block]:
        """The button, for the first answer in a thread among people; nothing below the others."""
        if place.private or place.thread is None or await self._state(place) is not None:
            return []
        await self._keep(place, only=False)
        return [b.actions(b.button("Only when mentioned", ACTION, "thread"))]

    async def listens(self, place: SlackPlace) -> bool:
        """Whether what does not mention Nod is for it, too."""
        state = await self._state(place)
        return state is None or not state["only"]

    async def pressed(self, place: SlackPlace) -> str:
        """Change it; gives what to tell the person."""
        only = await self.listens(place)
        await self._keep(place, only=only)
        return _ONLY if only else _ALL

    async def _state(self, place: SlackPlace) -> dict[str, bool] | None:
        return await self._database.read(events.dialogue, NAME, f"thread:{place.address.key}")

    async def _keep(self, place: SlackPlace, *, only: bool) -> None:
        key = f"thread:{place.address.key}"
        await self._database.write(events.keep_dialogue, NAME, key, {"only": only}, self._clock())
