"""Incoming events and slash commands of Slack.

Slack counts an event as delivered once it is acknowledged, so a message is in the database before that:
bolt's middleware calls `Events.take_in` and answers after it. Whatever fails there is answered with an error,
and Slack delivers again; the inbox stops the second delivery by its event id.
"""

import asyncio
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
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
from bot.channels.slack.posting import post_directly, tell_person
from bot.channels.slack.reading import (
    count_missing,
    name_program,
    read_all,
    read_attached,
    read_files,
    read_words,
)
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.workspaces import Client, Workspace, Workspaces
from bot.domain.attachments import MAX_EARLIER_FILES, Upload, choose_earlier
from bot.domain.chat import Answer, Clock, Command, Inbox, Message, Reply
from bot.domain.people import Actor
from bot.domain.text import format_forwarded, in_group, in_thread
from bot.errors import ChannelError
from bot.store.database import Database
from bot.store.state import keep_state, load_state
from bot.telemetry.logs import logger

log = logger(__name__)

_PROSE = frozenset({"decline"})  # words of `/approvals` that are followed by a reason, for people
_MOST_READ = 500  # messages of a thread
_ROOM_CHARS = 7_900  # of a thread beyond what began it
_PAGE = 200  # messages
_MOST_PAGES = 10
_RECENT_SECONDS = 3600
_MOST_KEPT, _MOST_KEPT_CHARS = 30, 2_000  # of what programs wrote since a person did
_THREAD_UNREAD = "I could not read this thread before the message. Quote what matters."
_THREAD_PARTLY_READ = "This thread is long: at least {} of its messages were not read. Quote what matters."
_THREAD_CUT = "This thread is long: {} of its older messages were not read. Quote what matters."
_FILES_LEFT = f"I read {MAX_EARLIER_FILES} of the files in this thread. Attach what else matters."
_MOST_NAMED = 10  # people in one text whose names are looked up
_LOOKING = 1.5  # seconds; Slack waits 3 for its acknowledgement
_GREETING = "I do the work and ask before I change anything. What do you need?"
_CORRECTIONS = frozenset({"message_changed", "message_deleted"})
_NO_SHORTCUTS = "I have no shortcuts. Write to me here, or mention me in a channel."
_EDITED = "I don't read edited messages. Send the change as a new message."
_DELETED = "I have read what you deleted. To stop me, press Slack's stop button in the thread."


_UNREAD = "(a message was sent that you can't read)"
_HEARD_SUBTYPES = frozenset({None, "file_share", "thread_broadcast", "me_message"})
_GROUP = re.compile(r"<!subteam\^([A-Z0-9]+)(?:\|([^<>]*))?>")
_USER = re.compile(r"<@([A-Z0-9]+)(?:\|([^<>]*))?>")
_CHANNEL = re.compile(r"<#([A-Z0-9]+)(?:\|([^<>]*))?>")
_SPECIAL = re.compile(r"<!(?:subteam\^[A-Z0-9]+\|@?)?([^<>|^]+)(?:\^[^<>|]*)?(?:\|([^<>]*))?>")
_UNNAMED = frozenset({"privategroup", "directmessage"})  # what Slack writes in place of a name
_LINK = re.compile(r"<((?:https?|mailto|tel):[^<>|]+)(?:\|([^<>]*))?>")
ACTION = "nod:mentions"
_ONLY = "I answer in this thread only when I'm mentioned. Press again to change that."
_ALL = "I answer every message in this thread."


@dataclass(frozen=True, slots=True)
class Said:
    """A person's message; ``addressed`` when it is for Nod in any case (a DM or a mention)."""

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


