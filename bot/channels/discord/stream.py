"""One turn in Discord: Nod is seen writing while it works, and its text is posted when it is complete."""

from datetime import datetime

from bot.channels.discord.limits import TYPING
from bot.channels.discord.places import DiscordPlace
from bot.channels.discord.text import split
from bot.channels.discord.transport import PLAIN, DiscordRest
from bot.domain.chat import Clock
from bot.domain.events import Ending, TextDelta, TextRestarted, TurnEnded, TurnEvent, TurnFailed
from bot.errors import ChannelError
from bot.logs import logger

log = logger(__name__)


class DiscordStream:
    """Raises ChannelError only when the text could not be posted."""

    def __init__(self, rest: DiscordRest, clock: Clock, place: DiscordPlace) -> None:
        self._rest = rest
        self._clock = clock
        self._place = place
        self._text = ""
        self._said: datetime | None = None  # when Nod was last seen writing

    async def send(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._text += text
            case TextRestarted():
                self._text = ""
            case TurnEnded(ending=Ending.STOPPED):
                return await self._post(f"{self._text}\n\n⏹ Stopped.")
            case TurnEnded(text=text):
                return await self._post(text)
            case TurnFailed(explanation=explanation):
                return await self._post(f"{self._text}\n\n⚠️ {explanation}")
        now = self._clock()
        if self._said is None or (now - self._said).total_seconds() > TYPING:
            self._said = now
            try:
                await self._rest.call("POST", f"/channels/{await self._rest.channel_of(self._place)}/typing")
            except ChannelError as error:
                log.info("discord was not told that Nod writes", why=error.message)
        return None

    async def _post(self, markdown: str) -> None:
        for piece in split(markdown):
            await self._rest.post(self._place, {"content": piece, "flags": PLAIN})
