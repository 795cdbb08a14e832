"""Events and slash commands from Slack to the inbox: what people said, and for whom.

Slack counts an event as delivered once it is acknowledged, so a message is in the database before that:
bolt's middleware calls `Events.take_in` and answers after it. Whatever fails there is answered with an error,
and Slack delivers again; the inbox stops the second delivery by its event id.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.base import Lookup
from bot.channels.connecting import Background
from bot.channels.slack import blocks as b
from bot.channels.slack.blocks import Block
from bot.channels.slack.home import Homes
from bot.channels.slack.manifest import PROMPTS
from bot.channels.slack.places import NAME, SlackPlace, actor_of
from bot.channels.slack.posting import tell
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.workspaces import Workspaces
from bot.domain.attachments import Upload
from bot.domain.chat import Answer, Clock, Command, Inbox, Message, Reply
from bot.domain.people import Actor
from bot.domain.text import forwarded, in_thread
from bot.errors import ChannelError
from bot.store import events
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)

_PROSE = frozenset({"decline"})  # words of `/approvals` that are followed by a reason, for people
_MOST_READ = 200  # messages of a thread
_MOST_NAMED = 10  # people in one text whose names are looked up
_LOOKING = 1.5  # seconds; Slack waits 3 for its acknowledgement
_GREETING = "I do the work and ask before I change anything. What do you need?"
_CORRECTIONS = frozenset({"message_changed", "message_deleted"})
_NO_SHORTCUTS = "I have no shortcuts. Write to me here, or mention me in a channel."
_EDITED = "I don't read edited messages. Send the change as a new message."
_DELETED = "I have read what you deleted. To stop me, press Slack's stop button in the thread."


_MOST_SHARED = 10  # forwarded messages in one
_DEEPEST = 8  # blocks in blocks
_AUTHORS = ("author_name", "author_subname", "service_name", "title")
_UNREAD = "(a message was sent that you can't read)"
_HEARD_SUBTYPES = frozenset({None, "file_share", "thread_broadcast", "me_message"})
_GROUP = re.compile(r"<!subteam\^([A-Z0-9]+)(?:\|([^<>]*))?>")
_USER = re.compile(r"<@([A-Z0-9]+)(?:\|([^<>]*))?>")
_CHANNEL = re.compile(r"<#([A-Z0-9]+)(?:\|([^<>]*))?>")
_SPECIAL = re.compile(r"<!(?:subteam\^[A-Z0-9]+\|@?)?([^<>|^]+)(?:\^[^<>|]*)?(?:\|([^<>]*))?>")
_UNNAMED = frozenset({"privategroup", "directmessage"})  # what Slack writes in place of a name
_LINK = re.compile(r"<((?:https?|mailto|tel):[^<>|]+)(?:\|([^<>]*))?>")


@dataclass(frozen=True, slots=True)
class Said:
    """A person's message; ``addressed`` when it is for the bot by itself (a DM or a mention)."""

    place: SlackPlace
    user: str
    teams: tuple[str, ...]  # whose account Slack says that is
    text: str
    event_id: str
    addressed: bool
    in_thread: bool
    ts: str = ""
    shared: tuple[tuple[str, str], ...] = ()  # what others wrote and this person passes on: author and text
    files: tuple[Upload, ...] = ()


def said_in(body: Mapping[str, Any], team: str, bot_user: str) -> Said | None:
    """Read an Events API body; None for what is not a person talking (edits, bots, joins, ourselves)."""
    event = body.get("event") or {}
    kind, user = event.get("type"), event.get("user")
    if kind not in ("message", "app_mention") or event.get("subtype") not in _HEARD_SUBTYPES:
        return None
    if not user or user == bot_user or event.get("bot_id") or event.get("hidden") or event.get("edited"):
        return None
    channel, ts = event.get("channel"), event.get("ts")
    if not (channel and ts and body.get("event_id")):
        return None
    words = said_by(event)
    shared = tuple(_shared(event))
    private = event.get("channel_type") == "im" or str(channel).startswith("D")
    mentioned = bot_user in mentioned_users(words)
    if kind == "message" and mentioned and not private:
        return None  # the same words come as app_mention
    files = tuple(dict.fromkeys(_files(event)))
    profile = (event.get("user_profile") or {}).get("team")
    return Said(
        place=SlackPlace(team, channel, event.get("thread_ts") or ts),
        user=user,
        teams=tuple(str(each) for each in (*map(event.get, ("user_team", "source_team")), profile) if each),
        text=_without_bot(words, bot_user) or ("" if shared or files else _nothing(event)),
        event_id=body["event_id"],
        addressed=private or kind == "app_mention",
        in_thread=bool(event.get("thread_ts")),
        ts=str(ts),
        shared=shared,
        files=files,
    )