def read_said(body: Mapping[str, Any], team: str, bot_user: str) -> Said | None:
    """Parse an event into a person's message; None for others (edits, bots, joins, ourselves)."""
    event = body.get("event") or {}
    kind, user = event.get("type"), event.get("user")
    if kind not in ("message", "app_mention") or event.get("subtype") not in _HEARD_SUBTYPES:
        return None
    if not user or user == bot_user or event.get("bot_id") or event.get("hidden") or event.get("edited"):
        return None
    channel, ts = event.get("channel"), event.get("ts")
    if not (channel and ts and body.get("event_id")):
        return None
    words = read_words(event)
    shared = tuple(read_attached(event))
    private = event.get("channel_type") == "im" or str(channel).startswith("D")
    mentioned = bot_user in list_mentioned_users(words)
    group = event.get("channel_type") == "mpim"
    if kind == "message" and mentioned and not (private or group):
        return None  # the same words come as app_mention
    files = tuple(dict.fromkeys(read_files(event)))
    profile = (event.get("user_profile") or {}).get("team")
    return Said(
        place=SlackPlace(team, channel, event.get("thread_ts") or ts),
        user=user,
        teams=tuple(str(each) for each in (*map(event.get, ("user_team", "source_team")), profile) if each),
        text=_without_bot(words, bot_user) or ("" if shared or files else _nothing(event)),
        # in a group of people a mention comes as a message, as an app_mention or as both
        event_id=f"{team}/{channel}/{ts}" if mentioned else body["event_id"],
        addressed=private or mentioned or kind == "app_mention",
        in_thread=bool(event.get("thread_ts")),
        ts=str(ts),
        shared=shared,
        files=files,
    )


@dataclass(frozen=True, slots=True)
class EarlierMessages:
    """The messages above one, with their authors: what of their files is read with it, what was not read."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    files: tuple[Upload, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Corrected:
    """An edit or deletion of a person's message; ``shown_at`` is where a reply about it is seen."""

    place: SlackPlace
    shown_at: SlackPlace
    user: str
    deleted: bool
    as_mention: Mapping[str, Any] | None  # the message as it is now, where the bot is named in it since then


def read_correction(body: Mapping[str, Any], team: str, bot_user: str) -> Corrected | None:
    """Parse an event into a correction; None for others (previews of links, ourselves)."""
    event = body.get("event") or {}
    now, before = event.get("message") or {}, event.get("previous_message") or {}
    user, ts = before.get("user"), before.get("ts")
    deleted = event.get("subtype") == "message_deleted" or now.get("subtype") == "tombstone"
    if not (user and ts and event.get("channel")) or user == bot_user or before.get("bot_id"):
        return None
    if not deleted and read_words(now) == read_words(before):
        return None
    place = SlackPlace(team, event["channel"], before.get("thread_ts") or ts)
    named = [bot_user in list_mentioned_users(read_words(each)) for each in (before, now)]
    mention = {**now, "type": "app_mention", "channel": place.channel, "edited": None}
    shown_at = SlackPlace(team, event["channel"], before.get("thread_ts"))
    return Corrected(
        place, shown_at, user, deleted, mention if named == [False, True] and not place.private else None
    )


def _nothing(event: Mapping[str, Any]) -> str:
    """Return the text for a message without words: a greeting for a bare mention, else a remark."""
    if not read_words(event) and (event.get("blocks") or event.get("attachments")):
        return _UNREAD
    return "Hello"


def _list_new_files(before: Sequence[Mapping[str, Any]], workspace: Workspace) -> list[Upload]:
    """List the files of a thread since Nod last wrote there: it was given what came earlier."""
    files: list[Upload] = []
    for message in before:
        if workspace.is_bot(str(message.get("bot_id") or ""), str(message.get("user") or "")):
            files.clear()
        else:
            files += read_files(message)
    return files


def _describe_unread(
    before: Sequence[Mapping[str, Any]], lines: list[tuple[str, str]], *, whole: bool
) -> str:
    """Say which messages of a thread were not read; empty where all were. ``whole``: Slack gave them all."""
    if not before:
        return "" if whole else _THREAD_UNREAD
    read = _newest_lines(lines)
    missing = len(before) - len(read)
    if not whole:
        missing = max(missing, count_missing(read, before[0].get("reply_count")) - 1, 1)
        return _THREAD_PARTLY_READ.format(f"{missing:,}")
    return _THREAD_CUT.format(f"{missing:,}") if missing else ""


