"""The Slack channel: bolt's app wired to Nod's parts, and the `Channel` that delivery uses.

Bolt is Slack's framework for apps. It receives requests over Socket Mode (a websocket) if SLACK_APP_TOKEN is
set, otherwise by routes of the bot's own server. Events and commands go to ``inbound.py``, clicks to
``presses.py``, submits of modals to ``submits.py``. ``stream.py`` shows a turn, ``card.py`` renders cards,
and ``workspaces.py`` knows the workspaces where Nod is installed.

Slack may refuse a message for its contents. So a message has several forms, the best first, and the first
that Slack takes is posted. If a call got no answer, its message may have been posted all the same. So it is
looked for by its key before it is posted again (`SlackChannel._post_once`).
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet

import aiohttp
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.channels.base import Hearing, Lookup, Stream, check_silence
from bot.channels.connecting import PlatformLink, download
from bot.channels.kinds import Platform
from bot.channels.slack import blocks, doctor, posting, screens, text
from bot.channels.slack.card import render, render_briefly
from bot.channels.slack.client import limit_time, make_client
from bot.channels.slack.earlier_messages import ThreadReader
from bot.channels.slack.errors import (
    CONTENT_CODES,
    NO_REPLY_CODES,
    code_behind,
    code_of,
    is_temporary,
    may_have_succeeded,
    translate_errors,
)
from bot.channels.slack.home import Homes
from bot.channels.slack.inbound import Events
from bot.channels.slack.install import INSTALL_PATH, REDIRECT_PATH, oauth_flow
from bot.channels.slack.installations import list_installation_ids
from bot.channels.slack.people import SlackPeople
from bot.channels.slack.places import NAME, SlackPlace, SlackPosted, mention_of, user_of
from bot.channels.slack.presses import FAILURE_TEXT, SlackPresses
from bot.channels.slack.program_messages import ProgramMessages
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.socket import Socket, is_readable, is_signed
from bot.channels.slack.stream import SlackStream
from bot.channels.slack.submits import ModalSubmits
from bot.channels.slack.team_blocks import brief_team, render_team
from bot.channels.slack.threads import FollowedThreads
from bot.channels.slack.user_groups import UserGroups
from bot.channels.slack.workspaces import Workspace, Workspaces
from bot.channels.streamed_message import FullText, limit_posts, post_each
from bot.domain.cards import Card
from bot.domain.chat import Address, Clock, Inbox, LinkButton, make_offer_mark
from bot.domain.hooks import CommandOffer
from bot.domain.jobs import Peers
from bot.domain.people import Actor, Membership, UserGroup
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, NotDeliverable, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)

EVENTS_PATH = "/slack/events"
_FILES_ORIGIN = "https://files.slack.com"
_LOOKUP_SECONDS = 2.0  # the time for a question to Slack about people or places
_FIRST_TRY_SECONDS = 5.0  # the time that a start waits for Slack; later tries are in the background
_APP_PAGE_TEXT = "api.slack.com/apps, your app"
_TOKEN_FIXES = {
    "SLACK_BOT_TOKEN": f"Copy the Bot User OAuth Token (xoxb-…) from {_APP_PAGE_TEXT}, OAuth & Permissions.",
    "SLACK_APP_TOKEN": (
        f"Make an App-Level Token (xapp-…) with connections:write at {_APP_PAGE_TEXT}, Basic Information, "
        "and turn Socket Mode on."
    ),
}
# types of Slack's requests
_PRESS_TYPES = frozenset({"block_actions", "view_submission"})
_SHORTCUT_TYPES = frozenset({"shortcut", "message_action"})
_MAX_LOGGED_WORKSPACES = 1000  # the log names each workspace without an installation once, up to this number
_MAX_LOGGED_CHARS = 80  # of what a request says
_NOT_INSTALLED_TEXT = "Nod is not installed in this workspace. Ask an admin of it to install the app."
_CONNECTING_TEXT = "I'm still connecting to Slack. Nothing was changed. Try again in a minute."
_REMINDER_TEXT = "Look at this card."
_USUAL_POSTING_TIME = timedelta(seconds=5)
"""The time in which a process posts a new card. A process that has ended may have posted an older one."""
_MAX_ANSWER_UNITS = 2000  # the fallback text of an answer to one person
_AS_A_FILE_TEXT = "Slack doesn't take this text as a message. It is in the file."
_bolt_logger = logging.getLogger("bot.slack.bolt")
_bolt_logger.setLevel(logging.ERROR)  # an explicit level: bolt formats its debug lines at NOTSET

T = TypeVar("T")
Ack = Callable[..., Awaitable[BoltResponse]]  # acknowledges a request, which Slack wants within 3 s
Message = Mapping[str, Any]  # the arguments of chat.postMessage and chat.update


class SlackChannel(Platform):
    """The channel for Slack; `Channel` and `Poster` describe its methods. Nothing connects before `start`.

    ``sleep`` paces the attempts to connect.
    """

    name = NAME

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        elapsed: Callable[[], float] = time.time,  # the clock by which the SDK counts pings
    ) -> None:
        """Raise SettingsError where the settings cannot work, such as a bot token without a transport."""
        for finding in doctor.check_settings(settings):
            if finding.failed:
                raise SettingsError(f"{finding.name}: {finding.fix}.")
        self._settings = settings
        self._database = database
        self._clock = clock
        self._elapsed = elapsed
        self._connection = PlatformLink("Slack", self._connect, sleep)
        self._sleep = sleep
        self._streams: WeakSet[SlackStream] = WeakSet()  # the streams in use, to be closed at the end
        self._last_request_at: float | None = None  # the time of the last signed request, by ``elapsed``
        self._logged_unknown_workspaces: set[str] = set()
        """Workspaces without an installation that the log has named."""
        self._started: datetime | None = None
        self._has_peers = False  # True if other processes of this Nod may post, too
        self._unconfirmed: dict[tuple[SlackPlace, str], datetime] = {}
        """The time of each post that Slack has not confirmed, by its place and key."""
        self._workspaces = Workspaces(settings, database, clock)
        self._people = SlackPeople(self._workspaces, clock)
        self._user_groups = UserGroups(self._workspaces, clock)
        self._sessions = Sessions(self._workspaces)
        self._threads = FollowedThreads(database, clock)
        self._events: Events | None = None
        self._presses: SlackPresses | None = None
        self._submits: ModalSubmits | None = None
        self._homes: Homes | None = None
        self._socket: Socket | None = None
        self._app = self._make_app()

    def _make_app(self) -> AsyncApp:
        """Make bolt's app with Nod's own authorization, so that no environment variable turns OAuth on."""
        secret = self._settings.slack_signing_secret
        client = make_client(self._settings, None)
        app = AsyncApp(
            name="nod",
            logger=_bolt_logger,
            signing_secret=secret.get_secret_value() if secret else "",
            client=client,
            authorize=self._workspaces,
            oauth_flow=oauth_flow(self._settings, self._database, self._clock, client),
        )
        app.middleware(self._answer_request)
        app.action(re.compile(r"^nod:"))(self._take_click)
        app.action(re.compile(""))(_acknowledge)
        app.view(re.compile(r"^nod:"))(self._take_submission)
        app.command(re.compile(r"^/(nod|approvals)$"))(self._take_command)
        return app

    async def start(
        self,
        inbox: Inbox,
        lookup: Lookup,
        *,
        receives: bool = True,
        others: Peers | None = None,
    ) -> None:
        """Connect; while Slack cannot be reached, continue trying in the background.

        ``receives``: this process takes events. ``others``: the other processes of this Nod, None if it has
        none. Raises SettingsError when Slack does not accept a token.
        """
        self._started = self._clock()
        self._has_peers = others is not None
        self._workspaces.moves.connect(inbox, others)
        if others is not None:
            self._workspaces.waits.share(others)  # all processes keep to the waits that Slack imposes
        self._homes = Homes(self._workspaces, self._database, lookup, self._clock)
        self._presses = SlackPresses(self._workspaces, self._people, self._threads, inbox, lookup)
        self._submits = ModalSubmits(self._people, inbox, lookup)
        self._events = Events(
            workspaces=self._workspaces,
            people=self._people,
            sessions=self._sessions,
            homes=self._homes,
            threads=self._threads,
            thread_reader=ThreadReader(self._workspaces, self._people),
            program_messages=ProgramMessages(self._database, self._clock),
            inbox=inbox,
            lookup=lookup,
        )
        token = self._settings.slack_app_token
        if token is not None and receives:
            secret = token.get_secret_value()
            self._socket = Socket(self._app, self._settings, secret, is_only_process=others is None)
        await self._connection.open(_FIRST_TRY_SECONDS)

    async def _connect(self) -> str | None:
        """Try once to connect. Return why it failed for now, or None if it is connected.

        Raises SettingsError for a failure that trying again will not change.
        """
        setting = "SLACK_BOT_TOKEN"
        try:
            await self._workspaces.open()
            await self._workspaces.moves.load()
            if self._socket is not None:
                setting = "SLACK_APP_TOKEN"
                await self._socket.open()
        except ChannelError as error:
            code = code_behind(error)
            if code is None or is_temporary(code):
                return error.message
            raise SettingsError(f"{setting}: Slack refused it ({code}). {_TOKEN_FIXES[setting]}") from error
        if self._homes is not None:
            self._homes.refresh_soon()  # changes right before a crash may not be shown yet
        return None

    async def stop(self) -> None:
        await self._connection.close()
        await asyncio.gather(*(stream.abandon() for stream in list(self._streams)), return_exceptions=True)
        if self._socket is not None:
            await self._socket.close()
            self._socket = None
        for part in (self._events, self._homes, self._sessions, self._people, self._workspaces):
            if part is not None:
                await part.close()
        self._events = self._presses = self._submits = self._homes = None

    def routes(self) -> list[Route]:
        """Return the routes of the bot's server: signed events without Socket Mode, and the install flow."""
        routes = []
        if self._settings.slack_app_token is None and self._settings.slack_signing_secret is not None:
            routes.append(Route(EVENTS_PATH, self._receive, methods=["POST"]))
        if self._app.oauth_flow is not None and self._settings.slack_client_id:
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
        self._last_request_at = self._elapsed()
        return await self._hand_to_bolt(request)

    async def _hand_to_bolt(self, request: Request) -> Response:
        return await AsyncSlackRequestHandler(self._app).handle(request)

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
            if self._events is None or self._workspaces.is_connecting:
                raise ChannelError("the Slack channel is not connected")
            workspace = await self._workspaces.find_for_request(body)
            if workspace is not None:
                await self._events.take_in(self._translate_ids(body, workspace), workspace.team)
            else:
                self._log_unknown_workspace(body)
        elif kind == "app_rate_limited":
            since = body.get("minute_rate_limited")
            log.warning(
                "Slack holds events back: too many came within an hour", team=body.get("team_id"), since=since
            )
        elif kind in _SHORTCUT_TYPES and self._events is not None:
            await self._events.refuse_shortcut(body)
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
        if self._presses is not None and workspace is not None:
            await self._presses.handle_click(self._translate_ids(body, workspace), action, workspace.team)
        elif "response_url" in body:
            await self._respond(respond, self._not_known_text, "")

    async def _take_submission(self, ack: Ack, body: dict[str, Any], view: dict[str, Any]) -> None:
        workspace = await self._workspaces.find_for_request(body)
        if self._submits is not None and workspace is not None:
            translated = self._translate_ids(body, workspace)
            await ack(**await self._submits.handle_submit(translated, view, workspace.team))
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
            elif self._events is not None:
                body = self._translate_ids(body, workspace)
                words, link = (await self._events.command(body, workspace.team)).split_link()
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

    def hearing(self) -> Hearing:
        """Return the health of the connection.

        Slack answers pings on its socket; over HTTP it calls only when there is something to tell.
        """
        if self._connection.has_given_up:
            return Hearing(fault="Slack refused a token; the log says which")
        if self._workspaces.is_refused:
            return Hearing(fault="Slack no longer accepts SLACK_BOT_TOKEN")
        if not self._connection.is_connected:
            return Hearing(fault="it isn't connected")
        if self._socket is not None and self._socket.contested:
            return Hearing(fault="Slack counts another connection of this app. Give each program its own app")
        if self._socket is not None:
            return check_silence(self._socket.last_sign_of_life(), self._elapsed(), may_be_silent=False)
        return check_silence(self._last_request_at, self._elapsed(), may_be_silent=True)

    def open_stream(self, address: Address, requester: Actor) -> Stream:
        place = SlackPlace.of(address)
        stream = SlackStream(
            self._workspaces,
            self._people,
            self._sessions,
            self._threads,
            self._clock,
            place,
            user_of(requester),
            self._sleep,
            partial(self._post_one, address),
        )
        self._streams.add(stream)
        return stream

    async def check_place(self, address: Address) -> None:
        place = SlackPlace.of(address)
        with translate_errors():
            await posting.check_place(await self._workspaces.client(place.team), place)

    async def look_up(self, group: str) -> UserGroup:
        place = SlackPlace.of(Address.parse(group))
        async with limit_time(_LOOKUP_SECONDS):
            return await self._user_groups.load_group(place.team, place.channel)

    async def standing(self, actor: Actor, address: Address) -> Membership | None:
        async with limit_time(_LOOKUP_SECONDS):
            return await self._people.load_membership(SlackPlace.of(address).team, actor)

    async def is_shared(self, address: Address) -> bool:
        place = SlackPlace.of(address)
        client = await self._workspaces.client(place.team)
        try:
            async with limit_time(_LOOKUP_SECONDS):
                with translate_errors():
                    channel = await posting.channel_of(client, place)
                    response = await client.conversations_info(channel=channel)
        except TimeoutError:
            raise ChannelError("Slack did not say in time who reads along there.") from None
        return bool((response.get("channel") or {}).get("is_ext_shared"))

    async def time_zone(self, actor: Actor, address: Address) -> tzinfo | None:
        return await self._people.load_time_zone(SlackPlace.of(address).team, actor)

    async def post(self, address: Address, markdown: str, after: int = 0) -> None:
        """Post a text, in several messages if it is long. The first ``after`` of them have arrived before."""
        posts = limit_posts(text.split(text.neutralise(markdown)), markdown)
        await post_each(posts, after, partial(self._post_one, address))

    async def post_link(self, address: Address, markdown: str, link: LinkButton) -> None:
        with_button = {
            "text": text.notification(markdown),
            "blocks": [blocks.markdown(markdown), *blocks.link_button(link)],
        }
        as_text = text.list_message_forms(text.neutralise(f"{link.markdown}\n{markdown}"))
        await self._post_once(SlackPlace.of(address), f"{link.url} {markdown}", [with_button, *as_text])

    async def _post_one(self, address: Address, part: str | FullText) -> None:
        """Post a text that fits one message, or a `FullText`; a text that Slack refuses becomes a file."""
        place = SlackPlace.of(address)
        if isinstance(part, FullText):
            await self._post_once(
                place, part.text, text.list_message_forms(text.neutralise(part.message_text))
            )
            await self.post_file(address, part.name, part.text)
            return
        try:
            await self._post_once(place, part, text.list_message_forms(part))
        except NotDeliverable as error:
            if code_behind(error) not in CONTENT_CODES:
                raise
            await self._post_once(place, f"file of {part}", text.list_message_forms(_AS_A_FILE_TEXT))
            await self.post_file(address, FullText(part).name, part)

    async def _post_once(
        self, place: SlackPlace, key: str, forms: Sequence[Message], since: datetime | None = None
    ) -> tuple[SlackPosted, bool]:
        """Post the first of these forms that Slack takes. Return the message, and True if it is new.

        ``key`` identifies the message in its place. Before it is posted, a message with the key is looked
        for in two cases. If this process made such a call before, and Slack did not confirm it: among the
        posts since that call. Otherwise, if ``since`` is given, among the posts since then, because another
        process may have posted it.
        """
        with translate_errors():
            client = await self._workspaces.client(place.team)
            search_since = self._unconfirmed.get((place, key), since)
            if search_since is not None:
                existing = await posting.find_post(self._workspaces, place, key, search_since)
                if existing is not None:
                    self._unconfirmed.pop((place, key), None)
                    return existing, False
            self._unconfirmed.setdefault((place, key), self._clock())
            post = partial(_post_quietly, client, place, metadata=posting.make_search_metadata(key))
            try:
                posted = await _show_first_accepted(forms, post)
            except SlackApiError as error:
                if not may_have_succeeded(error):
                    self._unconfirmed.pop((place, key), None)
                raise
            self._unconfirmed.pop((place, key), None)
            return SlackPosted(place.team, str(posted["channel"]), str(posted["ts"])), True

    async def post_offers(self, address: Address, markdown: str, offers: Sequence[CommandOffer]) -> None:
        """Post a text and a line with a button for each command."""
        place = SlackPlace.of(address)
        lines_with_button = [
            blocks.offer(number, offer.about, offer.label, make_offer_mark(offer.words))
            for number, offer in enumerate(offers, 1)
        ]
        plain_lines = [f"{number}. {offer.about}" for number, offer in enumerate(offers, 1)]
        plain = text.escape_prose("\n".join([text.as_plain(markdown), *plain_lines]))
        key = "\n".join([markdown, *(offer.words for offer in offers)])
        forms: list[Message] = [
            {"text": plain, "blocks": [blocks.markdown(markdown), *lines_with_button]},
            {"text": plain},
        ]
        await self._post_once(place, key, forms)

    async def post_card(self, address: Address, card: Card) -> str:
        place = SlackPlace.of(address)
        forms = _render_forms(card, place.team)
        since = self._possibly_posted_since(card)
        return await self._post_redrawable(place, card.proposal_id, forms, since)

    def _possibly_posted_since(self, card: Card) -> datetime | None:
        """Return the time since which another process may have posted this card.

        None if only this process can have posted it: the card was proposed after this process started and, if
        Nod has other processes, only a moment ago.
        """
        if card.asked_at is None or self._started is None:
            return None
        own_cards_since = self._started
        if self._has_peers:
            own_cards_since = max(own_cards_since, self._clock() - _USUAL_POSTING_TIME)
        if card.asked_at < own_cards_since:
            return card.asked_at
        return None

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:  # noqa: ARG002 - ``ref`` names the place
        copy = SlackPosted.parse(ref)
        await self._redraw(copy, _render_forms(card, copy.team))

    async def remind(self, address: Address, ref: str, markdown: str, people: Sequence[Actor]) -> None:
        """Post a reminder in the card's thread, with a link to it. Mention the people of this workspace."""
        place = SlackPlace.of(address)
        card = SlackPosted.parse(ref)
        accounts = [account for account in map(user_of, people) if account is not None]
        mentions = " ".join(mention_of(user) for team, user in accounts if team == place.team)
        with translate_errors():
            client = await self._workspaces.client(place.team)
            link = await client.chat_getPermalink(channel=card.channel, message_ts=card.ts)
        permalink = link["permalink"]
        mrkdwn = blocks.mrkdwn_block(f"{mentions} <{permalink}|Show the card>".strip())
        link_block = {"type": "section", "text": mrkdwn}
        plain = f"{mentions} {text.escape_prose(text.as_plain(markdown))}".strip()
        full = {"text": plain, "blocks": [blocks.markdown(markdown), link_block]}
        link_only = {"text": f"{mentions} {_REMINDER_TEXT}".strip(), "blocks": [link_block]}
        thread = SlackPlace(card.team, card.channel, place.thread or card.ts)
        await self._post_once(thread, markdown, [full, {"text": f"{plain} {permalink}"}, link_only])

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:
        forms = [render_team(team).message, brief_team(team).message]
        if not ref:
            return await self._post_redrawable(SlackPlace.of(address), f"team of {team.lead_id}", forms)
        await self._redraw(SlackPosted.parse(ref), forms)
        return ref

    async def _post_redrawable(
        self, place: SlackPlace, key: str, forms: Sequence[Message], since: datetime | None = None
    ) -> str:
        """Post a message that will be redrawn, once, and return its reference.

        If it was posted before, it is brought up to date instead.
        """
        message, is_new = await self._post_once(place, key, forms, since)
        if not is_new:
            await self._redraw(message, forms)
        return str(message)

    async def _redraw(self, copy: SlackPosted, forms: Sequence[Message]) -> None:
        with translate_errors():
            client = await self._workspaces.client(copy.team)
            await _show_first_accepted(forms, partial(client.chat_update, channel=copy.channel, ts=copy.ts))

    async def post_file(self, address: Address, name: str, content: str | bytes) -> None:
        place = SlackPlace.of(address)
        with translate_errors():
            client = await self._workspaces.client(place.team)
            await posting.upload(client, place, name, content)

    async def fetch_file(self, address: Address, ref: str, most: int) -> bytes:
        """Download a file of at most ``most`` bytes by its id.

        Slack gives the URL, which must be Slack's own.
        """
        with translate_errors():
            client = await self._workspaces.client(SlackPlace.of(address).team)
            file = (await client.files_info(file=ref)).get("file") or {}
        if file.get("is_external"):
            raise NotDeliverable("it is kept outside Slack; download it and attach it")
        api = urlsplit(str(self._settings.slack_api_url))
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        if not url:
            raise NotDeliverable("Slack has it no longer, or keeps it elsewhere")
        return await download(url, most, {_FILES_ORIGIN, f"{api.scheme}://{api.netloc}"}, str(client.token))

    async def changed(self) -> None:
        """Refresh the App Homes soon: the page of each person lists proposals of all places."""
        if self._homes is not None:
            self._homes.refresh_soon()


def _render_forms(card: Card, team: str) -> Sequence[Message]:
    return render(card, team).message, render_briefly(card, team).message


async def _post_quietly(client: AsyncWebClient, place: SlackPlace, **contents: Any) -> AsyncSlackResponse:
    """Post without previews; in the channel itself if the thread takes no reply."""
    contents |= {"channel": place.channel, "unfurl_links": False, "unfurl_media": False}
    try:
        return await client.chat_postMessage(thread_ts=place.thread, **contents)
    except SlackApiError as error:
        if place.thread is None or code_of(error) not in NO_REPLY_CODES:
            raise
        return await client.chat_postMessage(**contents)


async def _show_first_accepted(forms: Sequence[Message], show: Callable[..., Awaitable[T]]) -> T:
    """Show the first of these forms whose contents Slack does not refuse.

    ``show`` posts or edits a message.
    """
    *preferred_forms, last_form = forms
    for form in preferred_forms:
        try:
            return await show(**form)
        except SlackApiError as error:
            if code_of(error) not in CONTENT_CODES:
                raise
            log.warning("Slack refused what a message holds, another form follows", why=code_of(error))
    return await show(**last_form)


async def _acknowledge(ack: Ack) -> None:
    await ack()
