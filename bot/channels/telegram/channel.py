"""The Telegram channel: python-telegram-bot (PTB) inside Nod's own event loop.

An update is what Telegram sends: a message or a press. Updates come by long polling; with a public URL
Telegram posts each to a webhook on the bot's own server (``webhook.py``). Either way an update is in the
database before it is acknowledged (``mailbox.py``). Then ``updates.py`` hands it to ``inbound.py`` (messages)
or ``presses.py`` (buttons). The rest of `TelegramChannel` is what Nod's delivery calls: posts, cards, files
and streams, sent by ``transport.py``.

A group may get a new id. An address has the id by which Nod first knew the chat, a `TelegramPlace` the
current one; `Moves` translates. A reference (``ref``) names a posted message as ``chat/message``.
"""

import asyncio
import contextlib
import hmac
import json
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram import LinkPreviewOptions, Update, User
from telegram.constants import UpdateType
from telegram.error import BadRequest, Conflict, InvalidToken, TelegramError
from telegram.ext import Application, Defaults, ExtBot, TypeHandler

from bot.channels.base import SILENT_SECONDS, Hearing, Lookup, check_silence
from bot.channels.connecting import PlatformLink, download
from bot.channels.kinds import Platform
from bot.channels.streamed_message import limit_posts, post_each
from bot.channels.telegram import commands
from bot.channels.telegram.admission import Admission
from bot.channels.telegram.buttons import make_link_keyboard, make_offer_keyboard
from bot.channels.telegram.chat_cards import ShownCards
from bot.channels.telegram.dialogue import Dialogues
from bot.channels.telegram.forms import DialogueRunner
from bot.channels.telegram.inbound import STOPPED_DRAFT, Inbound
from bot.channels.telegram.limits import ChatPace, Urgency
from bot.channels.telegram.mailbox import Mailbox, OrderedByChat, StoredUpdate
from bot.channels.telegram.markdown import from_markdown
from bot.channels.telegram.places import NAME, Moves, TelegramPlace, TelegramPosted
from bot.channels.telegram.presses import TelegramPresses
from bot.channels.telegram.readable_updates import ReadableUpdates, make_decodable
from bot.channels.telegram.stream import TelegramStream
from bot.channels.telegram.text import CARD_RENDERER, join, mention, plain, split
from bot.channels.telegram.transport import BotRequests, Transport, translate_errors
from bot.channels.telegram.updates import UpdateHandler
from bot.channels.telegram.webhook import SECRET_HEADER, WEBHOOK_PATH, find_webhook_fault, make_webhook_secret
from bot.domain.cards import Card
from bot.domain.chat import Address, Clock, Inbox, LinkButton
from bot.domain.hooks import CommandOffer
from bot.domain.jobs import Peers
from bot.domain.people import Actor, Membership, UserGroup, is_group
from bot.domain.proposal_states import State
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, CopyGone, NotDeliverable, SettingsError
from bot.settings import Settings
from bot.store import posted_cards
from bot.store.database import Database
from bot.telemetry.logs import logger

_UPDATE_TYPES = [UpdateType.MESSAGE, UpdateType.EDITED_MESSAGE, UpdateType.CALLBACK_QUERY, STOPPED_DRAFT]
_BAD_TOKEN_TEXT = "TELEGRAM_BOT_TOKEN: Telegram does not know this token"  # noqa: S105 - says what is wrong
_CHANGING_STATES = frozenset({State.PROPOSED, State.APPROVED, State.EXECUTING})  # states that will end
_MAX_CONNECTIONS = 256  # PTB's own maximum
_MAX_NAMED_ADMINS = 10
_MAX_REMEMBERED_ENDS = 1000  # the ended cards whose last drawing is remembered
_LEASE_SECONDS = 2.0  # between two attempts to become the process that polls
_MAX_DELAYED_PRESSES = 512
_PRESS_DELAYED_TEXT = "I can't reach my database. Your press counts once I can."

_App = Application[Any, Any, Any, Any, Any, Any]

log = logger(__name__)


