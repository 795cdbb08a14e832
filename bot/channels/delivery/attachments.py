"""Delivery of files for people: what was too long for a card or for the model, and what tools made.

A row (``bot/store/outputs.py``) says that a file still has to be posted, committed together with what it
belongs to. It is marked as posted afterwards: a crash in between posts it twice rather than never.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.channels.base import Channel, Poster, poster_at
from bot.channels.delivery.notices import Notices
from bot.channels.delivery.pauses import GIVE_UP
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
    """Posts the files of a conversation, and tells people of those that can't be posted."""

    channels: Mapping[str, Channel]
    database: Database
    clock: Clock
    notices: Notices
    _failing_since: dict[str, datetime] = field(default_factory=dict, init=False)  # by handle

    async def post(self, conversation: Conversation, files: Sequence[KeptOutput]) -> bool:
        """Post the files of a conversation, for one caller at a time.

        Returns False if one of them may arrive at another try.
        """
        if conversation.origin.channel not in self.channels:
            return True
        poster = poster_at(self.channels, conversation.origin)
        is_done = True
        for kept in files:
            if poster is not None and not await self._post_file(poster, conversation, kept):
                is_done = False
                continue
            await self.database.write(outputs.mark_posted, kept.handle)
            self._failing_since.pop(kept.handle, None)
        return is_done

    async def _post_file(self, poster: Poster, conversation: Conversation, kept: KeptOutput) -> bool:
        """Post a file, or say why it can't be. Returns False if it may arrive at another try."""
        address = conversation.origin
        text = await asyncio.to_thread(for_people, kept.file.text)
        try:
            await poster.post_file(address, kept.file.name, kept.file.data or text)
        except ChannelError as error:
            log.warning("file not delivered", file=kept.handle, address=str(address), why=error.message)
            failing_since = self._failing_since.setdefault(kept.handle, self.clock())
            if not isinstance(error, NotDeliverable) and self.clock() - failing_since < GIVE_UP:
                return False
            await self._tell_refusal(conversation, kept, error.message)
        return True

    async def _tell_refusal(self, conversation: Conversation, kept: KeptOutput, why: str) -> None:
        if kept.proposal_id:
            hint = f"It is in the web console with the proposal; `nod show {kept.proposal_id}` prints it."
        else:
            hint = "Ask me for the part you need."
        words = f"I could not post the file `{kept.file.name}` here ({why}). {hint}"
        asker = conversation.requester
        await self.notices.say(conversation.origin, words, instead=Address(asker.channel, asker.key))
