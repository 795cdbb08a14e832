"""One turn in Discord as it happens: a message that grows by edits while the model writes.

A preview, the unfinished text, goes out at most every `_EDIT_PACE`. It goes out only while Discord's rate
limit leaves room for another call, so that cards can be posted in between. Of a long text the message shows
the end.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from bot.channels.discord.card import make_choice_rows
from bot.channels.discord.places import DiscordPlace, ref_of
from bot.channels.discord.text import literal, split
from bot.channels.discord.transport import PLAIN, DiscordRest
from bot.channels.streamed_message import FullText, StreamedMessage, limit_posts, post_each
from bot.domain.chat import Clock
from bot.errors import ChannelError
from bot.telemetry.logs import logger

_EDIT_PACE = timedelta(seconds=1.5)
_WRITING_MARK = " ▍"  # after a text that is still being written

log = logger(__name__)


class DiscordStream(StreamedMessage):
    """The stream of one turn in a channel, by edits of one message; see `StreamedMessage`."""

    def __init__(self, rest: DiscordRest, clock: Clock, place: DiscordPlace) -> None:
        super().__init__()
        self._rest = rest
        self._clock = clock
        self._place = place
        self._ref = ""  # the message that grows, empty before it is posted
        self._sent_at: datetime | None = None

    async def preview(self, text: str, doing: str) -> None:
        """Show the end of the unfinished ``text``; below it ``doing``, the agent's current activity."""
        suffix = _WRITING_MARK if text.strip() else ""
        if doing:
            suffix = f"\n\n*⏳ {literal(doing)}*"
        pieces = split(f"{text}{suffix}")
        now = self._clock()
        if not pieces or (self._sent_at is not None and now - self._sent_at < _EDIT_PACE):
            return
        if not await self._rest.has_room(self._place, "PATCH" if self._ref else "POST"):
            return
        self._sent_at = now
        message = {"content": pieces[-1], "flags": PLAIN}
        if self._ref:
            await self._rest.edit(self._ref, message, patience=0)
        else:
            self._ref = ref_of(await self._rest.post(self._place, message, patience=0))

    async def finish(self, text: str, note: str) -> None:
        if note:
            text = f"{text}\n\n{note}"
        pieces = split(text)
        posts = limit_posts(pieces, text, note)
        buttons = make_choice_rows(self.choices)

        # the preview becomes the first post
        already_posted = 0  # the number of ``posts`` that need not be sent
        preview_to_remove = ""
        if self._ref:
            try:
                if pieces:
                    rows = buttons if len(posts) == 1 else []
                    message = {"content": pieces[0], "flags": PLAIN, "components": rows}
                    await self._rest.edit(self._ref, message)
                else:
                    await self._rest.delete(self._ref)
                already_posted = 1
            except ChannelError as error:  # post all of the text again, and remove the preview
                preview_to_remove = self._ref
                log.info("discord preview lost", place=str(self._place.address), why=error.message)

        async def send_post(post: str | FullText) -> None:
            await self._rest.post_text(self._place, post, buttons if post is posts[-1] else ())

        await post_each(posts, already_posted, send_post)
        if preview_to_remove:
            with suppress(ChannelError):
                await self._rest.delete(preview_to_remove)
