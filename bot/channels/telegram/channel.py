"""Telegram as a channel: python-telegram-bot inside Nod's own event loop.

Long polling by default; with a public URL Telegram posts each update to `WEBHOOK` on the bot's own server.
Either way an update is in the database before Telegram hears that it arrived (``mailbox.py``).
"""

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram import LinkPreviewOptions, Update
from telegram.constants import UpdateType
from telegram.error import Conflict, InvalidToken, TelegramError
from telegram.ext import Application, Defaults, ExtBot, TypeHandler

from bot.channels.telegram import board as boards
from bot.channels.telegram import commands
from bot.channels.telegram.admission import Admission
from bot.channels.telegram.asker import Asker
from bot.channels.telegram.dialogues import Dialogues
from bot.channels.telegram.inbound import Inbound
from bot.channels.telegram.ladder import Ladder
from bot.channels.telegram.limits import ChatPace
from bot.channels.telegram.mailbox import Kept, Mailbox, OrderedByChat, event_id
from bot.channels.telegram.places import CHANNEL, Ref, Spot
from bot.channels.telegram.presses import Presses
from bot.channels.telegram.stream import TelegramStream
from bot.channels.telegram.text import from_markdown
from bot.channels.telegram.transport import Transport
from bot.channels.telegram.views import Views
from bot.domain.cards import Card
from bot.domain.chat import Address, Clock, Desk, Inbox
from bot.domain.people import Actor
from bot.domain.teams import Board
from bot.errors import ChannelError, CopyGone, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.telemetry import logger

WEBHOOK = "/telegram/webhook"
_SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
_UPDATES = [UpdateType.MESSAGE, UpdateType.EDITED_MESSAGE, UpdateType.CALLBACK_QUERY]

_BAD_TOKEN = "TELEGRAM_BOT_TOKEN: Telegram does not know this token"  # noqa: S105 - says what is wrong
_SLOWEST = 60.0  # seconds between two tries to reach Telegram

_App = Application[Any, Any, Any, Any, Any, Any]

_log = logger(__name__)