@dataclass(frozen=True, slots=True)
class Corrected:
    """An edit or a deletion of what a person said."""

    place: SlackPlace
    user: str
    deleted: bool
    as_mention: Mapping[str, Any] | None  # the message as it is now, where the bot is named in it since then


def corrected_in(body: Mapping[str, Any], team: str, bot_user: str) -> Corrected | None:
    """Read an Events API body; None for what changes no person's words (previews of links, ourselves)."""
    event = body.get("event") or {}
    now, before = event.get("message") or {}, event.get("previous_message") or {}
    user, ts = before.get("user"), before.get("ts")
    deleted = event.get("subtype") == "message_deleted" or now.get("subtype") == "tombstone"
    if not (user and ts and event.get("channel")) or user == bot_user or before.get("bot_id"):
        return None
    if not deleted and said_by(now) == said_by(before):
        return None
    place = SlackPlace(team, event["channel"], before.get("thread_ts") or ts)
    named = [bot_user in mentioned_users(said_by(each)) for each in (before, now)]
    mention = {**now, "type": "app_mention", "channel": place.channel, "edited": None}
    return Corrected(place, user, deleted, mention if named == [False, True] and not place.private else None)


def said_by(message: Mapping[str, Any]) -> str:
    """The words of a message, which some apps put into its blocks alone."""
    return str(message.get("text") or "") or "\n".join(_texts(message.get("blocks")))


def _nothing(event: Mapping[str, Any]) -> str:
    """What stands for a message without words: a bare mention greets, the rest can't be read."""
    return _UNREAD if not said_by(event) and (event.get("blocks") or event.get("attachments")) else "Hello"


def _shared(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Messages that were forwarded and cards of links: who wrote them and where, and their text."""
    for each in filter(_is_mapping, (event.get("attachments") or ())[:_MOST_SHARED]):
        said = str(each.get("text") or "") or "\n".join(_texts(each.get("message_blocks")))
        if not (said := said.strip() or str(each.get("fallback") or "").strip()):
            continue
        author = next((str(each[k]) for k in _AUTHORS if each.get(k)), "someone")
        where = f" in #{each['channel_name']}" if each.get("channel_name") else ""
        yield f"{author}{where}", said


def _files(event: Mapping[str, Any]) -> Iterator[Upload]:
    """What was attached, snippets included, and what came with a message that is passed on."""
    for holder in (event, *filter(_is_mapping, (event.get("attachments") or ())[:_MOST_SHARED])):
        for each in filter(_is_mapping, holder.get("files") or ()):
            size = each.get("size")
            name = str(each.get("name") or each.get("title") or "")
            if each.get("id"):
                yield Upload(name, ref=str(each["id"]), size=size if isinstance(size, int) else 0)


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text in blocks, in their order."""
    if depth > _DEEPEST:
        return
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, Mapping):
            continue
        if isinstance(each.get("text"), str) and each["text"].strip():
            yield each["text"]
        for part in ("text", "elements", "fields", "message", "blocks"):
            if not isinstance(each.get(part), str):
                yield from _texts(each.get(part), depth + 1)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _without_bot(words: str, bot_user: str) -> str:
    return re.sub(rf"^\s*<@{re.escape(bot_user)}(?:\|[^<>]*)?>[\s,:]*", "", words).strip()


def mentioned_users(text: str) -> list[str]:
    """List the ids of users named in a text, each once."""
    return list(dict.fromkeys(found[1] for found in _USER.finditer(text)))


def with_addresses(text: str, team: str, accounts: Mapping[str, Actor]) -> str:
    """Turn people, user groups and channels named Slack's way into what admin commands read: ``slack:T1/U2``.

    ``accounts`` are those of the people, by their ids; any other is one of ``team``.
    """
    text = _GROUP.sub(rf"{NAME}:{team}/\1", text)
    people = _USER.sub(lambda m: str(accounts.get(m[1]) or actor_of(team, m[1])), text)
    return _CHANNEL.sub(rf"{NAME}:{team}/\1", people)


def named_in(text: str, team: str) -> dict[str, str]:
    """What Slack calls the people and channels in a text, by account and address, where it says so."""
    each = (*_USER.finditer(text), *_GROUP.finditer(text))
    people = {f"{NAME}:{team}/{m[1]}": m[2] for m in each if m[2]}
    return people | {f"{NAME}:{team}/{m[1]}": f"#{m[2]}" for m in _CHANNEL.finditer(text) if m[2]}


def channel_named(team: str, channel: str, name: str) -> dict[str, str]:
    """The name of a channel, where Slack gives one: what only some may read is not named."""
    if not channel.startswith("C") or name in _UNNAMED or not name:
        return {}
    return {f"{NAME}:{team}/{channel}": f"#{name}"}


