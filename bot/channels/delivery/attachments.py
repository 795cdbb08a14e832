"""Delivery of files for people: content that was too long for a card or for the model, and files of tools.

A row (``bot/store/outputs.py``) says that a file still has to be posted. It is committed together with the
result that the file belongs to. It is marked as posted afterwards: a crash in between posts the file twice
rather than never.
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
from bot.domain.files import prepare_for_people
from bot.errors import ChannelError, NotDeliverable
from bot.store import outputs
from bot.store.database import Database
from bot.store.outputs import StoredOutput
from bot.telemetry.logs import logger

log = logger(__name__)


@dataclass(eq=False)
class Attachments:
    """Posts the files of a conversation, and tells people which files can't be posted."""

    channels: Mapping[str, Channel]
    database: Database
    clock: Clock
    notices: Notices
    _failing_since: dict[str, datetime] = field(default_factory=dict, init=False)  # by handle

    async def post(self, conversation: Conversation, files: Sequence[StoredOutput]) -> bool:
        """Post the files of a conversation, for one caller at a time.

        Returns False if another try may deliver a file that was refused. A process without the channel does
        nothing, since another process has it. In a channel to which nothing is posted, as in the web, files
        are only marked as posted.
        """
        if conversation.origin.channel not in self.channels:
            return True
        poster = poster_at(self.channels, conversation.origin)
        are_all_settled = True
        for output in files:
            if poster is not None and not await self._post_file(poster, conversation, output):
                are_all_settled = False
                continue
            await self.database.write(outputs.mark_posted, output.handle)
            self._failing_since.pop(output.handle, None)
        return are_all_settled

    async def _post_file(self, poster: Poster, conversation: Conversation, output: StoredOutput) -> bool:
        """Post a file, or say why it can't be posted. Returns False if it may arrive at another try."""
        address = conversation.origin
        text = await asyncio.to_thread(prepare_for_people, output.file.text)
        try:
            await poster.post_file(address, output.file.name, output.file.data or text)
        except ChannelError as error:
            log.warning("file not delivered", file=output.handle, address=str(address), why=error.message)
            failing_since = self._failing_since.setdefault(output.handle, self.clock())
            if not isinstance(error, NotDeliverable) and self.clock() - failing_since < GIVE_UP:
                return False
            await self._tell_refusal(conversation, output, error.message)
        return True

    async def _tell_refusal(self, conversation: Conversation, output: StoredOutput, why: str) -> None:
        if output.proposal_id:
            hint = f"It is in the web console with the proposal; `nod show {output.proposal_id}` prints it."
        else:
            hint = "Ask me for the part you need."
        text = f"I could not post the file `{output.file.name}` here ({why}). {hint}"
        asker = conversation.requester
        await self.notices.queue_text(conversation.origin, text, instead=Address(asker.channel, asker.key))
