"""The Slack channel: Nod's parts for Slack wired together, and the `Channel` that delivery uses.

``requests.py`` receives Slack's requests, over Socket Mode (a websocket, ``socket.py``) if SLACK_APP_TOKEN is
set. ``stream.py`` shows a turn, ``card.py`` renders cards, ``posts.py`` posts messages, and ``workspaces.py``
knows the workspaces where Nod is installed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import partial
from urllib.parse import urlsplit
from weakref import WeakSet

from starlette.routing import Route

from bot.channels.base import Hearing, Lookup, Stream, check_silence
from bot.channels.connecting import PlatformLink, download
from bot.channels.kinds import Platform
from bot.channels.slack import blocks, doctor, posting, text
from bot.channels.slack.card import render, render_briefly
from bot.channels.slack.client import limit_time
from bot.channels.slack.earlier_messages import ThreadReader
from bot.channels.slack.errors import CONTENT_CODES, code_behind, is_temporary, translate_errors
from bot.channels.slack.home import Homes
from bot.channels.slack.inbound import Events
from bot.channels.slack.people import SlackPeople
from bot.channels.slack.places import NAME, SlackPlace, SlackPosted, mention_of, user_of
from bot.channels.slack.posts import Message, Posts
from bot.channels.slack.presses import SlackPresses
from bot.channels.slack.program_messages import ProgramMessages
from bot.channels.slack.requests import RequestHandlers, SlackRequests
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.socket import Socket
from bot.channels.slack.stream import SlackStream
from bot.channels.slack.submits import ModalSubmits
from bot.channels.slack.team_blocks import brief_team, render_team
from bot.channels.slack.threads import FollowedThreads
from bot.channels.slack.user_groups import UserGroups
from bot.channels.slack.workspaces import Workspaces
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
_REMINDER_TEXT = "Look at this card."
_USUAL_POSTING_TIME = timedelta(seconds=5)
"""The time in which a process posts a new card. A process that has ended may have posted an older one."""
_AS_A_FILE_TEXT = "Slack doesn't take this text as a message. It is in the file."


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
        self._started: datetime | None = None
        self._has_peers = False  # True if other processes of this Nod may post, too
        self._workspaces = Workspaces(settings, database, clock)
        self._people = SlackPeople(self._workspaces, clock)
        self._user_groups = UserGroups(self._workspaces, clock)
        self._posts = Posts(self._workspaces, clock)
        self._sessions = Sessions(self._workspaces)
        self._threads = FollowedThreads(database, clock)
        self._events: Events | None = None
        self._homes: Homes | None = None
        self._socket: Socket | None = None
        self._requests = SlackRequests(settings, self._workspaces, database, clock, elapsed)

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
        self._requests.connect(
            RequestHandlers(
                self._events,
                SlackPresses(self._workspaces, self._people, self._threads, inbox, lookup),
                ModalSubmits(self._people, inbox, lookup),
            )
        )
        token = self._settings.slack_app_token
        if token is not None and receives:
            secret = token.get_secret_value()
            self._socket = Socket(self._requests.app, self._settings, secret, is_only_process=others is None)
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
        self._requests.disconnect()
        self._events = self._homes = None

    def routes(self) -> list[Route]:
        return self._requests.routes()

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
        return check_silence(self._requests.last_request_at, self._elapsed(), may_be_silent=True)

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
            await posting.check_place(await self._workspaces.get_client(place.team), place)

    async def look_up(self, group: str) -> UserGroup:
        place = SlackPlace.of(Address.parse(group))
        async with limit_time(_LOOKUP_SECONDS):
            return await self._user_groups.load_group(place.team, place.channel)

    async def standing(self, actor: Actor, address: Address) -> Membership | None:
        async with limit_time(_LOOKUP_SECONDS):
            return await self._people.load_membership(SlackPlace.of(address).team, actor)

    async def is_shared(self, address: Address) -> bool:
        place = SlackPlace.of(address)
        client = await self._workspaces.get_client(place.team)
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
        await self._posts.post_once(SlackPlace.of(address), f"{link.url} {markdown}", [with_button, *as_text])

    async def _post_one(self, address: Address, part: str | FullText) -> None:
        """Post a text that fits one message, or a `FullText`; a text that Slack refuses becomes a file."""
        place = SlackPlace.of(address)
        if isinstance(part, FullText):
            await self._posts.post_once(
                place, part.text, text.list_message_forms(text.neutralise(part.message_text))
            )
            await self.post_file(address, part.name, part.text)
            return
        try:
            await self._posts.post_once(place, part, text.list_message_forms(part))
        except NotDeliverable as error:
            if code_behind(error) not in CONTENT_CODES:
                raise
            await self._posts.post_once(place, f"file of {part}", text.list_message_forms(_AS_A_FILE_TEXT))
            await self.post_file(address, FullText(part).name, part)

    async def post_offers(self, address: Address, markdown: str, offers: Sequence[CommandOffer]) -> None:
        """Post a text and a line with a button for each command."""
        place = SlackPlace.of(address)
        lines_with_button = [
            blocks.offer(number, offer.description, offer.label, make_offer_mark(offer.text))
            for number, offer in enumerate(offers, 1)
        ]
        plain_lines = [f"{number}. {offer.description}" for number, offer in enumerate(offers, 1)]
        plain = text.escape_prose("\n".join([text.as_plain(markdown), *plain_lines]))
        key = "\n".join([markdown, *(offer.text for offer in offers)])
        forms: list[Message] = [
            {"text": plain, "blocks": [blocks.markdown(markdown), *lines_with_button]},
            {"text": plain},
        ]
        await self._posts.post_once(place, key, forms)

    async def post_card(self, address: Address, card: Card) -> str:
        place = SlackPlace.of(address)
        forms = _render_forms(card, place.team)
        since = self._possibly_posted_since(card)
        return await self._posts.post_redrawable(place, card.proposal_id, forms, since)

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
        await self._posts.redraw(copy, _render_forms(card, copy.team))

    async def remind(self, address: Address, ref: str, markdown: str, people: Sequence[Actor]) -> None:
        """Post a reminder in the card's thread, with a link to it. Mention the people of this workspace."""
        place = SlackPlace.of(address)
        card = SlackPosted.parse(ref)
        accounts = [account for account in map(user_of, people) if account is not None]
        mentions = " ".join(mention_of(user) for team, user in accounts if team == place.team)
        with translate_errors():
            client = await self._workspaces.get_client(place.team)
            link = await client.chat_getPermalink(channel=card.channel, message_ts=card.ts)
        permalink = link["permalink"]
        mrkdwn = blocks.mrkdwn_block(f"{mentions} <{permalink}|Show the card>".strip())
        link_block = {"type": "section", "text": mrkdwn}
        plain = f"{mentions} {text.escape_prose(text.as_plain(markdown))}".strip()
        full = {"text": plain, "blocks": [blocks.markdown(markdown), link_block]}
        link_only = {"text": f"{mentions} {_REMINDER_TEXT}".strip(), "blocks": [link_block]}
        thread = SlackPlace(card.team, card.channel, place.thread or card.ts)
        await self._posts.post_once(thread, markdown, [full, {"text": f"{plain} {permalink}"}, link_only])

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:
        forms = [render_team(team).message, brief_team(team).message]
        if not ref:
            return await self._posts.post_redrawable(SlackPlace.of(address), f"team of {team.lead_id}", forms)
        await self._posts.redraw(SlackPosted.parse(ref), forms)
        return ref

    async def post_file(self, address: Address, name: str, content: str | bytes) -> None:
        place = SlackPlace.of(address)
        with translate_errors():
            client = await self._workspaces.get_client(place.team)
            await posting.upload(client, place, name, content)

    async def fetch_file(self, address: Address, ref: str, most: int) -> bytes:
        """Download a file of at most ``most`` bytes by its id.

        Slack gives the URL, which must be Slack's own.
        """
        with translate_errors():
            client = await self._workspaces.get_client(SlackPlace.of(address).team)
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
