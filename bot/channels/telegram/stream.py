"""One turn being shown: a draft that grows in a private chat, an edited message in a group.

The pace decides when a preview may go out, so that a group keeps room for cards.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from bot.channels.markdown import open_fence
from bot.channels.streamed_message import FullText, StreamedMessage, in_few, post_each
from bot.channels.telegram.buttons import make_choice_keyboard
from bot.channels.telegram.limits import TEXT_UNITS, ChatPace, Urgency
from bot.channels.telegram.markdown import from_markdown
from bot.channels.telegram.places import TelegramPlace, TelegramPosted
from bot.channels.telegram.text import Rich, plain, split, style
from bot.channels.telegram.transport import Transport
from bot.errors import ChannelError
from bot.telemetry.logs import logger

_MARK = " ▍"  # the text is still being written
_BETWEEN_SIGNS = 4.0  # seconds; Telegram shows each for five
_SIGNS = 75  # five minutes: a turn that is given up says nothing more
_FIRST_DRAFT = datetime(2020, 1, 1, tzinfo=UTC)  # ids of drafts count the seconds since then
_LAST_DRAFT = 2**31 - 1

log = logger(__name__)


class TelegramStream(StreamedMessage):
    """One turn in a chat; Telegram shows that Nod types until there is a word to read."""

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
        self._draft_id = _number_draft(begun_at)
        self._shown: TelegramPosted | None = None
        self._previews = True
        self._typing = asyncio.create_task(self._type())

    async def _type(self) -> None:
        for _ in range(_SIGNS):
            with suppress(ChannelError):
                await self._transport.show_typing(self.place)
            await self._sleep(_BETWEEN_SIGNS)

    async def preview(self, text: str, doing: str) -> None:
        said = bool(text.strip() or doing.strip())
        if not (self._previews and said and self._pace.claim_preview(self.place.chat_id)):
            return
        unfinished = _before(_latest(text))
        if doing:
            unfinished = unfinished + style(f"⏳ {doing}", "italic")
        pieces = split(unfinished)
        if not pieces:
            return
        self._typing.cancel()
        latest = pieces[-1]
        try:
            if self.place.is_private:
                await self._transport.send_draft(self.place, self._draft_id, latest)
            elif self._shown is None:
                shown = _add_mark(latest)
                self._shown = await self._transport.send(self.place, shown, urgency=Urgency.PREVIEW)
            else:
                await self._transport.edit(self._shown, _add_mark(latest), urgency=Urgency.PREVIEW)
        except ChannelError:
            self._previews = not self.place.is_private
            raise

    async def finish(self, text: str, note: str) -> None:
        self._typing.cancel()
        self.ended = True
        pieces, there = split(_before(text) + plain(note) if note else from_markdown(text)), 0
        posts = in_few(pieces, f"{text}\n\n{note}" if note else text, note)
        buttons = make_choice_keyboard(self.choices)
        left, self._shown = self._shown, None
        if left is not None:
            try:
                if not pieces:
                    await self._transport.delete(left)
                else:
                    await self._transport.edit(left, pieces[0], buttons if len(posts) == 1 else None)
                there, left = 1, None
            except ChannelError as error:  # post it all again, and remove what is left of it
                log.info("telegram preview lost", chat=self.place.chat_id, why=error.message)

        async def post(each: Rich | FullText) -> None:
            await self._transport.post(self.place, each, buttons if each is posts[-1] else None)

        await post_each(posts, there, post)
        if left is not None:
            with suppress(ChannelError):
                await self._transport.delete(left)


def _number_draft(begun_at: datetime) -> int:
    """Return the id of a draft, which tells when its answer began: every process can read it."""
    return max(1, int((begun_at - _FIRST_DRAFT).total_seconds()))


def find_begin(draft_id: int) -> datetime | None:
    """Return when the answer of a draft had begun, to the second; None where the id is of no draft of Nod."""
    if not 0 < draft_id <= _LAST_DRAFT:
        return None
    return _FIRST_DRAFT + timedelta(seconds=draft_id + 1)


def _latest(text: str) -> str:
    """Return the end of a text that grows, from the start of a line; at most two messages long."""
    skipped = max(len(text) // TEXT_UNITS - 1, 0) * TEXT_UNITS
    start = text.find("\n", skipped) + 1 if skipped else 0
    if not start:
        return text[skipped:]
    fence = open_fence(text[:start])
    if fence:
        return f"{fence.opening}\n{text[start:]}"
    return text[start:]


def _before(text: str) -> Rich:
    said = from_markdown(text)
    if said.text.strip():
        return said + Rich("\n\n")
    return Rich()


def _add_mark(rich: Rich) -> Rich:
    marked = rich + Rich(_MARK)
    return marked if marked.fits else rich
