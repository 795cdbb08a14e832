"""Stored updates of Telegram, each handed to the handler of messages or of presses until it is handled."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from telegram import Update
from telegram.ext import ExtBot

from bot.channels.telegram.inbound import STOPPED_DRAFT, Inbound
from bot.channels.telegram.mailbox import Mailbox, StoredUpdate, make_event_id
from bot.channels.telegram.presses import TelegramPresses
from bot.errors import ChannelError
from bot.telemetry.logs import logger
from bot.telemetry.outages import is_outage

log = logger(__name__)

_RETRY_SECONDS = 1.0  # between two attempts to handle an update while the database is away


class UpdateHandler:
    """Handles stored updates, and marks them as handled."""

    def __init__(
        self,
        mailbox: Mailbox,
        bot: ExtBot[Any],
        inbound: Inbound,
        presses: TelegramPresses,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._mailbox = mailbox
        self._bot = bot
        self._inbound = inbound
        self._presses = presses
        self._sleep = sleep
        self.is_stopping = False
        """True: an update that could not be handled stays unhandled."""

    async def handle(self, stored: StoredUpdate) -> None:
        """Handle one update, repeating it while the database is away.

        After another failure it stays unhandled and is queued again at the next start.
        """
        while not self.is_stopping:
            try:
                for handled in await self._handle_once(stored):
                    await self._mailbox.mark_handled(handled)
            except Exception as error:
                if not is_outage(error):
                    log.exception("telegram update not handled", update=stored.update.update_id)
                    return
                log.warning("telegram update not handled yet", update=stored.update.update_id, why=str(error))
                await self._sleep(_RETRY_SECONDS)
            else:
                return

    async def _handle_once(self, stored: StoredUpdate) -> list[StoredUpdate]:
        """Handle an update, together with the other updates of its album, and return these updates."""
        update = stored.update
        album = await self._mailbox.load_album(stored, self._bot)
        try:
            if update.callback_query:
                await self._presses.handle(update.callback_query)
            elif update.message:
                await self._handle_album([part.update for part in album])
            elif update.edited_message:
                await self._inbound.handle(update.edited_message, make_event_id(update), edited=True)
            elif STOPPED_DRAFT in update.api_kwargs:
                await self._inbound.stop(update)
        except ChannelError as error:
            log.warning("telegram answer not sent", update=update.update_id, why=error.message)
        return album

    async def _handle_album(self, updates: Sequence[Update]) -> None:
        """Handle the messages of an album, or a single message, as one: its text is the first caption."""
        messages = [update.message for update in updates if update.message]
        if messages:
            with_caption = [message for message in messages if message.caption]
            main_message = with_caption[0] if with_caption else messages[0]
            await self._inbound.handle(main_message, make_event_id(updates[0]), messages)
