"""The Slack channel: bolt's app wired to our parts, and the `Channel` that delivery uses.

What comes in goes to ``inbound.py`` and ``presses.py``, a turn goes out by ``stream.py``, how a card looks is
in ``card.py``. Socket Mode is used where SLACK_APP_TOKEN is set, routes of the bot's own server otherwise.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.channels.slack import blocks as b
from bot.channels.slack import board as boards
from bot.channels.slack import text
from bot.channels.slack.card import Rendered, brief, render
from bot.channels.slack.faults import code_of, told
from bot.channels.slack.files import upload
from bot.channels.slack.homes import Homes
from bot.channels.slack.inbound import Events
from bot.channels.slack.install import INSTALL_PATH, REDIRECT_PATH, oauth_flow
from bot.channels.slack.places import NAME, Place, Post, user_of
from bot.channels.slack.presses import BROKEN, Presses
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.stream import SlackStream
from bot.channels.slack.whispers import Whispers
from bot.channels.slack.workspaces import Workspaces, make_client
from bot.domain.cards import Card
from bot.domain.chat import Address, Clock, Desk, Inbox, Stream
from bot.domain.people import Actor
from bot.domain.teams import Board
from bot.errors import ChannelError
from bot.settings import Settings
from bot.store.database import Database
from bot.telemetry import logger

log = logger(__name__)

EVENTS_PATH = "/slack/events"
_TOO_BIG = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"})
_bolt_logger = logging.getLogger("bot.slack.bolt")
_bolt_logger.setLevel(logging.ERROR)  # an explicit level: bolt formats its debug lines at NOTSET

T = TypeVar("T")
Ack = Callable[..., Awaitable[BoltResponse]]


class SlackChannel:
    """Slack, both ways; nothing connects before `start`."""

    name = NAME
    pulls = False

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        self._settings = settings
        self._database = database
        self._clock = clock
        self._workspaces = Workspaces(settings, database, clock)
        self._sessions = Sessions(self._workspaces)
        self._whispers = Whispers(self._workspaces)
        self._events: Events | None = None
        self._presses: Presses | None = None
        self._homes: Homes | None = None
        self._socket: AsyncSocketModeHandler | None = None
        self._app = self._make_app()

    def _make_app(self) -> AsyncApp:
        """Make bolt's app with our own authorization, so that no environment variable turns OAuth on."""
        secret = self._settings.slack_signing_secret
        client = make_client(self._settings, None)
        app = AsyncApp(
            name="nod",
            logger=_bolt_logger,
            signing_secret=secret.get_secret_value() if secret else "",
            client=client,
            authorize=self._workspaces,  # type: ignore[arg-type]  # bolt takes an AsyncAuthorize as it is
            oauth_flow=oauth_flow(self._settings, self._database, self._clock, client),
        )
        app.middleware(self._take_in)
        app.action(re.compile(r"^nod:"))(self._clicked)
        app.action(re.compile(""))(_acknowledge)
        app.view(re.compile(r"^nod:"))(self._submitted)
        app.command(re.compile(r"^/(nod|approvals)$"))(self._commanded)
        return app

    async def start(self, inbox: Inbox, desk: Desk) -> None:
        """Connect; raises ChannelError when Slack does not accept the tokens or cannot be reached."""
        await self._workspaces.open()
        self._homes = Homes(self._workspaces, self._database, desk, self._clock)
        self._presses = Presses(self._workspaces, self._whispers, inbox, desk)
        self._events = Events(
            self._workspaces,
            self._sessions,
            self._homes,
            self._whispers,
            database=self._database,
            inbox=inbox,
        )
        token = self._settings.slack_app_token
        if token is not None:
            self._socket = AsyncSocketModeHandler(self._app, token.get_secret_value(), logger=_bolt_logger)
            with told():
                await self._socket.connect_async()  # type: ignore[no-untyped-call]
        self._homes.changed()  # what changed right before a crash is made up for

    async def stop(self) -> None:
        if self._socket is not None:
            await self._socket.close_async()  # type: ignore[no-untyped-call]
            self._socket = None
        for part in (self._events, self._homes, self._sessions, self._workspaces):
            if part is not None:
                await part.close()
        self._events = self._presses = self._homes = None

    def routes(self) -> list[Route]:
        """Give what the bot's server mounts: signed events where Socket Mode is off, and the install flow."""
        routes = []
        if self._settings.slack_app_token is None:
            routes.append(Route(EVENTS_PATH, self._answer, methods=["POST"]))
        if self._app.oauth_flow is not None and self._settings.slack_client_id:
            routes += [Route(path, self._answer, methods=["GET"]) for path in (INSTALL_PATH, REDIRECT_PATH)]
        return routes

    async def _answer(self, request: Request) -> Response:
        return await AsyncSlackRequestHandler(self._app).handle(request)

    async def _take_in(
        self,
        body: dict[str, Any],
        context: AsyncBoltContext,
        next: Callable[[], Awaitable[None]],  # noqa: A002
    ) -> BoltResponse | None:
        """Handle every event before bolt would acknowledge it; the rest goes to the listeners."""
        if body.get("type") != "event_callback":
            await next()
            return None
        if self._events is None:
            raise ChannelError("the Slack channel is not running")
        await self._events.take_in(body, context.team_id or context.enterprise_id or "")
        return BoltResponse(status=200, body="")

    async def _clicked(
        self, ack: Ack, body: dict[str, Any], action: dict[str, Any], context: AsyncBoltContext
    ) -> None:
        await ack()
        if self._presses is not None:
            await self._presses.clicked(body, action, context.team_id or "")

    async def _submitted(
        self, ack: Ack, body: dict[str, Any], view: dict[str, Any], context: AsyncBoltContext
    ) -> None:
        if self._presses is not None:
            await ack(**await self._presses.submitted(body, view, context.team_id or ""))

    async def _commanded(
        self, ack: Ack, body: dict[str, Any], respond: Any, context: AsyncBoltContext
    ) -> None:
        await ack()
        words = BROKEN
        try:
            if self._events is not None:
                words = (await self._events.command(body, context.team_id or "")).text or "Done."
        except Exception:
            log.exception("a command failed")
        try:
            await respond(
                text=text.escape(text.cut(words, 2000)[0]),
                blocks=[b.markdown(words)],
                response_type="ephemeral",
            )
        except Exception:
            log.exception("a command's answer did not arrive")

    def open_stream(self, address: Address, requester: Actor) -> Stream:
        place = Place.of(address)
        return SlackStream(self._workspaces, self._sessions, self._clock, place, user_of(requester))

    async def post(self, address: Address, markdown: str) -> None:
        place = Place.of(address)
        with told():
            client = await self._workspaces.client(place.team)
            for piece in text.split(text.neutralise(markdown)):
                await client.chat_postMessage(
                    channel=place.channel,
                    thread_ts=place.thread,
                    markdown_text=piece,
                    unfurl_links=False,
                    unfurl_media=False,
                )

    async def post_card(self, address: Address, card: Card) -> str:
        return await self._post(Place.of(address), render(card), brief(card))

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:  # noqa: ARG002 - the copy knows its place
        await self._redraw(Post.parse(ref), render(card), brief(card))

    async def post_board(self, address: Address, board: Board) -> str:
        return await self._post(Place.of(address), boards.render(board), boards.brief(board))

    async def redraw_board(self, address: Address, ref: str, board: Board) -> None:  # noqa: ARG002 - as a card
        await self._redraw(Post.parse(ref), boards.render(board), boards.brief(board))

    async def _post(self, place: Place, full: Rendered, less: Rendered) -> str:
        async def post(shown: Rendered) -> str:
            posted = await client.chat_postMessage(
                channel=place.channel,
                thread_ts=place.thread,
                text=shown.text,
                blocks=shown.blocks,
                unfurl_links=False,
                unfurl_media=False,
            )
            return str(Post(place.team, str(posted["channel"]), str(posted["ts"])))

        with told():
            client = await self._workspaces.client(place.team)
            return await _accepted(full, less, post)

    async def _redraw(self, copy: Post, full: Rendered, less: Rendered) -> None:
        async def redraw(shown: Rendered) -> None:
            await client.chat_update(channel=copy.channel, ts=copy.ts, text=shown.text, blocks=shown.blocks)

        with told():
            client = await self._workspaces.client(copy.team)
            await _accepted(full, less, redraw)

    async def post_file(self, address: Address, name: str, text: str) -> None:
        place = Place.of(address)
        with told():
            client = await self._workspaces.client(place.team)
            await upload(client, place, name, text)

    async def changed(self) -> None:
        """Refresh everybody's App Home soon, wherever the proposal lives."""
        if self._homes is not None:
            self._homes.changed()


async def _accepted(full: Rendered, less: Rendered, show: Callable[[Rendered], Awaitable[T]]) -> T:
    """Show it in full, or in its brief form where Slack refuses the full one after all."""
    try:
        return await show(full)
    except SlackApiError as error:
        if code_of(error) not in _TOO_BIG:
            raise
        log.warning("Slack refused some blocks, the brief form follows", about=full.text)
        return await show(less)


async def _acknowledge(ack: Ack) -> None:
    await ack()