def readable(text: str, names: Mapping[str, str]) -> str:
    """Turn Slack's marks into words for the model: ``@Ana``, ``#general``, plain links."""
    text = _USER.sub(lambda m: f"@{names.get(m[1]) or m[2] or m[1]}", text)
    text = _CHANNEL.sub(lambda m: f"#{m[2] or m[1]}", text)
    text = _LINK.sub(lambda m: _bare(m[1]) if not m[2] or m[2] in m[1] else f"{m[2]} ({m[1]})", text)
    text = _SPECIAL.sub(lambda m: m[2] or ("@group" if m[1] == "subteam" else f"@{m[1]}"), text)
    return unescape(text)


def _bare(link: str) -> str:
    """An address or a number as people write it."""
    return link.removeprefix("mailto:").removeprefix("tel:")


ACTION = "nod:mentions"
_ONLY = "I answer in this thread only when I'm mentioned. Press again to change that."
_ALL = "I answer every message in this thread."


class FollowedThreads:
    """What people chose with the button below Nod's first answer in a thread."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def offer(self, place: SlackPlace) -> list[Block]:
        """The button, for the first answer in a thread among people; nothing below the others."""
        if place.private or place.thread is None or await self._state(place) is not None:
            return []
        await self._keep(place, only=False)
        return [b.actions(b.button("Only when mentioned", ACTION, "thread"))]

    async def listens(self, place: SlackPlace) -> bool:
        """Whether what does not mention Nod is for it, too."""
        state = await self._state(place)
        return state is None or not state["only"]

    async def pressed(self, place: SlackPlace) -> str:
        """Change it; gives what to tell the person."""
        only = await self.listens(place)
        await self._keep(place, only=only)
        return _ONLY if only else _ALL

    async def _state(self, place: SlackPlace) -> dict[str, bool] | None:
        return await self._database.read(events.dialogue, NAME, f"thread:{place.address.key}")

    async def _keep(self, place: SlackPlace, *, only: bool) -> None:
        key = f"thread:{place.address.key}"
        await self._database.write(events.keep_dialogue, NAME, key, {"only": only}, self._clock())


@dataclass(frozen=True, slots=True)
class Events:
    """Takes in what the Events API and slash commands deliver."""

    workspaces: Workspaces
    sessions: Sessions
    homes: Homes
    threads: FollowedThreads
    inbox: Inbox
    lookup: Lookup
    background: Background = field(
        default_factory=partial(
            Background, "Slack rejected a best-effort call", SlackClientError, aiohttp.ClientError, OSError
        )
    )

    async def take_in(self, body: Mapping[str, Any], team: str) -> None:
        """Keep what matters of an event before it is acknowledged; raises when it could not be kept."""
        event: Mapping[str, Any] = body.get("event") or {}
        match event.get("type"):
            case "message" if event.get("subtype") in _CORRECTIONS:
                await self._corrected(body, team)
            case "message" | "app_mention":
                await self._message(body, team)
            case "agent_session_stopped":
                await self._stopped(event, team)
            case "app_home_opened":
                self.background.start(self._opened(event, team))
            case "app_uninstalled":
                await self._ended(team, "the app was uninstalled")
            case "tokens_revoked" if (event.get("tokens") or {}).get("bot"):
                await self._ended(team, "the bot token was revoked")
            case _:
                pass  # subscribed for what Slack wants to see, nothing to do

    async def _ended(self, team: str, why: str) -> None:
        """Ask whether an installation ended: such an event may come after it began again.

        Should Slack not say so soon, its answer to the next call does.
        """
        try:
            async with asyncio.timeout(_LOOKING):
                await self.workspaces.check(team, why)
        except TimeoutError:
            log.info("Slack did not say whether an installation ended", team=team, why=why)

    async def _corrected(self, body: Mapping[str, Any], team: str) -> None:
        """Say that a correction was not read where Nod has the words; take in a mention that came by it."""
        workspace = await self.workspaces.find(team)
        found = corrected_in(body, team, workspace.bot_user) if workspace else None
        if found is None:
            return
        if await self._follows(found.place):
            words = _DELETED if found.deleted else _EDITED
            self.background.start(tell(self.workspaces, found.place, found.user, words))
        elif found.as_mention is not None:
            await self._message({**body, "event": found.as_mention}, team)

    async def _message(self, body: Mapping[str, Any], team: str) -> None:
        workspace = await self.workspaces.find(team)
        said = said_in(body, team, workspace.bot_user) if workspace else None
        follows = said is not None and said.in_thread and await self._follows(said.place)
        if workspace is None or said is None or not (said.addressed or follows):
            return
        actor, people = await asyncio.gather(
            self.workspaces.actor(team, said.user, *said.teams),
            self._people(team, mentioned_users(said.text)),
        )
        names = {user: each.name for user, each in people.items()}
        text = readable(said.text, names)
        for author, passed_on in reversed(said.shared):
            text = forwarded(author, readable(passed_on, {}), text)
        if said.in_thread and not follows:
            text = in_thread(await self._thread(said, workspace.bot_user), text)
        reply = await self.inbox(
            Message(
                address=said.place.address,
                actor=actor,
                text=text,
                event_id=said.event_id,
                private=said.place.private,
                names=named_in(said.text, team),
                files=said.files,
            )
        )
        if reply.answer is Answer.ACCEPTED:
            title = readable(said.text, names) or ", ".join(each.name for each in said.files)
            self.sessions.begin(said.place, title)
        elif reply.answer is not Answer.DUPLICATE and reply.text and (said.addressed or not actor.outside):
            self.background.start(tell(self.workspaces, said.place, said.user, reply.text))

    async def _thread(self, said: Said, bot_user: str) -> list[tuple[str, str]]:
        """Who wrote what in the thread before; nothing where it can't be read soon, for Slack waits."""
        team, place = said.place.team, said.place
        try:
            async with asyncio.timeout(_LOOKING):
                client = await self.workspaces.client(team)
                page = await client.conversations_replies(
                    channel=place.channel, ts=str(place.thread), latest=said.ts, limit=_MOST_READ
                )
                shown: list[dict[str, Any]] = page.get("messages") or []
                before = [m for m in shown if m.get("ts") != said.ts]
                users = dict.fromkeys(str(m["user"]) for m in before if m.get("user"))
                people = await self._people(team, users)
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError, ChannelError) as error:
            log.info("a thread could not be read", place=str(place.address), why=str(error))
            return []
        names = {user: each.name or user for user, each in people.items()} | {bot_user: "you"}
        return [
            (
                names.get(str(m.get("user"))) or str(m.get("username") or "someone"),
                readable(said_by(m), names),
            )
            for m in before
        ]

    async def _people(self, team: str, users: Iterable[str]) -> dict[str, Actor]:
        """The first few of these users, by their ids."""
        few = list(users)[:_MOST_NAMED]
        found = await asyncio.gather(*(self.workspaces.actor(team, user) for user in few))
        return dict(zip(few, found, strict=True))

    async def _follows(self, place: SlackPlace) -> bool:
        """Whether the bot takes part in this thread, and listens without a mention."""
        return await self.lookup.follows(place.address) and await self.threads.listens(place)

    async def _stopped(self, event: Mapping[str, Any], team: str) -> None:
        place = SlackPlace(team, event["channel"], event.get("thread_ts"))
        actor = await self.workspaces.actor(team, event.get("user") or "unknown")
        reply = await self.inbox(Command(actor, "stop", "", place.address, place.private))
        log.info("a person pressed stop", place=str(place.address), answer=reply.answer)

    async def _opened(self, event: Mapping[str, Any], team: str) -> None:
        user = event["user"]
        if event.get("tab") == "home":
            await self.homes.opened(team, user)
            return
        client = await self.workspaces.client(team)
        await client.assistant_threads_setSuggestedPrompts(
            channel_id=event["channel"],
            title=_GREETING,
            prompts=[{"title": title, "message": message} for title, message in PROMPTS],
        )

    async def refuse_shortcut(self, body: Mapping[str, Any]) -> None:
        """Tell a person that the shortcut they used, which Nod's manifest has not, does nothing."""
        workspace = await self.workspaces.find_named(body)
        user = str((body.get("user") or {}).get("id") or "")
        if workspace is not None and user:
            self.background.start(tell(self.workspaces, None, user, _NO_SHORTCUTS, workspace.team))

    async def command(self, body: Mapping[str, Any], team: str) -> Reply:
        """Hand on a slash command; it carries no thread, so its address is the channel."""
        place = SlackPlace(team, body["channel_id"])
        name = str(body.get("user_name") or "")
        actor = await self.workspaces.actor(team, body["user_id"], name=name)
        word, words = str(body["command"]).removeprefix("/"), str(body.get("text") or "")
        names = named_in(words, team)
        people = await self._people(team, mentioned_users(words))
        names |= {str(each): each.name for each in people.values() if each.name}
        if words.partition(" ")[0] not in _PROSE:
            words = with_addresses(words, team, people)
        words = readable(words, {})
        names |= channel_named(team, place.channel, str(body.get("channel_name") or ""))
        at, who = place.address, tuple(people.values())
        return await self.inbox(
            Command(actor, word, words, at, place.private, in_conversation=False, mentions=who, names=names)
        )

    async def close(self) -> None:
        await self.background.close()
