"""The Discord channel: interactions come in by HTTP at `INTERACTIONS`, everything else goes out by REST.

An interaction is a command, or a press of a button, or a submitted modal; ``inbound.py`` parses them and
``presses.py`` handles presses and modals. Nod holds no connection to Discord's gateway, which would bring the
messages of channels, so it only reads the text of commands. Discord waits three seconds for the answer to an
interaction: slower work is acknowledged first and followed up (`DiscordChannel._follow_up`). Sources are
named in ``inbound.py``, ``places.py`` and ``transport.py``.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.channels.base import Hearing, Lookup, check_silence
from bot.channels.connecting import Background, PlatformLink, download
from bot.channels.discord import doctor
from bot.channels.discord.card import make_link_row, make_offer_rows, render
from bot.channels.discord.inbound import (
    ASK_WORD,
    COMMAND,
    COMMANDS,
    COMPONENT,
    EPHEMERAL,
    Interaction,
    is_signed,
)
from bot.channels.discord.places import (
    ACKNOWLEDGE_SECONDS,
    CHANNEL_NAME,
    INTERACTIONS,
    MAX_CONTENT_UNITS,
    DiscordPlace,
    is_guest,
    ref_of,
)
from bot.channels.discord.presses import DiscordPresses, Display
from bot.channels.discord.reading import find_names, write_addresses_as_mentions
from bot.channels.discord.stream import DiscordStream
from bot.channels.discord.text import CARD_RENDERER, cut_to_units, literal, neutralise, split
from bot.channels.discord.transport import PLAIN, DiscordRefusal, DiscordRest, Json
from bot.channels.kinds import Platform
from bot.channels.streamed_message import limit_posts, post_each
from bot.domain.attachments import format_name
from bot.domain.cards import Card
from bot.domain.chat import Address, Answer, Clock, Command, Inbox, LinkButton, Message
from bot.domain.hooks import CommandOffer
from bot.domain.jobs import Peers
from bot.domain.people import Actor, Membership
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, NotDeliverable, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.telemetry.logs import logger

_BROKEN_TEXT = "Something went wrong on my side. Nothing was decided. Try again."
_STRANGER_TEXT = (
    "I'm not enabled for this server or your account. An admin can name the server in DISCORD_SERVERS."
)
_UNSURE_TEXT = "I can't check who you are right now. Try again."
_SLOW_TEXT = "That took too long. Press again."
_ASK_HELP_TEXT = "- `/nod ask TEXT`: ask me something"
_PING_TYPE = 1  # the type of an interaction by which Discord checks the endpoint
# types of responses: interactions/receiving-and-responding
_PONG = 1
_NEW_MESSAGE = 4
_DEFERRED_MESSAGE = 5  # a message will follow; Discord shows that Nod is thinking
_DEFERRED_UPDATE = 6  # nothing changes for now
_UPDATE = 7  # the message with the pressed button changes
_OPEN_MODAL = 9
_COMMAND_REFUSED_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
_NONCE_CHARS = 25  # the most that Discord takes
_FILE_ORIGINS = ("https://cdn.discordapp.com", "https://media.discordapp.net")

log = logger(__name__)


class DiscordChannel(Platform):
    """The channel for Discord; `Channel` and `Poster` describe its methods.

    Raises SettingsError if a setting is missing or wrong.
    """

    name = CHANNEL_NAME

    def __init__(
        self,
        settings: Settings,
        database: Database,  # noqa: ARG002 - other platforms keep rows of their own
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        for finding in doctor.check_settings(settings):
            if finding.failed:
                raise SettingsError(f"{finding.name}: {finding.fix}")
        self._settings = settings
        self._clock = clock
        self._elapsed = elapsed
        self._rest = DiscordRest(settings, sleep, elapsed)
        self._connection = PlatformLink("Discord", self._publish, sleep)
        self._background = Background("discord answer not sent")
        self._inbox: Inbox | None = None
        self._lookup: Lookup | None = None
        self._last_request_at: float | None = None  # time of the last signed request, by ``elapsed``

    async def start(
        self,
        inbox: Inbox,
        lookup: Lookup,
        *,
        receives: bool = True,
        others: Peers | None = None,
    ) -> None:
        """Publish the commands; while Discord can't be reached, keep trying in the background.

        Raises SettingsError when Discord does not know the token or the application.
        """
        self._inbox = inbox
        self._lookup = lookup
        if others is not None:
            self._rest.waits.share(others)
        if receives:
            await self._connection.open()

    async def _publish(self) -> str | None:
        path = f"/applications/{self._settings.discord_application_id}/commands"
        try:
            await self._rest.call("PUT", path, COMMANDS)
        except ChannelError as error:
            if isinstance(error, DiscordRefusal) and error.status in _COMMAND_REFUSED_STATUSES:
                raise SettingsError(f"DISCORD_BOT_TOKEN, DISCORD_APPLICATION_ID: {error.message}") from error
            return error.message
        return None

    async def stop(self) -> None:
        """Finish the interactions in progress, then disconnect."""
        self._inbox = None
        await self._connection.close()
        await self._background.close(ACKNOWLEDGE_SECONDS)
        await self._rest.close()

    def routes(self) -> Sequence[Route]:
        return [Route(INTERACTIONS, self._receive, methods=["POST"])]

    def hearing(self) -> Hearing:
        """Return the health of the connection. Discord calls only when there is something to tell."""
        if self._connection.has_given_up or self._rest.is_token_refused:
            return Hearing(fault="Discord refused the token; the log says more")
        return check_silence(self._last_request_at, self._elapsed(), may_be_silent=True)

    async def _receive(self, request: Request) -> Response:
        """Answer one interaction in time. Slower work is followed up afterwards."""
        body = await request.body()
        if not is_signed(self._settings.discord_public_key, body, request.headers, self._clock()):
            return Response(status_code=HTTPStatus.UNAUTHORIZED)
        self._last_request_at = self._elapsed()
        try:
            payload = json.loads(body)
            if payload["type"] == _PING_TYPE:
                return JSONResponse({"type": _PONG})
            interaction = Interaction.parse(payload)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        if self._inbox is None or self._lookup is None:
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        task = self._background.start(self._handle(interaction, self._inbox, self._lookup))
        await asyncio.wait({task}, timeout=ACKNOWLEDGE_SECONDS)
        return JSONResponse(self._make_answer(interaction, task))

    def _make_answer(self, interaction: Interaction, task: "asyncio.Task[Display]") -> Json:
        """Return the immediate answer to an interaction; a slow or long response follows it.

        ``task`` handles the interaction, and may not be done yet.
        """
        display = task.result() if task.done() else None
        is_command = interaction.kind == COMMAND
        texts = _split_response(display, interaction) if display else []
        if display is None or display.file or len(texts) > 1:
            self._background.start(self._follow_up(interaction, task, is_awaited=is_command))
            if is_command:
                return {"type": _DEFERRED_MESSAGE, "data": {"flags": EPHEMERAL}}
            return {"type": _DEFERRED_UPDATE}
        if display.modal:
            return {"type": _OPEN_MODAL, "data": display.modal}
        if not texts:
            return {"type": _DEFERRED_UPDATE}
        data = _make_message(replace(display, text=texts[0]))
        updates = display.replaces_message and interaction.kind == COMPONENT
        return {"type": _UPDATE if updates else _NEW_MESSAGE, "data": data}

    async def _handle(self, interaction: Interaction, inbox: Inbox, lookup: Lookup) -> Display:
        try:
            refusal = await self._find_refusal(interaction)
            if refusal:
                return Display(refusal)
            if interaction.kind != COMMAND:
                return await DiscordPresses(inbox, lookup).handle(interaction)
            return await self._take_command(interaction, inbox, lookup)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            log.warning("discord interaction not readable", why=repr(error))
        except Exception:
            log.exception("discord interaction failed")
        return Display(_BROKEN_TEXT)

    async def _find_refusal(self, interaction: Interaction) -> str:
        """Return why Nod does not work for this person here; empty if it does.

        It works for people in the configured servers, and in private for members of these.
        """
        if not interaction.place.person:
            if interaction.place.server in self._settings.discord_servers:
                return ""
            return _STRANGER_TEXT
        try:
            standing = await self.standing(interaction.actor, interaction.place.address)
        except ChannelError as error:
            if isinstance(error, NotDeliverable):
                return _STRANGER_TEXT
            return _UNSURE_TEXT
        if standing is Membership.MEMBER:
            return ""
        return _STRANGER_TEXT

    async def _take_command(self, interaction: Interaction, inbox: Inbox, lookup: Lookup) -> Display:
        raw_text, known_names = interaction.read_raw_text()
        names = await find_names(self._rest, interaction.place.server, raw_text, known_names)
        name, words = interaction.read_command(names)
        first_word, _, request = words.partition(" ")
        if name == "nod" and first_word.lower() == ASK_WORD:
            return await self._take_request(interaction, request.strip(), inbox)
        reply = await inbox(
            Command(
                interaction.actor,
                name,
                words,
                interaction.place.address,
                private=bool(interaction.place.person),
                names=interaction.channel_names,
            )
        )
        is_help = (name, words) == ("nod", "help")
        help_lines = [_ASK_HELP_TEXT, lookup.notice] if is_help else []
        text, link = reply.split_link()
        return Display("\n".join(filter(None, [*help_lines, text])) or "Done.", make_link_row(link))

    async def _take_request(self, interaction: Interaction, request: str, inbox: Inbox) -> Display:
        """Hand in the text of ``/nod ask TEXT`` as a message, and show it to all in the channel."""
        files = interaction.files
        if not request and not files:
            return Display("Write what you want after `ask`.")
        message = Message(
            interaction.place.address,
            interaction.actor,
            request,
            interaction.id,
            private=bool(interaction.place.person),
            names=interaction.channel_names,
            files=files,
        )
        reply = await inbox(message)
        if reply.answer not in (Answer.ACCEPTED, Answer.DUPLICATE):
            return Display(reply.text)
        file_names = "".join(f"\n`{literal(format_name(file.name))}`" for file in files)
        echo = neutralise(f"**{literal(interaction.actor.label)}:** {request}{file_names}")
        return Display(cut_to_units(echo, MAX_CONTENT_UNITS), is_public=True)

    async def _follow_up(
        self, interaction: Interaction, task: "asyncio.Task[Display]", *, is_awaited: bool
    ) -> None:
        """Send a slow or long response, whose last message has the buttons and the file.

        ``is_awaited``: Discord shows that an answer is still coming, and the first message takes its place.
        """
        display = await task
        if display.modal:  # Discord opens a modal only as the immediate answer
            display = replace(display, text=_SLOW_TEXT)
        texts = _split_response(display, interaction) or (["Done."] if is_awaited else [])
        file = {"file": ("everything.txt", display.file)} if display.file else {}
        for number, text in enumerate(texts):
            is_last = number == len(texts) - 1
            rows = display.rows if is_last else ()
            message = _make_message(replace(display, text=text, rows=rows, is_public=False))
            replaces = number == 0 and (is_awaited or display.replaces_message)
            attached = file if is_last else {}
            await self._rest.answer(interaction.token, message, original=replaces, **attached)

    def open_stream(self, address: Address, requester: Actor) -> DiscordStream:  # noqa: ARG002 - as in `Channel`
        return DiscordStream(self._rest, self._clock, DiscordPlace.of(address))

    async def check_place(self, address: Address) -> None:
        await self._rest.check_may_post(DiscordPlace.of(address))

    async def standing(self, actor: Actor, address: Address) -> Membership | None:
        """Return the account's membership in the server of the address; None for an account without one.

        In direct messages, it is the highest membership in any of the configured servers. Raises ChannelError
        if Discord can't say for one server and no other server knows the account.
        """
        place = DiscordPlace.of(address)
        if not actor.key.isdecimal():
            return None
        servers = (place.server,) if place.server else self._settings.discord_servers
        membership: Membership | None = None
        fault: ChannelError | None = None
        for server in servers:
            try:
                member = await self._rest.load_member(server, actor.key)
                if member is not None:
                    membership = Membership.GUEST if is_guest(member) else Membership.MEMBER
            except ChannelError as error:
                fault = error  # another server may know the account
            if membership is Membership.MEMBER:
                return membership
        if fault is not None and membership is None:
            raise fault
        return membership

    async def post(self, address: Address, markdown: str, after: int = 0) -> None:
        place = DiscordPlace.of(address)
        posts = limit_posts(split(markdown), markdown)
        await post_each(posts, after, lambda post: self._rest.post_text(place, post))

    async def post_link(self, address: Address, markdown: str, link: LinkButton) -> None:
        await self._rest.post_text(DiscordPlace.of(address), markdown, make_link_row(link))

    async def fetch_file(self, address: Address, ref: str, most: int) -> bytes:  # noqa: ARG002 - as in `Poster`
        api = urlsplit(str(self._settings.discord_api_url))
        return await download(ref, most, {*_FILE_ORIGINS, f"{api.scheme}://{api.netloc}"})

    async def post_offers(self, address: Address, markdown: str, offers: Sequence[CommandOffer]) -> None:
        """Post a text and a numbered line for each command, with their buttons below."""
        place = DiscordPlace.of(address)
        lines = [f"{number}. {literal(offer.description)}" for number, offer in enumerate(offers, 1)]
        *first, last = split("\n".join([neutralise(markdown), *lines]), MAX_CONTENT_UNITS) or [""]
        for text in first:
            await self._rest.post(place, {"content": text, "flags": PLAIN})
        await self._rest.post(place, {"content": last, "flags": PLAIN, "components": make_offer_rows(offers)})

    async def post_card(self, address: Address, card: Card) -> str:
        """Post a card once, even if Discord's answer to an earlier attempt was lost.

        Discord knows the message of that attempt by its nonce, and returns it. If the message shows an older
        card, it is brought up to date.
        """
        message = render(card).message
        nonce = sha256(f"{address} {card.proposal_id}".encode()).hexdigest()[:_NONCE_CHARS]
        posted = await self._rest.post(DiscordPlace.of(address), message, nonce)
        shown = [embed.get("description") for embed in posted["embeds"]]
        if shown != [message["embeds"][0]["description"]]:  # it is the message of the earlier attempt
            await self._rest.edit(ref_of(posted), message)
        return ref_of(posted)

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:  # noqa: ARG002 - the copy knows
        await self._rest.edit(ref, render(card).message)

    async def remind(self, address: Address, ref: str, markdown: str, people: Sequence[Actor]) -> None:
        """Reply to the card; in a server, mention the people."""
        place = DiscordPlace.of(address)
        channel, _, message = ref.partition("/")
        user_ids = []
        if not place.person:
            user_ids = [actor.key for actor in people if actor.channel == CHANNEL_NAME]
        mentions = " ".join(f"<@{user_id}>" for user_id in user_ids)
        first, *further = split(markdown, MAX_CONTENT_UNITS - len(mentions) - 1) or [""]
        reference = {"channel_id": channel, "message_id": message}
        reply = {"content": f"{mentions} {first}".strip(), "flags": PLAIN, "message_reference": reference}
        await self._rest.post(place, reply | {"allowed_mentions": {"users": user_ids}})
        for text in further:
            await self._rest.post(place, {"content": text, "flags": PLAIN})

    async def post_file(self, address: Address, name: str, content: str | bytes) -> None:
        await self._rest.post(DiscordPlace.of(address), {}, file=(name, content))

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:
        message = {"embeds": [{"description": CARD_RENDERER.team(team, "/nod team")}]}
        if not ref:
            return ref_of(await self._rest.post(DiscordPlace.of(address), message))
        await self._rest.edit(ref, message)
        return ref

    async def changed(self) -> None:
        """Do nothing: Discord has no list of proposals."""


def _split_response(display: Display, interaction: Interaction) -> list[str]:
    """Split a response into messages. A private answer to a command mentions people in place of addresses."""
    texts = split(display.text)
    if display.is_public or interaction.kind != COMMAND:
        return texts
    return [write_addresses_as_mentions(text, interaction.place.server) for text in texts]


def _make_message(display: Display) -> Json:
    """Return the message with a response; only the person who acted sees it, unless ``is_public``."""
    flags = PLAIN if display.is_public else EPHEMERAL | PLAIN
    return {
        "content": display.text,
        "components": list(display.rows),
        "flags": flags,
        "allowed_mentions": {"parse": []},
    }