def _newest_lines(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return a thread's first message, and as many of its newest as fit."""
    room, kept = _ROOM_CHARS, 0
    for author, text in reversed(lines[1:]):
        room -= len(author) + min(len(text), _MOST_KEPT_CHARS) + 3
        if room < 0:
            break
        kept += 1
    if kept:
        return [*lines[:1], *lines[len(lines) - kept :]]
    return lines[:1]


def _author_of(message: Mapping[str, Any], names: Mapping[str, str]) -> str:
    known = names.get(str(message.get("user")))
    if known == "you" or not message.get("bot_id"):
        return known or name_program(message) or "someone"
    return name_program(message) or known or "another program"


def _without_bot(words: str, bot_user: str) -> str:
    return re.sub(rf"^\s*<@{re.escape(bot_user)}(?:\|[^<>]*)?>[\s,:]*", "", words).strip()


def list_mentioned_users(text: str) -> list[str]:
    """List the ids of users named in a text, each once."""
    return list(dict.fromkeys(found[1] for found in _USER.finditer(text)))


def with_addresses(text: str, team: str, accounts: Mapping[str, Actor]) -> str:
    """Turn people, user groups and channels named Slack's way into what admin commands read: ``slack:T1/U2``.

    ``accounts`` are those of the people, by their ids; any other is one of ``team``.
    """
    text = _GROUP.sub(rf"{NAME}:{team}/\1", text)
    people = _USER.sub(lambda m: str(accounts.get(m[1]) or actor_of(team, m[1])), text)
    return _CHANNEL.sub(rf"{NAME}:{team}/\1", people)


def find_names(text: str, team: str) -> dict[str, str]:
    """Return the names that Slack gives for people and channels in a text, by account and address."""
    each = (*_USER.finditer(text), *_GROUP.finditer(text))
    people = {f"{NAME}:{team}/{m[1]}": m[2] for m in each if m[2]}
    return people | {f"{NAME}:{team}/{m[1]}": f"#{m[2]}" for m in _CHANNEL.finditer(text) if m[2]}


def channel_named(team: str, channel: str, name: str) -> dict[str, str]:
    """Return the name of a channel by its address; empty for a private one."""
    if not channel.startswith("C") or name in _UNNAMED or not name:
        return {}
    return {f"{NAME}:{team}/{channel}": f"#{name}"}


def make_readable(text: str, names: Mapping[str, str]) -> str:
    """Turn Slack's marks into words for the model: ``@Ana``, ``#general``, plain links."""
    text = _USER.sub(lambda m: f"@{names.get(m[1]) or m[2] or m[1]}", text)
    text = _CHANNEL.sub(lambda m: f"#{m[2] or m[1]}", text)
    text = _LINK.sub(lambda m: _bare(m[1]) if not m[2] or m[2] in m[1] else f"{m[2]} ({m[1]})", text)
    text = _SPECIAL.sub(lambda m: m[2] or ("@group" if m[1] == "subteam" else f"@{m[1]}"), text)
    return unescape(text)


def _bare(link: str) -> str:
    return link.removeprefix("mailto:").removeprefix("tel:")


@dataclass(frozen=True, slots=True)
class FollowedThreads:
    """The threads that Nod follows: with a button, people choose if it listens there without a mention."""

    database: Database
    clock: Clock

    async def offer(self, place: SlackPlace) -> list[Block]:
        """Return the button for Nod's first answer in a thread among people, else nothing."""
        if place.private or place.thread is None or await self._state(place) is not None:
            return []
        await self._keep(place, only=False)
        return [b.actions(b.button("Only when mentioned", ACTION, "thread"))]

    async def listens(self, place: SlackPlace) -> bool:
        """Tell if messages without a mention are for Nod, too."""
        state = await self._state(place)
        return state is None or not state["only"]

    async def handle_press(self, place: SlackPlace) -> str:
        """Toggle the choice, and return the reply for the person."""
        only = await self.listens(place)
        await self._keep(place, only=only)
        return _ONLY if only else _ALL

    async def _state(self, place: SlackPlace) -> dict[str, bool] | None:
        return await self.database.read(load_state, NAME, f"thread:{place.address.key}")

    async def _keep(self, place: SlackPlace, *, only: bool) -> None:
        key = f"thread:{place.address.key}"
        await self.database.write(keep_state, NAME, key, {"only": only}, self.clock())


@dataclass(frozen=True, slots=True)
class Events:
    """The handler of events and slash commands."""

    workspaces: Workspaces
    sessions: Sessions
    homes: Homes
    threads: FollowedThreads
    inbox: Inbox
    lookup: Lookup
    told: deque[str] = field(default_factory=partial(deque, maxlen=1000))  # messages refused in words
    background: Background = field(
        default_factory=partial(
            Background, "Slack rejected a best-effort call", SlackClientError, aiohttp.ClientError, OSError
        )
    )

    async def take_in(self, body: Mapping[str, Any], team: str) -> None:
        """Store an event's content before it is acknowledged. Raises when it could not be stored."""
        event: Mapping[str, Any] = body.get("event") or {}
        match event.get("type"):
            case "message" if event.get("subtype") in _CORRECTIONS:
                await self._take_correction(body, team)
            case "message" | "app_mention":
                await self._message(body, team)
            case "channel_id_changed":
                old, new = str(event.get("old_channel_id")), str(event.get("new_channel_id"))
                await self.workspaces.moves.learn(team, old, new)
            case "agent_session_stopped":
                await self._take_stop(event, team)
            case "app_home_opened":
                self.background.start(self._greet(event, team))
            case "app_uninstalled":
                await self._check_end(team, "the app was uninstalled")
            case "tokens_revoked" if (event.get("tokens") or {}).get("bot"):
                await self._check_end(team, "the bot token was revoked")
            case _:
                pass  # subscribed for what Slack wants to see, nothing to do

    async def _check_end(self, team: str, why: str) -> None:
        """Check with Slack if an installation has ended: such an event may come late, after a new one began.

        If that takes too long, Slack's response to the next call tells.
        """
        try:
            async with asyncio.timeout(_LOOKING):
                await self.workspaces.check(team, why)
        except TimeoutError:
            log.info("Slack did not say whether an installation ended", team=team, why=why)

    async def _take_correction(self, body: Mapping[str, Any], team: str) -> None:
        """Tell a person that their correction was not read, or take in a mention that it adds."""
        workspace = await self.workspaces.find(team)
        found = read_correction(body, team, workspace.bot_user) if workspace else None
        if found is None:
            return
        if await self._follows(found.place):
            words = _DELETED if found.deleted else _EDITED
            self.background.start(tell_person(self.workspaces, found.shown_at, found.user, words))
        elif found.as_mention is not None:
            await self._message({**body, "event": found.as_mention}, team)

    async def _message(self, body: Mapping[str, Any], team: str) -> None:
        workspace = await self.workspaces.find(team)
        said = read_said(body, team, workspace.bot_user) if workspace else None
        follows = said is not None and said.in_thread and await self._follows(said.place)
        if workspace is not None and said is None:
            await self._keep_program(body, workspace)
        if workspace is None or said is None or not (said.addressed or follows):
            return
        actor, people = await asyncio.gather(
            self.workspaces.actor(team, said.user, *said.teams),
            self._people(team, list_mentioned_users(said.text)),
        )
        names = {user: each.name for user, each in people.items()}
        text = make_readable(said.text, names)
        for author, passed_on in reversed(said.shared):
            text = format_forwarded(author, make_readable(passed_on, {}), text)
        earlier = EarlierMessages()
        if said.in_thread and not follows:
            earlier = await self._thread(said, workspace)
            text = in_thread(earlier.lines, text)
        elif said.in_thread:
            earlier = await self._programs(said.place)
            text = in_group(earlier.lines, text)
        if earlier.note:
            text = f"[{earlier.note}]\n\n{text}"
        reply = await self.inbox(
            Message(
                address=said.place.address,
                actor=actor,
                text=text,
                event_id=said.event_id,
                private=said.place.private,
                names=find_names(said.text, team),
                files=(*said.files, *earlier.files),
            )
        )
        if reply.answer is Answer.ACCEPTED:
            title = make_readable(said.text, names) or ", ".join(each.name for each in said.files)
            self.sessions.begin(said.place, title)
            if follows and earlier.lines:
                await self._keep_programs(said.place, None)
            if earlier.note:
                self.background.start(self._tell(said, earlier.note))
        elif reply.answer is not Answer.DUPLICATE and reply.text and said.event_id not in self.told:
            self.told.append(said.event_id)  # a mention may come as two events
            if said.addressed or not actor.outside:
                self.background.start(self._tell(said, reply.text))

    async def _tell(self, said: Said, words: str) -> None:
        """Reply to the author where they see it.

        Slack shows an ephemeral message of a thread to no one before the thread has a reply.
        """
        place = said.place
        if place.private:
            await post_directly(self.workspaces, place, words)
        else:
            at = place if said.in_thread else SlackPlace(place.team, place.channel)
            await tell_person(self.workspaces, at, said.user, words)

    async def _thread(self, said: Said, workspace: Workspace) -> EarlierMessages:
        """Return the earlier messages of a thread; of its files those since Nod last wrote there.

        Slack gives the oldest first and waits for its acknowledgement, so of a very long thread the last
        pages may be out of reach in time; then the newest are asked for by themselves.
        """
        place = said.place
        found: dict[str, dict[str, Any]] = {}
        names, whole = {workspace.bot_user: "you"}, False
        try:
            async with asyncio.timeout(_LOOKING):
                client = await self.workspaces.client(place.team)
                whole = await self._read_pages(client, said, found)
                users = dict.fromkeys(
                    str(m["user"]) for m in list(found.values())[-_MOST_READ:] if m.get("user")
                )
                people = await self._people(place.team, users)
                names = {user: each.name or user for user, each in people.items()} | names
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError, ChannelError) as error:
            log.info("a thread could not be read", place=str(place.address), why=str(error))
        before = [found[ts] for ts in sorted(found, key=float) if ts != said.ts]
        shown = [before[0], *before[1:][-_MOST_READ:]] if before else []
        attached = _list_new_files(before, workspace)
        began = list(read_files(before[0])) if before else []
        files = choose_earlier(attached, [each for each in began if each in attached])
        unread = {each.ref for each in attached} - {each.ref for each in files}
        lines = [(_author_of(m, names), make_readable(read_all(m, unread), names)) for m in shown]
        notes = (_describe_unread(before, lines, whole=whole), _FILES_LEFT if unread else "")
        return EarlierMessages(lines, files, " ".join(filter(None, notes)))

    async def _read_pages(self, client: Client, said: Said, found: dict[str, dict[str, Any]]) -> bool:
        """Read a thread's pages into ``found``, by time. Return False where there are more than are read."""
        place = said.place
        given: dict[str, Any] = {
            "channel": place.channel,
            "ts": str(place.thread),
            "latest": said.ts,
            "inclusive": True,
        }
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.conversations_replies(limit=_PAGE, cursor=cursor, **given)
            found |= {str(m["ts"]): m for m in page.get("messages") or () if m.get("ts")}
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if not page.get("has_more") or cursor is None:
                return not page.get("has_more")
        recent = await client.conversations_replies(
            limit=_PAGE, oldest=f"{float(said.ts) - _RECENT_SECONDS:.6f}", **given
        )
        found |= {str(m["ts"]): m for m in recent.get("messages") or () if m.get("ts")}
        return False

    async def _keep_program(self, body: Mapping[str, Any], workspace: Workspace) -> None:
        """Store a message of another program in a followed thread, for a person's next turn."""
        event: Mapping[str, Any] = body.get("event") or {}
        thread, channel = event.get("thread_ts"), event.get("channel")
        is_program = bool(event.get("bot_id")) or event.get("subtype") == "bot_message"
        own = event.get("bot_id") == workspace.bot_id or event.get("user") == workspace.bot_user
        if not (is_program and thread and channel) or own or event.get("hidden"):
            return
        place = SlackPlace(workspace.team, str(channel), str(thread))
        if not await self._follows(place):
            return
        line = name_program(event) or "another program", make_readable(read_all(event), {})[:_MOST_KEPT_CHARS]
        kept = await self._programs(place)
        files = choose_earlier([*kept.files, *read_files(event)])
        await self._keep_programs(place, EarlierMessages([*kept.lines, line][-_MOST_KEPT:], files))

    async def _programs(self, place: SlackPlace) -> EarlierMessages:
        found = await self.threads.database.read(load_state, NAME, f"programs:{place.address.key}") or {}
        lines = [(str(author), str(text)) for author, text in found.get("said", ())]
        files = [Upload(name, ref=ref, size=size) for name, ref, size in found.get("files", ())]
        return EarlierMessages(lines, choose_earlier(files))

    async def _keep_programs(self, place: SlackPlace, said: EarlierMessages | None) -> None:
        key, state = f"programs:{place.address.key}", None
        if said is not None:
            state = {"said": said.lines, "files": [(f.name, f.ref, f.size) for f in said.files]}
        await self.threads.database.write(keep_state, NAME, key, state, self.threads.clock())

    async def _people(self, team: str, users: Iterable[str]) -> dict[str, Actor]:
        few = list(users)[:_MOST_NAMED]
        found = await asyncio.gather(*(self.workspaces.actor(team, user) for user in few))
        return dict(zip(few, found, strict=True))

    async def _follows(self, place: SlackPlace) -> bool:
        return await self.lookup.follows(place.address) and await self.threads.listens(place)

    async def _take_stop(self, event: Mapping[str, Any], team: str) -> None:
        place = SlackPlace(team, event["channel"], event.get("thread_ts"))
        actor = await self.workspaces.actor(team, event.get("user") or "unknown")
        reply = await self.inbox(Command(actor, "stop", "", place.address, place.private))
        log.info("a person pressed stop", place=str(place.address), answer=reply.answer)

    async def _greet(self, event: Mapping[str, Any], team: str) -> None:
        user = event["user"]
        if event.get("tab") == "home":
            await self.homes.open_home(team, user)
            return
        client = await self.workspaces.client(team)
        await client.assistant_threads_setSuggestedPrompts(
            channel_id=event["channel"],
            title=_GREETING,
            prompts=[{"title": title, "message": message} for title, message in PROMPTS],
        )

    async def refuse_shortcut(self, body: Mapping[str, Any]) -> None:
        """Tell a person that their shortcut, which is not in Nod's manifest, does nothing."""
        workspace = await self.workspaces.find_named(body)
        user = str((body.get("user") or {}).get("id") or "")
        if workspace is not None and user:
            self.background.start(tell_person(self.workspaces, None, user, _NO_SHORTCUTS, workspace.team))

    async def command(self, body: Mapping[str, Any], team: str) -> Reply:
        """Handle a slash command; it carries no thread, so its address is the channel."""
        place = SlackPlace(team, body["channel_id"])
        name = str(body.get("user_name") or "")
        actor = await self.workspaces.actor(team, body["user_id"], name=name)
        word, words = str(body["command"]).removeprefix("/"), str(body.get("text") or "")
        names = find_names(words, team)
        people = await self._people(team, list_mentioned_users(words))
        names |= {str(each): each.name for each in people.values() if each.name}
        if words.partition(" ")[0] not in _PROSE:
            words = with_addresses(words, team, people)
        words = make_readable(words, {})
        names |= channel_named(team, place.channel, str(body.get("channel_name") or ""))
        at, who = place.address, tuple(people.values())
        return await self.inbox(
            Command(actor, word, words, at, place.private, in_conversation=False, mentions=who, names=names)
        )

    async def close(self) -> None:
        await self.background.close()
