"""Files for people: what was too long for a card or for the model, and what tools made, as rows say.

A row (``bot/store/outputs.py``) says that a text still has to be posted, committed together with what it
belongs to. A crash before the row says otherwise posts it again later rather than never.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.channels.base import Channel, Poster, poster_at
from bot.channels.delivery.notices import GIVE_UP, Notices
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Conversation
from bot.domain.files import for_people
from bot.errors import ChannelError, NotDeliverable
from bot.store import outputs
from bot.store.database import Database
from bot.store.outputs import KeptOutput
from bot.telemetry.logs import logger

log = logger(__name__)


@dataclass(eq=False)
class Attachments:
    channels: Mapping[str, Channel]
    database: Database
    clock: Clock
    notices: Notices
    _failing: dict[str, datetime] = field(default_factory=dict, init=False)  # since when, by handle

    async def post(self, conversation: Conversation, waiting: Sequence[KeptOutput]) -> bool:
        """Post what people in a conversation still have to get; one caller at a time for each.

        False when something may arrive another time.
        """
        if conversation.origin.channel not in self.channels:
            return True
        poster = poster_at(self.channels, conversation.origin)
        done = True
        for kept in waiting:
            if poster is not None and not await self._posted(poster, conversation, kept):
                done = False
                continue
            await self.database.write(outputs.mark_posted, kept.handle)
            self._failing.pop(kept.handle, None)
        return done

    async def _posted(self, poster: Poster, conversation: Conversation, kept: KeptOutput) -> bool:
        """Post one; False when it may arrive another time."""
        text, address = await asyncio.to_thread(for_people, kept.file.text), conversation.origin
        try:
            await poster.post_file(address, kept.file.name, text)
        except ChannelError as error:
            log.warning("file not delivered", file=kept.handle, address=str(address), why=error.message)
            since = self._failing.setdefault(kept.handle, self.clock())
            if not isinstance(error, NotDeliverable) and self.clock() - since < GIVE_UP:
                return False
            where = "Ask me for the part you need."
            if kept.proposal_id:
                where = (
                    f"It is in the web console with the proposal; `nod show {kept.proposal_id}` prints it."
                )
            words = f"I could not post the file `{kept.file.name}` here ({error.message}). {where}"
            asker = conversation.requester
            await self.notices.say(address, words, instead=Address(asker.channel, asker.key))
        return True
