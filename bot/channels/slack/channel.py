"""The Slack channel: bolt's app wired to our parts, and the `Channel` that delivery uses.

What comes in goes to ``inbound.py`` and ``presses.py``, a turn goes out by ``stream.py``, how a card looks is
in ``card.py``. Socket Mode is used where SLACK_APP_TOKEN is set, routes of the bot's own server otherwise.
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

from bot.channels.base import Hearing, Lookup, Stream, heard
from bot.channels.connecting import PlatformLink, download
from bot.channels.kinds import Platform
from bot.channels.slack import blocks as b
from bot.channels.slack import doctor, posting, screens, text
from bot.channels.slack.card import brief, brief_team, render, render_team
from bot.channels.slack.errors import (
    CONTENTS,
    NO_REPLIES,
    code_behind,
    code_of,
    maybe_done,
    passes,
    translate_errors,
)
from bot.channels.slack.home import Homes
from bot.channels.slack.inbound import Events, FollowedThreads
from bot.channels.slack.install import INSTALL_PATH, REDIRECT_PATH, oauth_flow
from bot.channels.slack.installations import list_installation_ids
from bot.channels.slack.places import NAME, SlackPlace, SlackPosted, mention_of, user_of
from bot.channels.slack.presses import BROKEN, SlackPresses
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.socket import Socket, is_readable, is_signed
from bot.channels.slack.stream import SlackStream
from bot.channels.slack.workspaces import Workspace, Workspaces, make_client, within
from bot.channels.streamed_message import FullText, in_few, post_each
from bot.domain.cards import Card
from bot.domain.chat import Address, Clock, Inbox
from bot.domain.jobs import Peers
from bot.domain.people import Actor, Membership, UserGroup
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, NotDeliverable, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)

EVENTS_PATH = "/slack/events"
_FILES = "https://files.slack.com"
_GROUP_PATIENCE = 2.0  # seconds
_FIRST_TRY = 5.0  # seconds a start waits for Slack
_WHERE = "api.slack.com/apps, your app"
_MENDS = {
    "SLACK_BOT_TOKEN": f"Copy the Bot User OAuth Token (xoxb-…) from {_WHERE}, OAuth & Permissions.",
    "SLACK_APP_TOKEN": (
        f"Make an App-Level Token (xapp-…) with connections:write at {_WHERE}, Basic Information, "
        "and turn Socket Mode on."
    ),
}
_PRESSED = frozenset({"block_actions", "view_submission"})
_SHORTCUTS = frozenset({"shortcut", "message_action"})
_MOST_STRANGERS = 1000
_NOT_INSTALLED = "Nod is not installed in this workspace. Ask an admin of it to install the app."
_CONNECTING = "I'm still connecting to Slack. Nothing was changed. Try again in a minute."
_LOOK = "Look at this card."
_SOON = timedelta(seconds=5)  # a card that was not posted by then may be what a process left that is gone
_AS_A_FILE = "Slack doesn't take this text as a message. It is in the file."
_bolt_logger = logging.getLogger("bot.slack.bolt")
_bolt_logger.setLevel(logging.ERROR)  # an explicit level: bolt formats its debug lines at NOTSET

T = TypeVar("T")
Ack = Callable[..., Awaitable[BoltResponse]]
Message = Mapping[str, Any]  # what chat.postMessage and chat.update take


class SlackChannel(Platform):
    """Slack, both ways; nothing connects before `start`. ``sleep`` paces the tries to connect."""

    name = NAME

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        elapsed: Callable[[], float] = time.time,  # what the SDK counts pings by
    ) -> None:
        """Raise SettingsError where the settings cannot work, such as a bot token without a transport."""
        for finding in doctor.local(settings):
            if finding.failed:
                raise SettingsError(f"{finding.name}: {finding.fix}.")
        self._settings = settings
        self._database = database
        self._clock = clock
        self._elapsed = elapsed
        self._connection = PlatformLink("Slack", self._connect, sleep)
        self._sleep = sleep
        self._streams: WeakSet[SlackStream] = WeakSet()
        self._received: float | None = None  # the last signed request, of ``elapsed``
        self._strangers: set[str] = set()  # workspaces where Nod is not installed, as logged
        self._started: datetime | None = None
        self._with_others = False
        self._unsure: dict[tuple[SlackPlace, str], datetime] = {}
        """Since when it is open whether something was posted, by its place and key."""
        self._workspaces = Workspaces(settings, database, clock)
        self._sessions = Sessions(self._workspaces)
        self._threads = FollowedThreads(database, clock)
        self._events: Events | None = None
        self._presses: SlackPresses | None = None
        self._homes: Homes | None = None
        self._socket: Socket | None = None
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
            authorize=self._workspaces,
            oauth_flow=oauth_flow(self._settings, self._database, self._clock, client),
        )
        app.middleware(self._take_in)
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

        Raises SettingsError when Slack does not accept a token.
        """
        self._started = self._clock()
        self._with_others = others is not None
        self._workspaces.moves.connect(inbox, others)
        if others is not None:
            self._workspaces.waits.share(others)
        self._homes = Homes(self._workspaces, self._database, lookup, self._clock)
        self._presses = SlackPresses(self._workspaces, self._threads, inbox, lookup)
        self._events = Events(self._workspaces, self._sessions, self._homes, self._threads, inbox, lookup)
        token = self._settings.slack_app_token
        if token is not None and receives:
            secret = token.get_secret_value()
            self._socket = Socket(self._app, self._settings, secret, alone=others is None)
        await self._connection.open(_FIRST_TRY)

    async def _connect(self) -> str | None:
        """Try once; gives what hindered it for now, raises SettingsError for what trying will not change."""
        setting = "SLACK_BOT_TOKEN"
        try:
            await self._workspaces.open()
            await self._workspaces.moves.load()
            if self._socket is not None:
                setting = "SLACK_APP_TOKEN"
                await self._socket.open()
        except ChannelError as error:
            code = code_behind(error)
            if code is None or passes(code):
                return error.message
            raise SettingsError(f"{setting}: Slack refused it ({code}). {_MENDS[setting]}") from error
        if self._homes is not None:
            self._homes.changed()  # what changed right before a crash is made up for
        return None

    async def stop(self) -> None:
        await self._connection.close()
        await asyncio.gather(*(each.abandon() for each in list(self._streams)), return_exceptions=True)
        if self._socket is not None:
            await self._socket.close()
            self._socket = None
        for part in (self._events, self._homes, self._sessions, self._workspaces):
            if part is not None:
                await part.close()
        self._events = self._presses = self._homes = None

    def routes(self) -> list[Route]:
        """Give what the bot's server mounts: signed events where Socket Mode is off, and the install flow."""
        routes = []
        if self._settings.slack_app_token is None and self._settings.slack_signing_secret is not None:
            routes.append(Route(EVENTS_PATH, self._receive, methods=["POST"]))
        if self._app.oauth_flow is not None and self._settings.slack_client_id:
            routes += [Route(path, self._answer, methods=["GET"]) for path in (INSTALL_PATH, REDIRECT_PATH)]
        return routes

    async def _receive(self, request: Request) -> Response:
        """Take what is signed and readable; anyone can send the rest, so it costs neither work nor a log."""
        secret, body = self._settings.slack_signing_secret, await request.body()
        if secret is None or not is_signed(secret.get_secret_value(), body, request.headers):
            return Response(status_code=HTTPStatus.UNAUTHORIZED)
        if not is_readable(body, request.headers.get("content-type", "")):
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        self._received = self._elapsed()
        return await self._answer(request)

    async def _answer(self, request: Request) -> Response:
        return await AsyncSlackRequestHandler(self._app).handle(request)

    async def _take_in(
        self,
        body: dict[str, Any],
        next: Callable[[], Awaitable[None]],  # noqa: A002
    ) -> BoltResponse | None:
        """Handle every event before bolt would acknowledge it; what people press goes to the listeners.

        Bolt answers 404 to what no listener takes, so the rest is answered here.
        """
        kind = body.get("type")
        if kind in _PRESSED or "command" in body:
            await next()
            return None
        if kind == "event_callback":
            if self._events is None or self._workspaces.connecting:
                raise ChannelError("the Slack channel is not connected")
            workspace = await self._workspaces.find_named(body)
            if workspace is not None:
                await self._events.take_in(self._read(body, workspace), workspace.team)
            else:
                self._log_stranger(body)
        elif kind == "app_rate_limited":
            since = body.get("minute_rate_limited")
            log.warning(
                "Slack holds events back: too many came within an hour", team=body.get("team_id"), since=since
            )
        elif kind in _SHORTCUTS and self._events is not None:
            await self._events.refuse_shortcut(body)
        else:
            log.warning("Slack sent what Nod has no use for", kind=str(kind)[:80])
        return BoltResponse(status=200, body="")

    def _read(self, body: dict[str, Any], workspace: Workspace) -> dict[str, Any]:
        """Return what Slack sent with the ids by which Nod knows the channels."""
        said: dict[str, Any] = self._workspaces.moves.from_slack(workspace.team, body)
        return said

    def _log_stranger(self, body: Mapping[str, Any]) -> None:
        named = ", ".join(list_installation_ids(body))[:80]
        if named not in self._strangers and len(self._strangers) < _MOST_STRANGERS:
            self._strangers.add(named)
            log.warning("Slack sends events of a workspace where Nod is not installed", workspace=named)

    async def _take_click(self, ack: Ack, body: dict[str, Any], action: dict[str, Any], respond: Any) -> None:
        await ack()
        workspace = await self._workspaces.find_named(body)
        if self._presses is not None and workspace is not None:
            await self._presses.handle_click(self._read(body, workspace), action, workspace.team)
        elif "response_url" in body:
            await self._respond(respond, self._absent, "")

    async def _take_submission(self, ack: Ack, body: dict[str, Any], view: dict[str, Any]) -> None:
        workspace = await self._workspaces.find_named(body)
        if self._presses is not None and workspace is not None:
            said = self._read(body, workspace)
            await ack(**await self._presses.handle_submit(said, view, workspace.team))
        else:
            await ack(response_action="update", view=screens.last_word("Not done", self._absent))

    @property
    def _absent(self) -> str:
        """The refusal of a request from a workspace without a known installation."""
        if self._workspaces.connecting:
            return _CONNECTING
        return _NOT_INSTALLED

    async def _take_command(self, ack: Ack, body: dict[str, Any], respond: Any) -> None:
        await ack()
        words, workspace = BROKEN, None
        try:
            workspace = await self._workspaces.find_named(body)
            if workspace is None:
                words = self._absent
            elif self._events is not None:
                body = self._read(body, workspace)
                words = (await self._events.command(body, workspace.team)).text or "Done."
        except Exception:
            log.exception("command failed")
        if await self._respond(respond, words, workspace.team if workspace else "") or workspace is None:
            return
        try:
            place = SlackPlace(workspace.team, str(body["channel_id"]))
            await posting.tell_person(self._workspaces, place, str(body["user_id"]), words)
        except Exception:
            log.exception("command answer not delivered")

    async def _respond(self, respond: Any, words: str, team: str) -> bool:
        """Answer one person by the address that came with their request; False where it was not taken."""
        try:
            answered = await respond(
                text=text.notification(words, 2000),
                blocks=[b.markdown(words, team)],
                response_type="ephemeral",
                replace_original=False,
            )
        except (SlackClientError, aiohttp.ClientError, OSError) as error:
            log.warning("an answer to one person was not sent", why=str(error))
            return False
        if answered.status_code != HTTPStatus.OK:
            log.warning("Slack did not take an answer to one person", why=answered.body)
        return bool(answered.status_code == HTTPStatus.OK)

    def hearing(self) -> Hearing:
        """Return the health of the connection.

        Slack answers pings on its socket; over HTTP it calls only when there is something to tell.
        """
        if self._connection.refused:
            return Hearing(fault="Slack refused a token; the log says which")
        if self._workspaces.is_refused:
            return Hearing(fault="Slack no longer accepts SLACK_BOT_TOKEN")
        if not self._connection.up:
            return Hearing(fault="it isn't connected")
        if self._socket is not None and self._socket.contested:
            return Hearing(fault="Slack counts another connection of this app. Give each program its own app")
        if self._socket is not None:
            return heard(self._socket.heard, self._elapsed(), told=False)
        return heard(self._received, self._elapsed(), told=True)

    def open_stream(self, address: Address, requester: Actor) -> Stream:
        place = SlackPlace.of(address)
        stream = SlackStream(
            self._workspaces,
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
        async with within(_GROUP_PATIENCE):
            return await self._workspaces.group(place.team, place.channel)

    async def standing(self, actor: Actor, address: Address) -> Membership | None:
        async with within(_GROUP_PATIENCE):
            return await self._workspaces.standing(SlackPlace.of(address).team, actor)

    async def is_shared(self, address: Address) -> bool:
        place = SlackPlace.of(address)
        client = await self._workspaces.client(place.team)
        try:
            async with within(_GROUP_PATIENCE):
                with translate_errors():
                    found = await client.conversations_info(channel=await posting.channel_of(client, place))
        except TimeoutError:
            raise ChannelError("Slack did not say in time who reads along there.") from None
        return bool((found.get("channel") or {}).get("is_ext_shared"))

    async def time_zone(self, actor: Actor, address: Address) -> tzinfo | None:
        return await self._workspaces.time_zone(SlackPlace.of(address).team, actor)

    async def post(self, address: Address, markdown: str, after: int = 0) -> None:
        posts = in_few(text.split(text.neutralise(markdown)), markdown)
        await post_each(posts, after, partial(self._post_one, address))

    async def _post_one(self, address: Address, post: str | FullText) -> None:
        """Post one of the posts of a text."""
        place = SlackPlace.of(address)
        if isinstance(post, FullText):
            await self._once(place, post.text, text.forms_of(text.neutralise(post.words)))
            await self.post_file(address, post.name, post.text)
            return
        try:
            await self._once(place, post, text.forms_of(post))
        except NotDeliverable as error:
            if code_behind(error) not in CONTENTS:
                raise
            await self._once(place, f"file of {post}", text.forms_of(_AS_A_FILE))
            await self.post_file(address, FullText(post).name, post)

    async def _once(
        self, place: SlackPlace, key: str, shown: Sequence[Message], since: datetime | None = None
    ) -> tuple[SlackPosted, bool]:
        """Post the first of these that Slack takes; gives what stands there, and whether that is new.

        With ``since``, and where an earlier post of the same ``key`` was left without an answer, what may
        have arrived is looked for first.
        """
        with translate_errors():
            client = await self._workspaces.client(place.team)
            since = self._unsure.get((place, key), since)
            if since is not None:
                there = await posting.find(self._workspaces, place, key, since)
                if there is not None:
                    self._unsure.pop((place, key), None)
                    return there, False
            self._unsure.setdefault((place, key), self._clock())
            post = partial(_post_quietly, client, place, metadata=posting.mark_of(key))
            try:
                posted = await _show_first_accepted(shown, post)
            except SlackApiError as error:
                if not maybe_done(error):
                    self._unsure.pop((place, key), None)
                raise
            self._unsure.pop((place, key), None)
            return SlackPosted(place.team, str(posted["channel"]), str(posted["ts"])), True

    async def post_card(self, address: Address, card: Card) -> str:
        place = SlackPlace.of(address)
        shown = _render_forms(card, place.team)
        return await self._post(place, card.proposal_id, shown, self._maybe_posted(card))

    def _maybe_posted(self, card: Card) -> datetime | None:
        """Return the time since which an earlier process may have posted this card, or None."""
        if card.asked_at is None or self._started is None:
            return None
        others_since = self._clock() - _SOON if self._with_others else self._started
        if card.asked_at < max(self._started, others_since):
            return card.asked_at
        return None

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:  # noqa: ARG002 - the copy knows its place
        copy = SlackPosted.parse(ref)
        await self._redraw(copy, _render_forms(card, copy.team))

    async def remind(self, address: Address, ref: str, markdown: str, people: Sequence[Actor]) -> None:
        """Write below the card, in its thread, with a link to it; mention those who are in this workspace."""
        place, card = SlackPlace.of(address), SlackPosted.parse(ref)
        named = " ".join(
            mention_of(found[1]) for found in map(user_of, people) if found and found[0] == place.team
        )
        with translate_errors():
            client = await self._workspaces.client(place.team)
            link = await client.chat_getPermalink(channel=card.channel, message_ts=card.ts)
            below = b.mrkdwn_block(f"{named} <{link['permalink']}|Show the card>".strip())
        link_below = {"type": "section", "text": below}
        plain = f"{named} {text.escape_prose(text.as_plain(markdown))}".strip()
        said = {"text": plain, "blocks": [b.markdown(markdown), link_below]}
        without = {"text": f"{named} {_LOOK}".strip(), "blocks": [link_below]}
        at = SlackPlace(card.team, card.channel, place.thread or card.ts)
        await self._once(at, markdown, [said, {"text": f"{plain} {link['permalink']}"}, without])

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:
        shown = [render_team(team).message, brief_team(team).message]
        if not ref:
            return await self._post(SlackPlace.of(address), f"team of {team.lead_id}", shown)
        await self._redraw(SlackPosted.parse(ref), shown)
        return ref

    async def _post(
        self, place: SlackPlace, key: str, shown: Sequence[Message], since: datetime | None = None
    ) -> str:
        """Post what will be redrawn, once; what stands there already is brought up to date."""
        there, new = await self._once(place, key, shown, since)
        if not new:
            await self._redraw(there, shown)
        return str(there)

    async def _redraw(self, copy: SlackPosted, shown: Sequence[Message]) -> None:
        with translate_errors():
            client = await self._workspaces.client(copy.team)
            await _show_first_accepted(shown, partial(client.chat_update, channel=copy.channel, ts=copy.ts))

    async def post_file(self, address: Address, name: str, content: str | bytes) -> None:
        place = SlackPlace.of(address)
        with translate_errors():
            client = await self._workspaces.client(place.team)
            await posting.upload(client, place, name, content)

    async def fetch_file(self, address: Address, ref: str, most: int) -> bytes:
        """Download a file by its id; Slack gives the address, which must be Slack's own."""
        with translate_errors():
            client = await self._workspaces.client(SlackPlace.of(address).team)
            found = (await client.files_info(file=ref)).get("file") or {}
        if found.get("is_external"):
            raise NotDeliverable("it is kept outside Slack; download it and attach it")
        api = urlsplit(str(self._settings.slack_api_url))
        where = str(found.get("url_private_download") or found.get("url_private") or "")
        if not where:
            raise NotDeliverable("Slack has it no longer, or keeps it elsewhere")
        return await download(where, most, {_FILES, f"{api.scheme}://{api.netloc}"}, str(client.token))

    async def changed(self) -> None:
        """Refresh everybody's App Home soon, wherever the proposal lives."""
        if self._homes is not None:
            self._homes.changed()


def _render_forms(card: Card, team: str) -> Sequence[Message]:
    return render(card, team).message, brief(card, team).message


async def _post_quietly(client: AsyncWebClient, place: SlackPlace, **what: Any) -> AsyncSlackResponse:
    """Post without previews; in the channel itself where the thread takes no reply."""
    what |= {"channel": place.channel, "unfurl_links": False, "unfurl_media": False}
    try:
        return await client.chat_postMessage(thread_ts=place.thread, **what)
    except SlackApiError as error:
        if place.thread is None or code_of(error) not in NO_REPLIES:
            raise
        return await client.chat_postMessage(**what)


async def _show_first_accepted(shown: Sequence[Message], show: Callable[..., Awaitable[T]]) -> T:
    """Show the first of these forms whose contents Slack does not refuse after all."""
    full, *other_forms = shown
    try:
        return await show(**full)
    except SlackApiError as error:
        if not other_forms or code_of(error) not in CONTENTS:
            raise
        log.warning("Slack refused what a message holds, another form follows", why=code_of(error))
    return await _show_first_accepted(other_forms, show)


async def _acknowledge(ack: Ack) -> None:
    await ack()
