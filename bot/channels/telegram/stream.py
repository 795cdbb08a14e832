"""One turn being shown: a draft that grows in a private chat, an edited message in a group.

What is shown on the way is a preview and may be skipped; the final text is not. The pace decides when a
preview may go out, so that a group keeps room for cards.
"""

import secrets

from bot.channels.telegram.limits import ChatPace, Urgency
from bot.channels.telegram.places import TelegramPlace, TelegramPosted
from bot.channels.telegram.text import Rich, from_markdown, plain, split, styled
from bot.channels.telegram.transport import Transport
from bot.domain.events import (
    Ending,
    TextDelta,
    TextRestarted,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.errors import ChannelError
from bot.logs import logger

_MARK = " ▍"  # the text is still being written
_DRAFTS = 2**31 - 1

log = logger(__name__)


class TelegramStream:
    """Raises ChannelError only when the final text could not be posted."""

    def __init__(self, transport: Transport, pace: ChatPace, place: TelegramPlace) -> None:
        self._transport = transport
        self._pace = pace
        self._place = place
        self._text = ""
        self._doing = ""
        self._far = ""  # how far that is
        self._draft_id = secrets.randbelow(_DRAFTS) + 1  # must not be zero
        self._shown: TelegramPosted | None = None
        self._previews = True

    async def send(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._text += text
                self._doing = ""
            case TextRestarted():
                self._text = ""
            case ToolStarted(summary=summary):
                self._doing, self._far = summary, ""
            case ToolProgress(words=words):
                self._far = f" ({words})"
            case ToolFinished():
                self._doing = ""
            case TurnEnded(ending=Ending.STOPPED):
                return await self._finish(self._so_far() + plain("⏹ Stopped."))
            case TurnEnded(text=text):
                return await self._finish(from_markdown(text))
            case TurnFailed(explanation=explanation):
                return await self._finish(self._so_far() + plain(f"⚠️ {explanation}"))
            case _:
                return None
        await self._preview()
        return None

    def _so_far(self) -> Rich:
        """Give what was said, ready for something to follow."""
        said = from_markdown(self._text)
        return said + Rich("\n\n") if said.text.strip() else Rich()

    async def _preview(self) -> None:
        unfinished = self._so_far()
        if self._doing:
            unfinished = unfinished + styled(f"⏳ {self._doing}{self._far}", "italic")
        pieces = split(unfinished)
        if not (self._previews and pieces and self._pace.preview(self._place.chat_id)):
            return
        latest = pieces[-1]
        try:
            if self._place.private:
                await self._transport.draft(self._place, self._draft_id, latest)
            elif self._shown is None:
                shown = _marked(latest)
                self._shown = await self._transport.send(self._place, shown, urgency=Urgency.PREVIEW)
            else:
                await self._transport.edit(self._shown, _marked(latest), urgency=Urgency.PREVIEW)
        except ChannelError as error:  # the final text is what counts
            log.info("telegram preview refused", chat=self._place.chat_id, why=error.message)
            self._previews = not self._place.private

    async def _finish(self, final: Rich) -> None:
        pieces = split(final)
        if self._shown is not None:
            try:
                if not pieces:
                    await self._transport.delete(self._shown)
                else:
                    await self._transport.edit(self._shown, pieces[0])
                    pieces = pieces[1:]
            except ChannelError as error:  # someone removed it: post it all again
                log.info("telegram preview lost", chat=self._place.chat_id, why=error.message)
            self._shown = None
        for piece in pieces:
            await self._transport.send(self._place, piece)


def _marked(rich: Rich) -> Rich:
    marked = rich + Rich(_MARK)
    return marked if marked.fits else rich
