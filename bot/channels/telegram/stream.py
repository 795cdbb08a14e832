"""One turn in Telegram as it happens: a draft that grows in a private chat, an edited message in a group.

A draft is Telegram's form for unfinished text: it vanishes by itself, and the finished text is posted as a
message. `ChatPace` decides when the unfinished text may go out, so that a group keeps room for cards.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from bot.channels.markdown import open_fence
from bot.channels.streamed_message import FullText, StreamedMessage, limit_posts, post_each
from bot.channels.telegram.buttons import make_choice_keyboard
from bot.channels.telegram.limits import TEXT_UNITS, ChatPace, Urgency
from bot.channels.telegram.markdown import from_markdown
from bot.channels.telegram.places import TelegramPlace, TelegramPosted
from bot.channels.telegram.text import Rich, plain, split, style
from bot.channels.telegram.transport import Transport
from bot.errors import ChannelError
from bot.telemetry.logs import logger

_WRITING_MARK = " ▍"  # stands behind a text that is still being written
_TYPING_SECONDS = 4.0  # between two signs of typing; Telegram shows each for five
_MAX_TYPING_SIGNS = 75  # five minutes, for a turn that sends nothing more
_DRAFT_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)  # ids of drafts count the seconds since then
_MAX_DRAFT_ID = 2**31 - 1

log = logger(__name__)


class TelegramStream(StreamedMessage):
    """The stream of one turn in a chat, see `StreamedMessage`.

    Telegram shows that Nod types until there is a word to read.
    """

    def __init__(
        self,
        transport: Transport,
        pace: ChatPace,
        place: TelegramPlace,
        begun_at: datetime,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__()
        self._sleep = sleep
        self._transport = transport
        self._pace = pace
        self.place = place
        self.ended = False
        self._draft_id = _make_draft_id(begun_at)
        self._preview_message: TelegramPosted | None = None
        """The message in a group that shows the unfinished text."""
        self._sends_previews = True  # False once Telegram refused a draft
        self._typing = asyncio.create_task(self._show_typing())

    async def _show_typing(self) -> None:
        for _ in range(_MAX_TYPING_SIGNS):
            with suppress(ChannelError):
                await self._transport.show_typing(self.place)
            await self._sleep(_TYPING_SECONDS)

    async def preview(self, text: str, activity: str) -> None:
        has_content = bool(text.strip() or activity.strip())
        if not (self._sends_previews and has_content and self._pace.claim_preview(self.place.chat_id)):
            return
        unfinished = _render_with_gap(_keep_end(text))
        if activity:
            unfinished = unfinished + style(f"⏳ {activity}", "italic")
        pieces = split(unfinished)
        if not pieces:
            return
        self._typing.cancel()
        latest = pieces[-1]
        try:
            if self.place.is_private:
                await self._transport.send_draft(self.place, self._draft_id, latest)
            elif self._preview_message is None:
                shown = _add_mark(latest)
                self._preview_message = await self._transport.send(self.place, shown, urgency=Urgency.PREVIEW)
            else:
                await self._transport.edit(self._preview_message, _add_mark(latest), urgency=Urgency.PREVIEW)
        except ChannelError:
            if self.place.is_private:
                self._sends_previews = False
            raise

    async def finish(self, text: str, note: str) -> None:
        self._typing.cancel()
        self.ended = True
        if note:
            rich = _render_with_gap(text) + plain(note)
            full_text = f"{text}\n\n{note}"
        else:
            rich = from_markdown(text)
            full_text = text
        pieces = split(rich)
        posts = limit_posts(pieces, full_text, note)  # a very long text is one post and a file
        buttons = make_choice_keyboard(self.choices)

        # the preview becomes the first post
        already_posted = 0  # the number of ``posts`` that need not be sent
        preview = self._preview_message
        self._preview_message = None
        if preview is not None:
            try:
                if not pieces:
                    await self._transport.delete(preview)
                else:
                    await self._transport.edit(preview, pieces[0], buttons if len(posts) == 1 else None)
                already_posted = 1
                preview = None
            except ChannelError as error:  # post all of it again, and remove the preview
                log.info("telegram preview lost", chat=self.place.chat_id, why=error.message)

        async def send_post(post: Rich | FullText) -> None:
            await self._transport.send_post(self.place, post, buttons if post is posts[-1] else None)

        await post_each(posts, already_posted, send_post)
        if preview is not None:
            with suppress(ChannelError):
                await self._transport.delete(preview)


def _make_draft_id(begun_at: datetime) -> int:
    """Return an id for a draft, from which every process can tell when its answer began."""
    return max(1, int((begun_at - _DRAFT_EPOCH).total_seconds()))


def find_begin_time(draft_id: int) -> datetime | None:
    """Return a time at most a second after the answer of a draft began; None for an id that no draft has.

    When a person stops a draft, Telegram sends its id alone. The time tells Nod to stop that answer and no
    later one.
    """
    if not 0 < draft_id <= _MAX_DRAFT_ID:
        return None
    return _DRAFT_EPOCH + timedelta(seconds=draft_id + 1)


def _keep_end(text: str) -> str:
    """Return the end of a long text: a preview shows only its last message.

    The end is less than two messages long, and starts at the beginning of a line, if it has one. If it starts
    in a code block, the block is opened again.
    """
    skipped = max(len(text) // TEXT_UNITS - 1, 0) * TEXT_UNITS
    start = text.find("\n", skipped) + 1 if skipped else 0
    if not start:
        return text[skipped:]
    fence = open_fence(text[:start])
    if fence:
        return f"{fence.opening}\n{text[start:]}"
    return text[start:]


def _render_with_gap(text: str) -> Rich:
    """Render a text, with an empty line below unless it is blank."""
    rich = from_markdown(text)
    if rich.text.strip():
        return rich + Rich("\n\n")
    return Rich()


def _add_mark(rich: Rich) -> Rich:
    """Return the text with the mark of an unfinished text, or without it if both don't fit a message."""
    marked = rich + Rich(_WRITING_MARK)
    return marked if marked.fits else rich
