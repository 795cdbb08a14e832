"""One turn in Discord: a message that grows by edits while the model writes.

An edit goes out after a pause, and only while Discord's own count says that more are allowed, so that a
channel keeps room for cards.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from bot.channels.discord.card import saying
from bot.channels.discord.places import DiscordPlace, ref_of
from bot.channels.discord.text import literal, split
from bot.channels.discord.transport import PLAIN, DiscordRest
from bot.channels.streamed_message import FullText, StreamedMessage, in_few, post_each
from bot.domain.chat import Clock
from bot.errors import ChannelError
from bot.telemetry.logs import logger

_PACE = timedelta(seconds=1.5)
_MARK = " ▍"  # the text is still being written

log = logger(__name__)


class DiscordStream(StreamedMessage):
    """One turn in a channel, by edits of one message."""

    def __init__(self, rest: DiscordRest, clock: Clock, place: DiscordPlace) -> None:
        super().__init__()
        self._rest = rest
        self._clock = clock
        self._place = place
        self._shown = ""  # the message that grows
        self._last: datetime | None = None

    async def preview(self, text: str, doing: str) -> None:
        below = _MARK if text.strip() else ""
        if doing:
            below = f"\n\n*⏳ {literal(doing)}*"
        pieces = split(f"{text}{below}")
        now = self._clock()
        if not pieces or (self._last is not None and now - self._last < _PACE):
            return
        if not await self._rest.spare(self._place, "PATCH" if self._shown else "POST"):
            return
        self._last = now
        message = {"content": pieces[-1], "flags": PLAIN}
        if self._shown:
            await self._rest.edit(self._shown, message, patience=0)
        else:
            self._shown = ref_of(await self._rest.post(self._place, message, patience=0))

    async def finish(self, text: str, note: str) -> None:
        if note:
            text = f"{text}\n\n{note}"
        pieces, there = split(text), 0
        posts = in_few(pieces, text, note)
        buttons = saying(self.choices)
        left = self._shown
        if left:
            try:
                if pieces:
                    rows = buttons if len(posts) == 1 else []
                    message = {"content": pieces[0], "flags": PLAIN, "components": rows}
                    await self._rest.edit(left, message)
                else:
                    await self._rest.delete(left)
                there, left = 1, ""
            except ChannelError as error:  # post it all again, and remove what is left of it
                log.info("discord preview lost", place=str(self._place.address), why=error.message)

        async def post(each: str | FullText) -> None:
            await self._rest.post_text(self._place, each, buttons if each is posts[-1] else ())

        await post_each(posts, there, post)
        if left:
            with suppress(ChannelError):
                await self._rest.delete(left)
