"""Slack's requests: events, commands, clicks and submits of modals, each handed to its handler.

Bolt is Slack's framework for apps. It receives requests over Socket Mode (``socket.py``), or by routes of the
bot's own server. It checks them, and calls the listeners here.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import aiohttp
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackClientError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.channels.slack import blocks, posting, screens, text
from bot.channels.slack.client import make_client
from bot.channels.slack.inbound import Events
from bot.channels.slack.install import INSTALL_PATH, REDIRECT_PATH, oauth_flow
from bot.channels.slack.installations import list_installation_ids
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.presses import FAILURE_TEXT, SlackPresses
from bot.channels.slack.socket import is_readable, is_signed
from bot.channels.slack.submits import ModalSubmits
from bot.channels.slack.workspaces import Workspace, Workspaces
from bot.domain.chat import Clock, LinkButton
from bot.errors import ChannelError
from bot.settings import Settings
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)

EVENTS_PATH = "/slack/events"
# types of Slack's requests
_PRESS_TYPES = frozenset({"block_actions", "view_submission"})
_SHORTCUT_TYPES = frozenset({"shortcut", "message_action"})
_MAX_LOGGED_WORKSPACES = 1000  # the log names each workspace without an installation once, up to this number
_MAX_LOGGED_CHARS = 80  # of what a request says
_NOT_INSTALLED_TEXT = "Nod is not installed in this workspace. Ask an admin of it to install the app."
_CONNECTING_TEXT = "I'm still connecting to Slack. Nothing was changed. Try again in a minute."
_MAX_ANSWER_UNITS = 2000  # the fallback text of an answer to one person
_bolt_logger = logging.getLogger("bot.slack.bolt")
_bolt_logger.setLevel(logging.ERROR)  # an explicit level: bolt formats its debug lines at NOTSET
Ack = Callable[..., Awaitable[BoltResponse]]  # acknowledges a request, which Slack wants within 3 s


class RequestHandlers(NamedTuple):
    """The handlers of requests."""

    events: Events
    presses: SlackPresses
    submits: ModalSubmits


class SlackRequests:
    """Bolt's app, with listeners that hand each request to its handler. Before `connect` it refuses them."""

    def __init__(
        self,
        settings: Settings,
        workspaces: Workspaces,
        database: Database,
        clock: Clock,
        elapsed: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._workspaces = workspaces
        self._elapsed = elapsed
        self._handlers: RequestHandlers | None = None
        self.last_request_at: float | None = None
        """The time of the last signed request to the bot's own server, by ``elapsed``."""
        self._logged_unknown_workspaces: set[str] = set()
        """Workspaces without an installation that the log has named."""
        self.app = self._make_app(database, clock)

    def connect(self, handlers: RequestHandlers) -> None:
        """Hand requests to these handlers from now on."""
        self._handlers = handlers

    def disconnect(self) -> None:
        self._handlers = None

    def _make_app(self, database: Database, clock: Clock) -> AsyncApp:
        """Make bolt's app with Nod's own authorization, so that no environment variable turns OAuth on."""
        secret = self._settings.slack_signing_secret
        client = make_client(self._settings, None)
        app = AsyncApp(
            name="nod",
            logger=_bolt_logger,
            signing_secret=secret.get_secret_value() if secret else "",
            client=client,
            authorize=self._workspaces,
            oauth_flow=oauth_flow(self._settings, database, clock, client),
        )
        app.middleware(self._answer_request)
        app.action(re.compile(r"^nod:"))(self._take_click)
        app.action(re.compile(""))(_acknowledge)
        app.view(re.compile(r"^nod:"))(self._take_submission)
        app.command(re.compile(r"^/(nod|approvals)$"))(self._take_command)
        return app

    def routes(self) -> list[Route]:
        """Return the routes of the bot's server: signed events without Socket Mode, and the install flow."""
        routes = []
        if self._settings.slack_app_token is None and self._settings.slack_signing_secret is not None:
            routes.append(Route(EVENTS_PATH, self._receive, methods=["POST"]))
        if self.app.oauth_flow is not None and self._settings.slack_client_id:
            routes += [
                Route(path, self._hand_to_bolt, methods=["GET"]) for path in (INSTALL_PATH, REDIRECT_PATH)
            ]
        return routes

    async def _receive(self, request: Request) -> Response:
        """Handle a signed, readable request. Anyone can send others: they cost no work and no log line."""
        secret = self._settings.slack_signing_secret
        body = await request.body()
        if secret is None or not is_signed(secret.get_secret_value(), body, request.headers):
            return Response(status_code=HTTPStatus.UNAUTHORIZED)
        if not is_readable(body, request.headers.get("content-type", "")):
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        self.last_request_at = self._elapsed()
        return await self._hand_to_bolt(request)

    async def _hand_to_bolt(self, request: Request) -> Response:
        return await AsyncSlackRequestHandler(self.app).handle(request)

    async def _answer_request(
        self,
        body: dict[str, Any],
        next: Callable[[], Awaitable[None]],  # noqa: A002
    ) -> BoltResponse | None:
        """Pass presses and commands on to bolt's listeners, and answer every other request here.

        This is a middleware of bolt. Without an answer here, bolt would acknowledge an event before it is
        stored, and answer 404 to a request without a listener. Raises if an event could not be stored: then
        Slack sends it again.
        """
        kind = body.get("type")
        if kind in _PRESS_TYPES or "command" in body:
            await next()
            return None
        if kind == "event_callback":
            if self._handlers is None or self._workspaces.is_connecting:
                raise ChannelError("the Slack channel is not connected")
            workspace = await self._workspaces.find_for_request(body)
            if workspace is not None:
                await self._handlers.events.take_in(self._translate_ids(body, workspace), workspace.team)
            else:
                self._log_unknown_workspace(body)
        elif kind == "app_rate_limited":
            since = body.get("minute_rate_limited")
            log.warning(
                "Slack holds events back: too many came within an hour", team=body.get("team_id"), since=since
            )
        elif kind in _SHORTCUT_TYPES and self._handlers is not None:
            await self._handlers.events.refuse_shortcut(body)
        else:
            log.warning("Slack sent what Nod has no use for", kind=str(kind)[:_MAX_LOGGED_CHARS])
        return BoltResponse(status=200, body="")

    def _translate_ids(self, body: dict[str, Any], workspace: Workspace) -> dict[str, Any]:
        """Return a request of Slack with the ids by which Nod knows the channels."""
        translated: dict[str, Any] = self._workspaces.moves.from_slack(workspace.team, body)
        return translated

    def _log_unknown_workspace(self, body: Mapping[str, Any]) -> None:
        """Log a workspace without an installation, once."""
        names = ", ".join(list_installation_ids(body))[:_MAX_LOGGED_CHARS]
        logged = self._logged_unknown_workspaces
        if names not in logged and len(logged) < _MAX_LOGGED_WORKSPACES:
            logged.add(names)
            log.warning("Slack sends events of a workspace where Nod is not installed", workspace=names)

    async def _take_click(self, ack: Ack, body: dict[str, Any], action: dict[str, Any], respond: Any) -> None:
        await ack()
        workspace = await self._workspaces.find_for_request(body)
        if self._handlers is not None and workspace is not None:
            await self._handlers.presses.handle_click(
                self._translate_ids(body, workspace), action, workspace.team
            )
        elif "response_url" in body:
            await self._respond(respond, self._not_known_text, "")

    async def _take_submission(self, ack: Ack, body: dict[str, Any], view: dict[str, Any]) -> None:
        workspace = await self._workspaces.find_for_request(body)
        if self._handlers is not None and workspace is not None:
            translated = self._translate_ids(body, workspace)
            await ack(**await self._handlers.submits.handle_submit(translated, view, workspace.team))
        else:
            await ack(response_action="update", view=screens.make_result("Not done", self._not_known_text))

    @property
    def _not_known_text(self) -> str:
        """The answer to a request from a workspace without a known installation."""
        if self._workspaces.is_connecting:
            return _CONNECTING_TEXT
        return _NOT_INSTALLED_TEXT

    async def _take_command(self, ack: Ack, body: dict[str, Any], respond: Any) -> None:
        await ack()
        words = FAILURE_TEXT
        workspace: Workspace | None = None
        link: LinkButton | None = None
        try:
            workspace = await self._workspaces.find_for_request(body)
            if workspace is None:
                words = self._not_known_text
            elif self._handlers is not None:
                body = self._translate_ids(body, workspace)
                words, link = (await self._handlers.events.command(body, workspace.team)).split_link()
        except Exception:
            log.exception("command failed")
        words = words or "Done."
        was_sent = await self._respond(respond, words, workspace.team if workspace else "", link)
        if was_sent or workspace is None:
            return
        try:
            place = SlackPlace(workspace.team, str(body["channel_id"]))
            await posting.tell_person(self._workspaces, place, str(body["user_id"]), words, link=link)
        except Exception:
            log.exception("command answer not delivered")

    async def _respond(self, respond: Any, words: str, team: str, link: LinkButton | None = None) -> bool:
        """Answer one person by bolt's ``respond``, which uses their request's ``response_url``.

        Returns False if Slack did not take the answer.
        """
        try:
            response = await respond(
                text=text.notification(words, _MAX_ANSWER_UNITS),
                blocks=[blocks.markdown(words, team), *blocks.link_button(link)],
                response_type="ephemeral",
                replace_original=False,
            )
        except (SlackClientError, aiohttp.ClientError, OSError) as error:
            log.warning("an answer to one person was not sent", why=str(error))
            return False
        if response.status_code != HTTPStatus.OK:
            log.warning("Slack did not take an answer to one person", why=response.body)
            return False
        return True


async def _acknowledge(ack: Ack) -> None:
    await ack()