class TelegramChannel:
    """Implements `bot.domain.chat.Channel`. Raises SettingsError when a setting for Telegram is wrong."""

    name = CHANNEL
    pulls = False

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        pace: ChatPace | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if settings.telegram_bot_token is None:
            raise SettingsError("TELEGRAM_BOT_TOKEN: needed for Telegram; @BotFather gives one")
        os.environ.setdefault("PTB_TIMEDELTA", "1")  # the library's own switch; it warns without it
        self._token = settings.telegram_bot_token.get_secret_value()
        self._webhook = settings.public_url.rstrip("/") + WEBHOOK if settings.public_url else None
        self._secret = webhook_secret(settings, self._token)
        self._database = database
        self._clock = clock
        self._pace = pace or ChatPace()
        self._sleep = sleep
        self._connecting: asyncio.Task[None] | None = None
        self._mailbox = Mailbox(database, clock)
        self._app = self._build(settings.telegram_api_url.rstrip("/"))
        self._bot: ExtBot[Any] = self._app.bot
        self._transport = Transport(self._bot)
        self._admission = Admission(settings, database, self._transport, clock)
        self._views = Views(database, self._transport, clock)
        self._inbound: Inbound | None = None
        self._presses: Presses | None = None

    async def start(self, inbox: Inbox, desk: Desk) -> None:
        """Connect and listen; while Telegram cannot be reached, go on trying in the background.

        Raises SettingsError when Telegram does not know the token.
        """
        fault = await self._connect(inbox, desk)
        if isinstance(fault, InvalidToken):
            await self.stop()
            raise SettingsError(_BAD_TOKEN)
        if fault is not None:
            self._connecting = asyncio.create_task(self._keep_connecting(inbox, desk, fault))

    async def _keep_connecting(self, inbox: Inbox, desk: Desk, fault: TelegramError) -> None:
        told, pause = "", 1.0
        while True:
            if isinstance(fault, InvalidToken):
                _log.error(_BAD_TOKEN)
                return
            if fault.message != told:
                told = fault.message
                _log.warning("telegram cannot be reached, will go on trying", reason=told)
            await self._sleep(pause)
            pause = min(pause * 2, _SLOWEST)
            found = await self._connect(inbox, desk)
            if found is None:
                _log.info("telegram is reached")
                return
            fault = found

    async def _connect(self, inbox: Inbox, desk: Desk) -> TelegramError | None:
        """Take up what an earlier process left unhandled, then listen; safe to repeat. Returns the fault."""
        try:
            await self._app.initialize()
            if not self._app.running:
                self._wire(inbox, desk)
                await commands.publish(self._bot, self._admission.admins)
                await self._mailbox.put_unhandled(self._bot)
                await self._app.start()
            await self._listen()
        except TelegramError as error:
            return error
        return None

    def _wire(self, inbox: Inbox, desk: Desk) -> None:
        dialogues = Dialogues(self._database, self._clock)
        transport, admission, views = self._transport, self._admission, self._views
        asker = Asker(dialogues, transport, inbox, desk, views, self._clock)
        ladder = Ladder(dialogues, transport, inbox, desk, self._clock)
        self._inbound = Inbound(transport, admission, asker, inbox, desk, views, self._bot.bot)
        self._presses = Presses(self._database, transport, admission, asker, ladder, inbox, desk, views)

    async def _listen(self) -> None:
        if self._webhook is not None:
            await self._bot.set_webhook(self._webhook, secret_token=self._secret, allowed_updates=_UPDATES)
        elif self._app.updater is not None:
            await self._app.updater.start_polling(
                allowed_updates=_UPDATES, bootstrap_retries=0, error_callback=_polling_failed
            )

    async def stop(self) -> None:
        """Stop listening, finish what was taken in, disconnect."""
        if self._connecting is not None:
            self._connecting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._connecting
        if self._app.updater is not None and self._app.updater.running:
            await self._app.updater.stop()
        if self._app.running:
            await self._app.stop()
        await self._app.shutdown()
        await self._bot.shutdown()  # the application leaves it open when its own start failed

    def routes(self) -> list[Route]:
        """Give the routes to mount on the bot's own server; none without a public URL."""
        return [Route(WEBHOOK, self._receive, methods=["POST"])] if self._webhook else []

    def open_stream(self, address: Address, requester: Actor) -> TelegramStream:  # noqa: ARG002 - the seam's
        return TelegramStream(self._transport, self._pace, Spot.of(address))

    async def post(self, address: Address, markdown: str) -> None:
        rich = from_markdown(markdown)
        if rich.text.strip():
            await self._transport.send(Spot.of(address), rich)

    async def post_card(self, address: Address, card: Card) -> str:
        """Post a card; the reference is ``chat/message``."""
        spot = Spot.of(address)
        view = await self._views.lay_out(card, spot.chat_id)
        return str(await self._transport.send(spot, view.rich, view.keyboard))

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:  # noqa: ARG002 - the ref says it
        """Show the card as it now is, and take the buttons from payloads shown before."""
        try:
            message = Ref.parse(ref)
        except ValueError:
            raise CopyGone(f"{ref!r} is no message in Telegram.") from None
        view = await self._views.lay_out(card, message.chat_id)
        await self._transport.edit(message, view.rich, view.keyboard)
        await self._views.settle(card, message.chat_id)

    async def post_file(self, address: Address, name: str, text: str) -> None:
        await self._transport.file(Spot.of(address), name, text, "", None)

    async def post_board(self, address: Address, board: Board) -> str:
        return str(await self._transport.send(Spot.of(address), boards.rendered(board)))

    async def redraw_board(self, address: Address, ref: str, board: Board) -> None:  # noqa: ARG002 - as a card
        try:
            message = Ref.parse(ref)
        except ValueError:
            raise CopyGone(f"{ref!r} is no message in Telegram.") from None
        await self._transport.edit(message, boards.rendered(board))

    async def changed(self) -> None:
        """Nothing to do: no list of proposals stands in Telegram."""

    def _build(self, root: str) -> _App:
        builder = (
            Application.builder()
            .token(self._token)
            .base_url(f"{root}/bot")
            .base_file_url(f"{root}/file/bot")
            .rate_limiter(self._pace)
            .defaults(Defaults(link_preview_options=LinkPreviewOptions(is_disabled=True)))
            .concurrent_updates(OrderedByChat())
            .job_queue(None)
            .update_queue(self._mailbox)
        )
        if self._webhook is not None:
            builder = builder.updater(None)
        app = builder.build()
        app.add_handler(TypeHandler(Kept, self._handle))
        return app

    async def _handle(self, kept: Kept, _: object) -> None:
        """Handle one update; what fails for a reason of ours stays unhandled and comes again at a start."""
        update = kept.update
        try:
            if update.callback_query and self._presses:
                await self._presses.handle(update.callback_query)
            elif update.message and self._inbound:
                await self._inbound.handle(update.message, event_id(update))
            elif update.edited_message and self._inbound:
                await self._inbound.handle(update.edited_message, event_id(update), edited=True)
        except ChannelError as error:
            _log.warning("telegram answer not sent", update=update.update_id, reason=error.message)
        except Exception:  # noqa: BLE001 - kept in its row, and other updates go on
            _log.exception("telegram update not handled", update=update.update_id)
            return
        await self._mailbox.mark_handled(kept)

    async def _receive(self, request: Request) -> Response:
        """Take one update; 200 only when it is in the database."""
        given = request.headers.get(_SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode(), self._secret.encode()):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        try:
            update = Update.de_json(json.loads(await request.body()), self._bot)
        except (ValueError, TypeError, KeyError, AttributeError):
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        if not self._app.running:  # it will come again, when what an earlier process left has been taken up
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            await self._mailbox.put(update)
        except TelegramError:
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        return Response(status_code=HTTPStatus.OK)


def webhook_secret(settings: Settings, token: str) -> str:
    """Give the secret Telegram repeats with every update: from the settings, or made of the token."""
    if settings.telegram_webhook_secret is None:
        return hmac.new(token.encode(), b"telegram webhook", hashlib.sha256).hexdigest()
    given = settings.telegram_webhook_secret.get_secret_value()
    if not _SECRET.fullmatch(given):
        raise SettingsError("TELEGRAM_WEBHOOK_SECRET: 1 to 256 of A-Z, a-z, 0-9, _ and -")
    return given


def _polling_failed(error: TelegramError) -> None:
    if isinstance(error, Conflict):
        _log.error("telegram is polled by another process with the same token; only one gets each update")
    else:
        _log.warning("telegram polling failed, will try again", reason=error.message)
