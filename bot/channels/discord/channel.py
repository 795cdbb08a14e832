"""Discord as a channel: interactions come to `INTERACTIONS` on Nod's own server, the rest goes by REST.

There is no gateway, so Nod reads what people tell it by a command, and nothing else. Sources are named in
``inbound.py``, ``limits.py`` and ``transport.py``.
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

from bot.channels.base import Hearing, Lookup, heard
from bot.channels.connecting import Background, PlatformLink, download
from bot.channels.discord import doctor
from bot.channels.discord.card import render
from bot.channels.discord.inbound import (
    ASKING,
    COMMAND,
    COMMANDS,
    COMPONENT,
    EPHEMERAL,
    Interaction,
    is_signed,
)
from bot.channels.discord.places import (
    ACKNOWLEDGE,
    CONTENT,
    INTERACTIONS,
    NAME,
    DiscordPlace,
    is_guest,
    ref_of,
)
from bot.channels.discord.presses import DiscordPresses, Display
from bot.channels.discord.reading import find_names, with_mentions
from bot.channels.discord.stream import DiscordStream
from bot.channels.discord.text import OUTLINER, fit, literal, neutralise, split
from bot.channels.discord.transport import PLAIN, DiscordRefusal, DiscordRest, Json
from bot.channels.kinds import Platform
from bot.channels.streamed_message import in_few, post_each
from bot.domain.attachments import format_name
from bot.domain.cards import Card
from bot.domain.chat import Address, Answer, Clock, Command, Inbox, Message
from bot.domain.jobs import Peers
from bot.domain.people import Actor, Membership
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, NotDeliverable, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.telemetry.logs import logger

_BROKEN = "Something went wrong on my side. Nothing was decided. Try again."
_STRANGER = (
    "I'm not enabled for this server or your account. An admin can name the server in DISCORD_SERVERS."
)
_UNSURE = "I can't check who you are right now. Try again."
_SLOW = "That took too long. Press again."
_ASKING = "- `/nod ask TEXT`: ask me something"
_PING = 1
_FILES = ("https://cdn.discordapp.com", "https://media.discordapp.net")

log = logger(__name__)


class DiscordChannel(Platform):
    """Discord, both ways. Raises SettingsError when a setting is missing or wrong."""

    name = NAME

    def __init__(
        self,
        settings: Settings,
        database: Database,  # noqa: ARG002 - other platforms keep rows of their own
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        for finding in doctor.local(settings):
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
        self._received: float | None = None

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
        self._inbox, self._lookup = inbox, lookup
        if others is not None:
            self._rest.waits.share(others)
        if receives:
            await self._connection.open()

    async def _publish(self) -> str | None:
        path = f"/applications/{self._settings.discord_application_id}/commands"
        try:
            await self._rest.call("PUT", path, COMMANDS)
        except ChannelError as error:
            if isinstance(error, DiscordRefusal) and error.status in (401, 403, 404):
                raise SettingsError(f"DISCORD_BOT_TOKEN, DISCORD_APPLICATION_ID: {error.message}") from error
            return error.message
        return None

    async def stop(self) -> None:
        """Finish what was taken in, then disconnect."""
        self._inbox = None
        await self._connection.close()
        await self._background.close(ACKNOWLEDGE)
        await self._rest.close()

    def routes(self) -> Sequence[Route]:
        return [Route(INTERACTIONS, self._receive, methods=["POST"])]

    def hearing(self) -> Hearing:
        """Return the health of the connection. Discord calls only when there is something to tell."""
        if self._connection.refused or self._rest.refused:
            return Hearing(fault="Discord refused the token; the log says more")
        return heard(self._received, self._elapsed(), told=True)

    async def _receive(self, request: Request) -> Response:
        """Answer one interaction in time; what takes longer is told afterwards."""
        body = await request.body()
        if not is_signed(self._settings.discord_public_key, body, request.headers, self._clock()):
            return Response(status_code=HTTPStatus.UNAUTHORIZED)
        self._received = self._elapsed()
        try:
            raw = json.loads(body)
            if raw["type"] == _PING:
                return JSONResponse({"type": 1})
            call = Interaction.parse(raw)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        if self._inbox is None or self._lookup is None:
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        task = self._background.start(self._handle(call, self._inbox, self._lookup))
        await asyncio.wait({task}, timeout=ACKNOWLEDGE)
        return JSONResponse(self._answer(call, task))

    def _answer(self, call: Interaction, task: "asyncio.Task[Display]") -> Json:
        """Return the answer to an interaction, by type; what takes or says more follows it."""
        shown, pressed = task.result() if task.done() else None, call.kind != COMMAND
        pieces = _pieces(shown, call) if shown else []
        if shown is None or shown.file or len(pieces) > 1:
            self._background.start(self._follow(call, task, original=not pressed))
            if pressed:
                return {"type": 6}
            return {"type": 5, "data": {"flags": EPHEMERAL}}
        if shown.window:
            return {"type": 9, "data": shown.window}
        if not pieces:
            return {"type": 6}
        data = _message(replace(shown, words=pieces[0]))
        return {"type": 7 if shown.replaces and call.kind == COMPONENT else 4, "data": data}

    async def _handle(self, call: Interaction, inbox: Inbox, lookup: Lookup) -> Display:
        try:
            refusal = await self._refusal(call)
            if refusal:
                return Display(refusal)
            if call.kind != COMMAND:
                return await DiscordPresses(inbox, lookup).handle(call)
            return await self._command(call, inbox, lookup)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            log.warning("discord interaction not readable", why=repr(error))
        except Exception:
            log.exception("discord interaction failed")
        return Display(_BROKEN)

    async def _refusal(self, call: Interaction) -> str:
        """Return a refusal for people who neither write in a configured server nor are members of one."""
        if not call.place.person:
            if call.place.server in self._settings.discord_servers:
                return ""
            return _STRANGER
        try:
            standing = await self.standing(call.actor, call.place.address)
        except ChannelError as error:
            if isinstance(error, NotDeliverable):
                return _STRANGER
            return _UNSURE
        if standing is Membership.MEMBER:
            return ""
        return _STRANGER

    async def _command(self, call: Interaction, inbox: Inbox, lookup: Lookup) -> Display:
        marked, known = call.marked
        name, words = call.make_message(await find_names(self._rest, call.place.server, marked, known))
        first, _, rest = words.partition(" ")
        at, private = call.place.address, bool(call.place.person)
        if name != "nod" or first.lower() != ASKING:
            reply = await inbox(Command(call.actor, name, words, at, private, names=call.names))
            asking = [_ASKING, lookup.notice] if (name, words) == ("nod", "help") else []
            return Display("\n".join(filter(None, [*asking, reply.text])) or "Done.")
        if not rest.strip() and not call.files:
            return Display("Write what you want after `ask`.")
        words, files = rest.strip(), call.files
        reply = await inbox(Message(at, call.actor, words, call.id, private, names=call.names, files=files))
        if reply.answer not in (Answer.ACCEPTED, Answer.DUPLICATE):
            return Display(reply.text)
        named = "".join(f"\n`{literal(format_name(each.name))}`" for each in files)
        said = neutralise(f"**{literal(call.actor.label)}:** {words}{named}")
        return Display(fit(said, CONTENT), public=True)

    async def _follow(self, call: Interaction, task: "asyncio.Task[Display]", *, original: bool) -> None:
        """Tell what took longer, or more than one message; ``original``: an answer is waiting for it."""
        shown = await task
        if shown.window:
            shown = replace(shown, words=_SLOW)
        pieces = _pieces(shown, call) or (["Done."] if original else [])
        file = {"file": ("everything.txt", shown.file)} if shown.file else {}
        for piece in pieces:
            last = piece is pieces[-1]
            message = _message(replace(shown, words=piece, rows=shown.rows if last else (), public=False))
            first = piece is pieces[0] and (original or shown.replaces)
            await self._rest.answer(call.token, message, original=first, **(file if last else {}))

    def open_stream(self, address: Address, requester: Actor) -> DiscordStream:  # noqa: ARG002 - as in `Channel`
        return DiscordStream(self._rest, self._clock, DiscordPlace.of(address))

    async def check_place(self, address: Address) -> None:
        await self._rest.check(DiscordPlace.of(address))

    async def standing(self, actor: Actor, address: Address) -> Membership | None:
        """Return the account's membership in the conversation's server.

        In direct messages, the highest that it has in any of the configured servers.
        """
        place, found = DiscordPlace.of(address), None
        if not actor.key.isdecimal():
            return None
        fault: ChannelError | None = None
        for server in (place.server,) if place.server else self._settings.discord_servers:
            try:
                member = await self._rest.member(server, actor.key)
                if member is not None:
                    found = Membership.GUEST if is_guest(member) else Membership.MEMBER
            except ChannelError as error:
                fault = error
            if found is Membership.MEMBER:
                return found
        if fault is not None and found is None:
            raise fault
        return found

    async def post(self, address: Address, markdown: str, after: int = 0) -> None:
        place = DiscordPlace.of(address)
        posts = in_few(split(markdown), markdown)
        await post_each(posts, after, lambda each: self._rest.post_text(place, each))

    async def fetch_file(self, address: Address, ref: str, most: int) -> bytes:  # noqa: ARG002 - as in `Poster`
        api = urlsplit(str(self._settings.discord_api_url))
        return await download(ref, most, {*_FILES, f"{api.scheme}://{api.netloc}"})

    async def post_card(self, address: Address, card: Card) -> str:
        """Post a card once, also where the answer to it was lost: then it is brought up to date."""
        message = render(card).message
        nonce = sha256(f"{address} {card.proposal_id}".encode()).hexdigest()[:25]
        kept = await self._rest.post(DiscordPlace.of(address), message, nonce)
        if [each.get("description") for each in kept["embeds"]] != [message["embeds"][0]["description"]]:
            await self._rest.edit(ref_of(kept), message)
        return ref_of(kept)

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:  # noqa: ARG002 - the copy knows
        await self._rest.edit(ref, render(card).message)

    async def remind(self, address: Address, ref: str, markdown: str, people: Sequence[Actor]) -> None:
        """Reply to the card; in a server, name those who may decide."""
        place, (channel, _, message) = DiscordPlace.of(address), ref.partition("/")
        named = [each.key for each in people if each.channel == NAME and not place.person]
        mentions = " ".join(f"<@{person}>" for person in named)
        first, *more = split(markdown, CONTENT - len(mentions) - 1) or [""]
        reference = {"channel_id": channel, "message_id": message}
        reply = {"content": f"{mentions} {first}".strip(), "flags": PLAIN, "message_reference": reference}
        await self._rest.post(place, reply | {"allowed_mentions": {"users": named}})
        for piece in more:
            await self._rest.post(place, {"content": piece, "flags": PLAIN})

    async def post_file(self, address: Address, name: str, content: str | bytes) -> None:
        await self._rest.post(DiscordPlace.of(address), {}, file=(name, content))

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:
        message = {"embeds": [{"description": OUTLINER.team(team, "/nod team")}]}
        if not ref:
            return ref_of(await self._rest.post(DiscordPlace.of(address), message))
        await self._rest.edit(ref, message)
        return ref

    async def changed(self) -> None:
        """Do nothing: Discord has no list of proposals."""


def _pieces(shown: Display, call: Interaction) -> list[str]:
    """Split a text into messages; an answer to a command shows mentioned people by name."""
    pieces = split(shown.words)
    if shown.public or call.kind != COMMAND:
        return pieces
    return [with_mentions(each, call.place.server) for each in pieces]


def _message(shown: Display) -> Json:
    """Return the message for the one who acted, or for all where it is ``public``."""
    flags = PLAIN if shown.public else EPHEMERAL | PLAIN
    return {
        "content": shown.words,
        "components": list(shown.rows),
        "flags": flags,
        "allowed_mentions": {"parse": []},
    }
