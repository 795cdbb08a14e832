"""Files for people: what was too long for a card or for the model, and what tools made, as rows say.

A row (``bot/store/outputs.py``) says that a text still has to be posted, committed together with what it
belongs to. A crash before the row says otherwise posts it again later rather than never.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

from bot.domain.chat import Address, Channel, Clock
from bot.domain.files import for_people
from bot.errors import ChannelError, NotDeliverable
from bot.store import conversations, outputs
from bot.store.database import Database
from bot.store.outputs import Kept
from bot.telemetry import logger

log = logger(__name__)

GIVE_UP = timedelta(hours=1)  # how long a platform that cannot be reached is tried again


class Attachments:
    def __init__(self, channels: Mapping[str, Channel], database: Database, clock: Clock) -> None:
        self._channels = channels
        self._database = database
        self._clock = clock
        self._failing: dict[str, datetime] = {}  # since when, by handle

    async def post(self, conversation_id: str) -> None:
        """Post what people in a conversation still have to get; one caller at a time for each."""
        waiting = await self._database.read(outputs.unposted, conversation_id)
        conversation = None
        if waiting:
            conversation = await self._database.read(conversations.get_conversation, conversation_id)
        channel = self._channels.get(conversation.origin.channel) if conversation else None
        if conversation is None or channel is None:
            return
        for kept in waiting:
            if not channel.pulls and not await self._posted(channel, conversation.origin, kept):
                continue
            await self._database.write(outputs.mark_posted, kept.handle)
            self._failing.pop(kept.handle, None)

    async def _posted(self, channel: Channel, address: Address, kept: Kept) -> bool:
        """Post one; False when it may arrive another time."""
        text = await asyncio.to_thread(for_people, kept.file.text)
        try:
            await channel.post_file(address, kept.file.name, text)
        except ChannelError as error:
            log.warning("a file did not arrive", file=kept.handle, address=str(address), why=error.message)
            since = self._failing.setdefault(kept.handle, self._clock())
            if not isinstance(error, NotDeliverable) and self._clock() - since < GIVE_UP:
                return False
            await self._say_where(channel, address, kept, error.message)
        return True

    async def _say_where(self, channel: Channel, address: Address, kept: Kept, why: str) -> None:
        where = "Ask me for the part you need."
        if kept.proposal_id:
            where = f"It is in the web console with the proposal; `nod show {kept.proposal_id}` prints it."
        try:
            await channel.post(address, f"I could not post the file `{kept.file.name}` here ({why}). {where}")
        except ChannelError as error:
            log.error("nor did the word on where to read it", file=kept.handle, why=error.message)
