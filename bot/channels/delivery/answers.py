"""The answer to a question about a proposal, told below the card on which it was asked."""

from collections.abc import Mapping
from datetime import datetime

from bot.channels.base import Channel, poster_at
from bot.channels.delivery.notices import Notices
from bot.channels.delivery.pauses import GIVE_UP
from bot.domain.chat import Clock
from bot.domain.outcomes import bounded
from bot.domain.people import Actor
from bot.domain.questions import AskedQuestion
from bot.domain.text import as_written
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import questions
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)

_LONGEST = 3000  # characters; a platform's message holds that many, with who asked what


class Answers:
    """Tells answers where they are awaited; the conversation itself has them already."""

    def __init__(
        self, channels: Mapping[str, Channel], database: Database, clock: Clock, notices: Notices
    ) -> None:
        self._channels = channels
        self._database = database
        self._clock = clock
        self._notices = notices

    async def tell(self, home: str) -> bool:
        """Tell every answer of a conversation that is there; False when one may arrive yet."""
        arrived = True
        for each in await self._database.read(questions.answered, home):
            if await self._told(each):
                await self._database.write(questions.settle, each, self._clock())
            else:
                arrived = False
        return arrived

    async def _told(self, question: AskedQuestion) -> bool:
        """Whether there is nothing more to try."""
        address = question.address
        poster = poster_at(self._channels, address) if address else None
        if address is None or poster is None:
            return True
        asked, answer = as_written(question.text), bounded(question.answer, _LONGEST)
        asker = Actor.parse(question.asker, question.name)
        words = f"“{asked}”\n\n{answer}"
        try:
            if question.ref:
                await poster.remind(address, question.ref, words, [asker])
            else:
                await poster.post(address, f"> {asked}\n\n{answer}")
        except (CopyGone, NotDeliverable) as error:
            log.warning("answer not delivered", address=str(address), why=error.message)
            await self._notices.answer_privately(asker, address, error.message, words)
        except ChannelError as error:
            log.warning("answer not delivered yet", address=str(address), why=error.message)
            return self._clock() - datetime.fromisoformat(question.asked_at) >= GIVE_UP
        return True