class TelegramChannel(Platform):
    """The channel for Telegram; `Channel` and `Poster` describe its methods.

    Raises SettingsError if a setting is wrong.
    """

    name = NAME

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        pace: ChatPace | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        if settings.telegram_bot_token is None:
            raise SettingsError("TELEGRAM_BOT_TOKEN: needed for Telegram; @BotFather gives one")
        os.environ.setdefault("PTB_TIMEDELTA", "1")  # the library's own switch; it warns without it
        self._token = settings.telegram_bot_token.get_secret_value()
        api = urlsplit(str(settings.telegram_api_url))
        self._origin = f"{api.scheme}://{api.netloc}"
        self._webhook = settings.public_url.rstrip("/") + WEBHOOK_PATH if settings.public_url else None
        fault = find_webhook_fault(settings)
        if fault:
            raise SettingsError(f"NOD_PUBLIC_URL: {fault}")
        self._secret = make_webhook_secret(settings, self._token)
        self._database = database
        self._clock = clock
        self._pace = pace or ChatPace()
        self._sleep = sleep
        self._elapsed = elapsed
        self._requests = BotRequests(elapsed, _MAX_CONNECTIONS)  # the HTTP client for all calls but polls
        self._polls = ReadableUpdates(elapsed)  # the HTTP client for polls
        self._streams: WeakSet[TelegramStream] = WeakSet()  # the answers that are being written
        self._received_at: float | None = None  # the time of the last update by webhook, by ``elapsed``
        self._connection: PlatformLink | None = None
        self._receives = True  # False in a process that only posts
        self._peers: Peers | None = None  # the other processes of this Nod; None for a single process
        self._polling_task: asyncio.Task[None] | None = None
        self._drawn_ends: dict[str, tuple[State, int]] = {}
        """The final state and the round that a card already shows, by the reference of its message."""
        self._delayed_presses: deque[str] = deque(maxlen=_MAX_DELAYED_PRESSES)
        """The ids of presses whose person was told of the delay."""
        self._mailbox = Mailbox(database, clock, self._tell_delay, sleep)
        self._app = self._build_app(settings.telegram_api_url.rstrip("/"))
        self._bot: ExtBot[Any] = self._app.bot
        self._moves = Moves(database, clock)
        self._transport = Transport(self._bot, self._moves)
        self._admission = Admission(settings, database, self._transport, clock)
        self._shown_cards = ShownCards(database, self._transport, clock)
        self._update_handler: UpdateHandler | None = None

    async def start(
        self,
        inbox: Inbox,
        lookup: Lookup,
        *,
        receives: bool = True,
        others: Peers | None = None,
    ) -> None:
        """Connect and listen; while Telegram can't be reached, keep trying in the background.

        ``receives``: False for a process that only posts. ``others``: the other processes of this Nod. Raises
        SettingsError when Telegram does not know the token or refuses the webhook.
        """
        self._receives = receives
        self._peers = others
        self._moves.connect(inbox, others)
        if others is not None:
            self._pace.share(others)
        self._connection = PlatformLink("telegram", lambda: self._connect(inbox, lookup), self._sleep)
        try:
            await self._connection.open()
        except SettingsError:
            await self.stop()
            raise

    def _explain_setting_fault(self, fault: TelegramError) -> str:
        """Return the setting to correct, and why, if trying again can't help; empty if it may."""
        if isinstance(fault, InvalidToken):
            return _BAD_TOKEN_TEXT
        if self._webhook and isinstance(fault, BadRequest) and "resolve host" not in fault.message.lower():
            return f"NOD_PUBLIC_URL: Telegram refuses {self._webhook}: {fault.message}"
        return ""

    async def _connect(self, inbox: Inbox, lookup: Lookup) -> str | None:
        """Publish the commands, queue the updates that an earlier process left unhandled, and listen.

        A process that does not receive only opens the connection. May be called again after a fault. Returns
        the fault, or None. Raises SettingsError for a fault that trying again won't change.
        """
        try:
            await self._app.initialize()
            if not self._receives:
                await self._moves.load()
                return None
            if not self._app.running:
                self._make_handlers(inbox, lookup)
                await self._moves.load()
                allow_list = self._admission.allow_list
                await commands.publish(self._bot, allow_list.admins, allow_list.approvers)
                await self._mailbox.put_unhandled(self._bot)
                await self._app.start()
            await self._listen()
        except TelegramError as error:
            refusal = self._explain_setting_fault(error)
            if refusal:
                raise SettingsError(refusal) from error
            return error.message
        return None

    def _make_handlers(self, inbox: Inbox, lookup: Lookup) -> None:
        dialogues = Dialogues(self._database, self._clock)
        dialogue_runner = DialogueRunner(
            dialogues, self._transport, inbox, lookup, self._shown_cards, self._clock
        )
        inbound = Inbound(
            self._transport,
            self._admission,
            dialogue_runner,
            inbox,
            lookup,
            self._shown_cards,
            self._bot.bot,
            self._is_written_in,
        )
        presses = TelegramPresses(
            self._database,
            self._transport,
            self._admission,
            dialogue_runner,
            inbox,
            lookup,
            self._shown_cards,
            self._pace.is_busy,
            self._sleep,
        )
        self._update_handler = UpdateHandler(self._mailbox, self._bot, inbound, presses, self._sleep)

    async def _listen(self) -> None:
        """Set the webhook, or begin to poll; of several processes only one polls."""
        if self._webhook is not None:
            await self._bot.set_webhook(
                self._webhook, secret_token=self._secret, allowed_updates=_UPDATE_TYPES
            )
        elif self._peers is None:
            await self._poll()
        elif self._polling_task is None:
            self._polling_task = asyncio.create_task(self._poll_in_turn(self._peers))

    async def _poll_in_turn(self, peers: Peers) -> None:
        """Poll while this process holds the lease: Telegram lets only one process poll."""
        updater = self._app.updater
        while updater is not None:
            try:
                has_lease = await peers.lease("telegram")
                if has_lease and not updater.running:
                    await self._moves.load()  # the earlier poller may have stored moves
                    await self._mailbox.put_unhandled(self._bot)
                    await self._poll()
                elif updater.running and not has_lease:
                    await updater.stop()
            except (SQLAlchemyError, TelegramError) as error:
                log.warning("telegram can't be polled, will try again", why=str(error))
            await self._sleep(_LEASE_SECONDS)

    async def _poll(self) -> None:
        if self._app.updater is not None:
            await self._app.updater.start_polling(
                allowed_updates=_UPDATE_TYPES, bootstrap_retries=0, error_callback=_log_polling_failure
            )
            self._polls.heard_at = self._elapsed()  # Telegram accepted the start

    async def stop(self) -> None:
        """Stop listening, finish the updates in progress, disconnect."""
        if self._update_handler is not None:
            self._update_handler.is_stopping = True
        if self._connection is not None:
            await self._connection.close()
        if self._polling_task is not None:
            self._polling_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._polling_task
        if self._app.updater is not None and self._app.updater.running:
            await self._app.updater.stop()
        if self._app.running:
            await self._app.stop()
        await self._app.shutdown()
        await self._bot.shutdown()  # the application leaves it open when its own start failed

    def routes(self) -> list[Route]:
        """Return the route for Telegram's updates on the bot's own server; none without a public URL."""
        if self._webhook:
            return [Route(WEBHOOK_PATH, self._receive, methods=["POST"])]
        return []

    def hearing(self) -> Hearing:
        """Return the health of the connection.

        Telegram answers each poll; by webhook it calls only when there is something to tell.
        """
        if not self._app.running or self._connection is None or not self._connection.is_connected:
            return Hearing(fault="it isn't connected")
        if self._requests.is_refused or self._polls.is_refused:
            return Hearing(fault="Telegram no longer accepts TELEGRAM_BOT_TOKEN")
        if self._webhook is not None:
            return check_silence(self._received_at, self._elapsed(), may_be_silent=True)
        if self._peers is not None and not (self._app.updater and self._app.updater.running):
            return Hearing()  # another process polls
        contested_at = self._polls.contested_at
        if contested_at is not None and self._elapsed() - contested_at < SILENT_SECONDS:
            return Hearing(fault="another program polls with this token. Give each its own bot")
        return check_silence(self._polls.heard_at, self._elapsed(), may_be_silent=False)

    def open_stream(self, address: Address, requester: Actor) -> TelegramStream:  # noqa: ARG002 - as in `Channel`
        place = self._moves.find_current_place(address)
        stream = TelegramStream(self._transport, self._pace, place, self._clock(), self._sleep)
        self._streams.add(stream)
        return stream

    def _is_written_in(self, place: TelegramPlace) -> bool:
        """Tell if this process writes an answer in a place."""
        return any(stream.place == place and not stream.ended for stream in list(self._streams))

    async def check_place(self, address: Address) -> None:
        await self._transport.show_typing(self._moves.find_current_place(address))

    def find_place_around(self, address: Address) -> Address | None:
        """Return the group of a topic, else None. Posts to the group itself go to its topic General."""
        place = TelegramPlace.of(address)
        if place.thread_id:
            return replace(place, thread_id=None).address
        return None

    async def look_up(self, group: str) -> UserGroup:
        title, admins = await self._transport.load_admins(self._find_group_chat(group))
        return UserGroup(f"the admins of {title}", frozenset(f"{NAME}:{admin.id}" for admin in admins))

    async def standing(self, actor: Actor, address: Address) -> Membership | None:
        """Return MEMBER for an admitted person who is still in the chat, else None.

        None also for Nod's own account and for chats.
        """
        if not self._is_person(actor):
            return None
        place = self._moves.find_current_place(address)
        user = int(actor.key)
        if place.is_private and place.chat_id != user:
            raise NotDeliverable("Telegram does not say who someone else is in a private chat.")
        if not await self._admission.admits(user, place.chat_id):
            return None
        if place.is_private or await self._transport.has_member(place, user):
            return Membership.MEMBER
        return None

    async def has_account(self, actor: Actor) -> bool:
        """Tell if this is a person's account, not a chat or Nod. Telegram tells no more about strangers."""
        return self._is_person(actor)

    def _is_person(self, actor: Actor) -> bool:
        own_id = self._token.partition(":")[0]
        return actor.key.isdecimal() and actor.key != own_id

    async def post(self, address: Address, markdown: str, after: int = 0) -> None:
        """Post a text, in several messages if it is long. The first ``after`` of them have arrived before."""
        place = self._moves.find_current_place(address)
        posts = limit_posts(split(from_markdown(markdown)), markdown)
        await post_each(posts, after, lambda post: self._transport.send_post(place, post))

    async def post_link(self, address: Address, markdown: str, link: LinkButton) -> None:
        place = self._moves.find_current_place(address)
        await self._transport.send(place, from_markdown(markdown), make_link_keyboard(link))

    async def fetch_file(self, address: Address, ref: str, most: int) -> bytes:  # noqa: ARG002 - as in `Poster`
        """Download a file of at most ``most`` bytes by its id, from the URL on Telegram's own server."""
        with translate_errors():
            file = await self._bot.get_file(ref)
        return await download(file.file_path or "", most, {self._origin})

    async def post_offers(self, address: Address, markdown: str, offers: Sequence[CommandOffer]) -> None:
        """Post a text and a numbered line for each command, with their buttons below."""
        lines = [plain(f"{number}. {offer.description}") for number, offer in enumerate(offers, 1)]
        place = self._moves.find_current_place(address)
        await self._transport.send(
            place, join([from_markdown(markdown), *lines]), make_offer_keyboard(offers)
        )

    async def post_card(self, address: Address, card: Card) -> str:
        """Post a card; the reference is ``chat/message``."""
        place = self._moves.find_current_place(address)
        view = await self._shown_cards.render_and_record(card, place.chat_id)
        return str(await self._transport.send(place, view.rich, view.keyboard))

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:
        """Redraw a card, and remove outdated buttons below it (`ShownCards.remove_outdated`).

        An open card in a group that got a new id since is posted again there, and CopyGone is raised.
        """
        message = TelegramPosted.parse(ref)
        view = await self._shown_cards.render_and_record(card, message.chat_id)
        end = (card.state, card.round)
        # once the end is shown, only the buttons for the cards of one answer change, which is less urgent
        is_new_end = card.state not in _CHANGING_STATES and self._drawn_ends.get(ref) != end
        urgency = Urgency.ENDED_CARD if is_new_end else Urgency.OPEN_CARD
        try:
            await self._transport.edit(message, view.rich, view.keyboard, urgency=urgency)
            if is_new_end:
                self._remember_end(ref, end)
        except CopyGone:
            if card.pending and self._moves.has_moved(message.chat_id):
                await self._shown_cards.post_once(card, self._moves.find_current_place(address))
            raise
        await self._shown_cards.remove_outdated(card, message.chat_id)

    def _remember_end(self, ref: str, end: tuple[State, int]) -> None:
        self._drawn_ends[ref] = end
        if len(self._drawn_ends) > _MAX_REMEMBERED_ENDS:
            oldest_ref = next(iter(self._drawn_ends))
            del self._drawn_ends[oldest_ref]

    async def remind(self, address: Address, ref: str, markdown: str, people: Sequence[Actor]) -> None:
        """Reply to the card; in a group, mention the people and link to the card in a private chat."""
        card = TelegramPosted.parse(ref)
        place = self._moves.find_current_place(address)
        lines = [from_markdown(markdown)]
        if not place.is_private:
            accounts = [actor for actor in people if actor.channel == self.name]
            named = await self._expand_groups(accounts)
            if named:
                lines.insert(0, join(map(mention, named), ", "))
            copy = await self._database.read(posted_cards.find_posted, self.name, ref)
            if copy:
                link = commands.make_proposal_link(self._bot.bot, copy.proposal_id)
                lines.append(from_markdown(f"[Open it in a private chat]({link})"))
        is_same_chat = card.chat_id == place.chat_id
        await self._transport.send(place, join(lines), below=card.message_id if is_same_chat else None)

    def _find_group_chat(self, group: str) -> TelegramPlace:
        """Return the chat of a user group, which is written ``telegram:-100123/admins``."""
        return self._moves.find_current_place(Address.parse(group.removesuffix("/admins")))

    async def _expand_groups(self, people: Sequence[Actor]) -> list[Actor]:
        """Return the people, with each user group (a chat's admins) replaced by some of those admins.

        A group itself can't be mentioned. It stays if Telegram does not tell its admins.
        """
        expanded: list[Actor] = []
        for actor in people:
            admins: list[User] = []
            if is_group(str(actor)):
                with contextlib.suppress(ChannelError):
                    _, admins = await self._transport.load_admins(self._find_group_chat(str(actor)))
            members = [Actor(NAME, str(admin.id), admin.full_name) for admin in admins[:_MAX_NAMED_ADMINS]]
            expanded += members or [actor]
        return expanded

    async def post_file(self, address: Address, name: str, content: str | bytes) -> None:
        await self._transport.send_file(self._moves.find_current_place(address), name, content, "", None)

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:
        if not ref:
            place = self._moves.find_current_place(address)
            return str(await self._transport.send(place, CARD_RENDERER.team(team, "/team")))
        message = TelegramPosted.parse(ref)
        await self._transport.edit(message, CARD_RENDERER.team(team, "/team"))
        return ref

    async def changed(self) -> None:
        """Do nothing: Telegram has no list of proposals."""

    def _build_app(self, root: str) -> _App:
        """Build PTB's application. ``root``: the address of the Bot API's server."""
        builder = (
            Application.builder()
            .token(self._token)
            .base_url(f"{root}/bot")
            .base_file_url(f"{root}/file/bot")
            .request(self._requests)
            .rate_limiter(self._pace)
            .defaults(Defaults(link_preview_options=LinkPreviewOptions(is_disabled=True)))
            .concurrent_updates(OrderedByChat())
            .job_queue(None)
            .update_queue(self._mailbox)
        )
        if self._webhook is not None:
            builder = builder.updater(None)
        else:
            builder = builder.get_updates_request(self._polls)
        app = builder.build()
        app.add_handler(TypeHandler(StoredUpdate, self._handle))
        return app

    async def _handle(self, stored: StoredUpdate, _: object) -> None:
        if self._update_handler is not None:  # each attempt to connect makes it again
            await self._update_handler.handle(stored)

    async def _tell_delay(self, update: Update) -> None:
        """Tell the person that their press waits for the database; Telegram delivers it again."""
        query = update.callback_query
        if query is None or query.id in self._delayed_presses:
            return
        self._delayed_presses.append(query.id)
        with contextlib.suppress(TelegramError):
            await self._bot.answer_callback_query(query.id, _PRESS_DELAYED_TEXT)

    async def _receive(self, request: Request) -> Response:
        """Take one update by webhook. The answer is 200 once the update is in the database."""
        secret = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(secret.encode(), self._secret.encode()):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        self._received_at = self._elapsed()
        try:
            payload = make_decodable(json.loads(await request.body()))
        except (ValueError, RecursionError):
            payload = None
        if payload is None:
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        update = Update.de_json(payload, self._bot)
        if not self._app.running:  # Telegram sends it again, after the updates of an earlier process
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            await self._mailbox.put(update)
        except TelegramError:
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        return Response(status_code=HTTPStatus.OK)


def _log_polling_failure(error: TelegramError) -> None:
    if isinstance(error, Conflict):
        log.error("telegram is polled by another process with the same token; only one gets each update")
    else:
        log.warning("telegram polling failed, will try again", why=error.message)
