"""Incoming events and slash commands of Slack: messages for Nod are found and handed to the core.

Slack counts an event as delivered once it is acknowledged, so a message is in the database before that:
the middleware of ``channel.py`` calls `Events.take_in` and answers after it. Whatever fails there is answered
with an error, and Slack delivers again; the core drops the second delivery by its event id.

A message is for Nod if it is addressed to Nod (a direct message or a mention), or in a thread that Nod
follows: the thread has a conversation, and no one has set it to answer only mentions (``threads.py``). The
model gets the earlier messages of a thread in one of two ways:

- Nod is called into a thread that it does not follow: the thread is read from Slack
- Nod follows the thread: the conversation has people's messages; those of other programs are stored as they
  arrive, and handed over with the next message of a person

A correction is a person's edit or deletion of a message. The text of a message is read by ``reading.py`` and
``marks.py``.
"""

import asyncio
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.base import Lookup
from bot.channels.connecting import Background
from bot.channels.slack.client import Client
from bot.channels.slack.home import Homes
from bot.channels.slack.manifest import PROMPTS
from bot.channels.slack.marks import (
    find_channel_name,
    find_names,
    list_mentioned_users,
    make_readable,
    with_addresses,
)
from bot.channels.slack.people import People
from bot.channels.slack.places import NAME, SlackPlace
from bot.channels.slack.posting import post_directly, tell_person
from bot.channels.slack.reading import (
    find_program_name,
    read_attachments,
    read_files,
    read_full_text,
    read_message_text,
)
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.threads import FollowedThreads
from bot.channels.slack.workspaces import Workspace, Workspaces
from bot.domain.attachments import MAX_EARLIER_FILES, Upload, choose_earlier
from bot.domain.chat import Answer, Command, Inbox, Message, Reply
from bot.domain.people import Actor
from bot.domain.text import format_forwarded, format_group, format_thread
from bot.errors import ChannelError
from bot.store.state import load_state, store_state
from bot.telemetry.logs import logger

log = logger(__name__)

_SUBCOMMANDS_WITH_REASON = frozenset({"decline"})
"""Subcommands that end in a reason for people, in which mentions do not become addresses."""
_MAX_THREAD_MESSAGES = 500  # the newest messages of a thread that are looked at
_MAX_THREAD_CHARS = 7_900  # the messages of a thread without the first message
_PAGE_MESSAGES = 200  # the messages of one request
_MAX_PAGES = 10  # the requests for one thread
_RECENT_SECONDS = 3600  # the time before a message from which a very long thread is read
_MAX_PROGRAM_MESSAGES = 30  # messages of other programs that are stored since a person wrote
_MAX_MESSAGE_CHARS = 2_000  # of one earlier message
_THREAD_UNREAD_TEXT = "I could not read this thread before the message. Quote what matters."
_THREAD_PARTLY_READ_TEXT = (
    "This thread is long: at least {} of its messages were not read. Quote what matters."
)
_THREAD_CUT_TEXT = "This thread is long: {} of its older messages were not read. Quote what matters."
_FILES_LEFT_TEXT = f"I read {MAX_EARLIER_FILES} of the files in this thread. Attach what else matters."
_MAX_NAMED_PEOPLE = 10  # people in one text whose names are looked up
_MAX_LOOKUP_SECONDS = 1.5  # Slack waits 3 s for its acknowledgement
_YOU = "you"  # Nod itself, as the model reads it
_GREETING_TEXT = "I do the work and ask before I change anything. What do you need?"
_CORRECTION_SUBTYPES = frozenset({"message_changed", "message_deleted"})
_NO_SHORTCUTS_TEXT = "I have no shortcuts. Write to me here, or mention me in a channel."
_EDITED_TEXT = "I don't read edited messages. Send the change as a new message."
_DELETED_TEXT = "I have read what you deleted. To stop me, press Slack's stop button in the thread."
_UNREADABLE_TEXT = "(a message was sent that you can't read)"
_MESSAGE_SUBTYPES = frozenset({None, "file_share", "thread_broadcast", "me_message"})


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A person's message."""

    place: SlackPlace  # the thread of the message, or the thread that it would begin
    user: str
    teams: tuple[str, ...]  # the ids of teams that Slack names for the account
    text: str
    event_id: str
    addressed: bool  # it is for Nod in any case: a direct message or a mention
    in_thread: bool  # it was written in a thread
    ts: str = ""  # Slack's timestamp, which is the id of the message
    shared: tuple[tuple[str, str], ...] = ()  # messages that the person passes on: author and text
    files: tuple[Upload, ...] = ()


def read_message(body: Mapping[str, Any], team: str, bot_user: str) -> IncomingMessage | None:
    """Parse an event into a person's message; None for other events (edits, bots, joins, Nod itself)."""
    event = body.get("event") or {}
    kind, user = event.get("type"), event.get("user")
    if kind not in ("message", "app_mention") or event.get("subtype") not in _MESSAGE_SUBTYPES:
        return None
    if not user or user == bot_user or event.get("bot_id") or event.get("hidden") or event.get("edited"):
        return None
    channel, ts = event.get("channel"), event.get("ts")
    if not (channel and ts and body.get("event_id")):
        return None

    words = read_message_text(event)
    mentioned = bot_user in list_mentioned_users(words)
    private = event.get("channel_type") == "im" or str(channel).startswith("D")
    is_group = event.get("channel_type") == "mpim"
    if kind == "message" and mentioned and not (private or is_group):
        return None  # the same words come as app_mention

    profile_team = (event.get("user_profile") or {}).get("team")
    teams = (event.get("user_team"), event.get("source_team"), profile_team)
    shared = tuple(read_attachments(event))
    files = tuple(dict.fromkeys(read_files(event)))
    text = _remove_mention(words, bot_user)
    if not (text or shared or files):
        text = _write_substitute(event)
    return IncomingMessage(
        place=SlackPlace(team, channel, event.get("thread_ts") or ts),
        user=user,
        teams=tuple(str(name) for name in teams if name),
        text=text,
        # in a group chat a mention comes as message, as app_mention or as both: with the same id for both,
        # the core drops the second one
        event_id=f"{team}/{channel}/{ts}" if mentioned else body["event_id"],
        addressed=private or mentioned or kind == "app_mention",
        in_thread=bool(event.get("thread_ts")),
        ts=str(ts),
        shared=shared,
        files=files,
    )


@dataclass(frozen=True, slots=True)
class EarlierMessages:
    """The messages of a thread before a message."""

    lines: list[tuple[str, str]] = field(default_factory=list)  # author and text
    files: tuple[Upload, ...] = ()  # the files of these messages that the model gets
    note: str = ""  # says, to the person and to the model, which messages and files were not read


@dataclass(frozen=True, slots=True)
class Correction:
    """An edit or deletion of a person's message."""

    place: SlackPlace  # the thread of the message, or the thread that the message began
    reply_place: SlackPlace  # the place for a reply: the channel for a message outside threads
    user: str
    deleted: bool
    mention_event: Mapping[str, Any] | None  # the event of a new message, if the edit added a mention of Nod


def read_correction(body: Mapping[str, Any], team: str, bot_user: str) -> Correction | None:
    """Parse an event about a changed message; None if no person changed its words.

    Slack also sends such an event when it adds the preview of a link.
    """
    event = body.get("event") or {}
    edited = event.get("message") or {}
    original = event.get("previous_message") or {}
    user, ts = original.get("user"), original.get("ts")
    if not (user and ts and event.get("channel")):
        return None
    is_by_program = user == bot_user or original.get("bot_id")
    if is_by_program:
        return None
    # a deleted message that has replies is edited into a tombstone
    deleted = event.get("subtype") == "message_deleted" or edited.get("subtype") == "tombstone"
    if not deleted and read_message_text(edited) == read_message_text(original):
        return None
    place = SlackPlace(team, event["channel"], original.get("thread_ts") or ts)
    was_mentioned = bot_user in list_mentioned_users(read_message_text(original))
    is_mentioned = bot_user in list_mentioned_users(read_message_text(edited))
    mention_event = None
    if is_mentioned and not was_mentioned and not place.private:
        mention_event = {**edited, "type": "app_mention", "channel": place.channel, "edited": None}
    reply_place = SlackPlace(team, event["channel"], original.get("thread_ts"))
    return Correction(place, reply_place, user, deleted, mention_event)


@dataclass(frozen=True, slots=True)
class Events:
    """The handler of events and slash commands."""

    workspaces: Workspaces
    people: People
    sessions: Sessions
    homes: Homes
    threads: FollowedThreads
    inbox: Inbox
    lookup: Lookup
    refused_events: deque[str] = field(default_factory=partial(deque, maxlen=1000))
    """The ids of the last events whose author was told why Nod refused them."""
    background: Background = field(
        default_factory=partial(
            Background, "Slack rejected a best-effort call", SlackClientError, aiohttp.ClientError, OSError
        )
    )

    async def take_in(self, body: Mapping[str, Any], team: str) -> None:
        """Store an event's content before it is acknowledged. Raises when it could not be stored."""
        event: Mapping[str, Any] = body.get("event") or {}
        match event.get("type"):
            case "message" if event.get("subtype") in _CORRECTION_SUBTYPES:
                await self._take_correction(body, team)
            case "message" | "app_mention":
                await self._take_message(body, team)
            case "channel_id_changed":
                old, new = str(event.get("old_channel_id")), str(event.get("new_channel_id"))
                await self.workspaces.moves.remember_move(team, old, new)
            case "agent_session_stopped":
                await self._take_stop(event, team)
            case "app_home_opened":
                self.background.start(self._greet(event, team))
            case "app_uninstalled":
                await self._check_end(team, "the app was uninstalled")
            case "tokens_revoked" if (event.get("tokens") or {}).get("bot"):
                await self._check_end(team, "the bot token was revoked")
            case _:
                pass  # an event that Slack makes apps subscribe to, without use for Nod

    async def _check_end(self, team: str, why: str) -> None:
        """Ask Slack if an installation has ended, as an event says: it may arrive after a new installation.

        Without an answer in time nothing changes; Slack's response to the next call will tell.
        """
        try:
            async with asyncio.timeout(_MAX_LOOKUP_SECONDS):
                await self.workspaces.end_if_refused(team, why)
        except TimeoutError:
            log.info("Slack did not say whether an installation ended", team=team, why=why)

    async def _take_correction(self, body: Mapping[str, Any], team: str) -> None:
        """Tell a person that their correction was not read, or take in a mention that it adds."""
        workspace = await self.workspaces.find(team)
        correction = read_correction(body, team, workspace.bot_user) if workspace else None
        if correction is None:
            return
        if await self._is_followed(correction.place):
            words = _DELETED_TEXT if correction.deleted else _EDITED_TEXT
            self.background.start(
                tell_person(self.workspaces, correction.reply_place, correction.user, words)
            )
        elif correction.mention_event is not None:
            await self._take_message({**body, "event": correction.mention_event}, team)

    async def _take_message(self, body: Mapping[str, Any], team: str) -> None:
        """Hand a message for Nod to the core; store one of another program for a later turn."""
        workspace = await self.workspaces.find(team)
        if workspace is None:
            return
        message = read_message(body, team, workspace.bot_user)
        if message is None:
            await self._store_program_message(body, workspace)
            return
        is_followed = message.in_thread and await self._is_followed(message.place)
        if not (message.addressed or is_followed):
            return

        actor, people = await asyncio.gather(
            self.people.load_actor(team, message.user, *message.teams),
            self._load_people(team, list_mentioned_users(message.text)),
        )
        names = {user: person.name for user, person in people.items()}
        text = _format_with_shared(message, names)
        earlier = EarlierMessages()
        if is_followed:  # the conversation has people's messages already
            earlier = await self._load_program_messages(message.place)
            text = format_group(earlier.lines, text)
        elif message.in_thread:
            earlier = await self._read_thread(message, workspace)
            text = format_thread(earlier.lines, text)
        if earlier.note:
            text = f"[{earlier.note}]\n\n{text}"

        reply = await self.inbox(
            Message(
                address=message.place.address,
                actor=actor,
                text=text,
                event_id=message.event_id,
                private=message.place.private,
                names=find_names(message.text, team),
                files=(*message.files, *earlier.files),
            )
        )

        if reply.answer is Answer.ACCEPTED:
            title = make_readable(message.text, names) or ", ".join(file.name for file in message.files)
            self.sessions.set_processing(message.place, title)
            if is_followed and earlier.lines:
                await self._delete_program_messages(message.place)  # the core has them now
            if earlier.note:
                self.background.start(self._reply(message, earlier.note))
        elif reply.answer is not Answer.DUPLICATE and reply.text:
            self._refuse(message, actor, reply.text)

    def _refuse(self, message: IncomingMessage, actor: Actor, words: str) -> None:
        """Tell the author why their message was refused, once: a mention may come as two events."""
        if message.event_id in self.refused_events:
            return
        self.refused_events.append(message.event_id)
        if message.addressed or not actor.outside:  # people from outside are told only if they called Nod
            self.background.start(self._reply(message, words))

    async def _reply(self, message: IncomingMessage, words: str) -> None:
        """Reply to the author where they see it.

        Slack shows an ephemeral message of a thread to no one before the thread has a reply.
        """
        place = message.place
        if place.private:
            await post_directly(self.workspaces, place, words)
        else:
            reply_place = place if message.in_thread else SlackPlace(place.team, place.channel)
            await tell_person(self.workspaces, reply_place, message.user, words)

    async def _read_thread(self, message: IncomingMessage, workspace: Workspace) -> EarlierMessages:
        """Return the messages of a thread before ``message``, and the files sent since Nod last wrote there.

        Messages that could not be read in time are missing, which the note says.
        """
        place = message.place
        by_ts: dict[str, dict[str, Any]] = {}  # Slack's messages, by their timestamps
        names = {workspace.bot_user: _YOU}
        is_complete = False
        try:
            async with asyncio.timeout(_MAX_LOOKUP_SECONDS):
                client = await self.workspaces.client(place.team)
                is_complete = await self._read_pages(client, message, by_ts)
                newest_messages = list(by_ts.values())[-_MAX_THREAD_MESSAGES:]
                users = dict.fromkeys(str(sent["user"]) for sent in newest_messages if sent.get("user"))
                people = await self._load_people(place.team, users)
                names = {user: person.name or user for user, person in people.items()} | names
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError, ChannelError) as error:
            log.info("a thread could not be read", place=str(place.address), why=str(error))
        messages = [by_ts[ts] for ts in sorted(by_ts, key=float) if ts != message.ts]

        # the thread is about its first message, so the files of that message come first
        new_files = _list_new_files(messages, workspace)
        first_files = list(read_files(messages[0])) if messages else []
        files = choose_earlier(new_files, [file for file in first_files if file in new_files])
        unread = {file.ref for file in new_files} - {file.ref for file in files}

        # `format_thread` chooses from these lines again: those that fit
        first, later = messages[:1], messages[1:]
        lines = [
            (_find_author(sent, names), make_readable(read_full_text(sent, unread), names))
            for sent in [*first, *later[-_MAX_THREAD_MESSAGES:]]
        ]
        notes = [_describe_unread(messages, lines, is_complete=is_complete)]
        if unread:
            notes.append(_FILES_LEFT_TEXT)
        return EarlierMessages(lines, files, " ".join(filter(None, notes)))

    async def _read_pages(
        self, client: Client, message: IncomingMessage, by_ts: dict[str, dict[str, Any]]
    ) -> bool:
        """Read a thread's pages into ``by_ts``, by timestamp. Return False if messages are missing.

        Slack gives the oldest messages first, and the time is short. So after `_MAX_PAGES` pages of a longer
        thread, the newest messages (`_RECENT_SECONDS`) are read by themselves. Those in between are missing.
        """
        place = message.place
        thread: dict[str, Any] = {
            "channel": place.channel,
            "ts": str(place.thread),
            "latest": message.ts,
            "inclusive": True,
        }
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.conversations_replies(limit=_PAGE_MESSAGES, cursor=cursor, **thread)
            by_ts |= {str(sent["ts"]): sent for sent in page.get("messages") or () if sent.get("ts")}
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if not page.get("has_more") or cursor is None:
                return not page.get("has_more")
        recent = await client.conversations_replies(
            limit=_PAGE_MESSAGES, oldest=f"{float(message.ts) - _RECENT_SECONDS:.6f}", **thread
        )
        by_ts |= {str(sent["ts"]): sent for sent in recent.get("messages") or () if sent.get("ts")}
        return False

    async def _store_program_message(self, body: Mapping[str, Any], workspace: Workspace) -> None:
        """Store a message of another program in a followed thread, for a person's next turn."""
        event: Mapping[str, Any] = body.get("event") or {}
        thread, channel = event.get("thread_ts"), event.get("channel")
        is_program = bool(event.get("bot_id")) or event.get("subtype") == "bot_message"
        if not (is_program and thread and channel) or event.get("hidden"):
            return
        is_own = event.get("bot_id") == workspace.bot_id or event.get("user") == workspace.bot_user
        if is_own:
            return
        place = SlackPlace(workspace.team, str(channel), str(thread))
        if not await self._is_followed(place):
            return
        author = find_program_name(event) or "another program"
        text = make_readable(read_full_text(event), {})[:_MAX_MESSAGE_CHARS]
        stored = await self._load_program_messages(place)
        lines = [*stored.lines, (author, text)][-_MAX_PROGRAM_MESSAGES:]
        files = choose_earlier([*stored.files, *read_files(event)])
        await self._store_program_messages(place, EarlierMessages(lines, files))

    async def _load_program_messages(self, place: SlackPlace) -> EarlierMessages:
        """Return the messages of other programs in a thread since a person last wrote to Nod there."""
        key = _make_program_key(place)
        state = await self.threads.database.read(load_state, NAME, key) or {}
        lines = [(str(author), str(text)) for author, text in state.get("said", ())]
        files = [Upload(name, ref=ref, size=size) for name, ref, size in state.get("files", ())]
        return EarlierMessages(lines, choose_earlier(files))

    async def _store_program_messages(self, place: SlackPlace, messages: EarlierMessages) -> None:
        files = [(file.name, file.ref, file.size) for file in messages.files]
        state = {"said": messages.lines, "files": files}
        key = _make_program_key(place)
        await self.threads.database.write(store_state, NAME, key, state, self.threads.clock())

    async def _delete_program_messages(self, place: SlackPlace) -> None:
        key = _make_program_key(place)
        await self.threads.database.write(store_state, NAME, key, None, self.threads.clock())

    async def _load_people(self, team: str, users: Iterable[str]) -> dict[str, Actor]:
        """Return the people behind users' ids; only the first `_MAX_NAMED_PEOPLE` are looked up."""
        first_users = list(users)[:_MAX_NAMED_PEOPLE]
        actors = await asyncio.gather(*(self.people.load_actor(team, user) for user in first_users))
        return dict(zip(first_users, actors, strict=True))

    async def _is_followed(self, place: SlackPlace) -> bool:
        """Tell if a thread has a conversation, and no one has set it to answer only mentions."""
        return await self.lookup.follows(place.address) and await self.threads.listens(place)

    async def _take_stop(self, event: Mapping[str, Any], team: str) -> None:
        place = SlackPlace(team, event["channel"], event.get("thread_ts"))
        actor = await self.people.load_actor(team, event.get("user") or "unknown")
        reply = await self.inbox(Command(actor, "stop", "", place.address, place.private))
        log.info("a person pressed stop", place=str(place.address), answer=reply.answer)

    async def _greet(self, event: Mapping[str, Any], team: str) -> None:
        """Show the home, or suggestions in the chat, to a person who opened Nod's app."""
        user = event["user"]
        if event.get("tab") == "home":
            await self.homes.open_home(team, user)
            return
        client = await self.workspaces.client(team)
        await client.assistant_threads_setSuggestedPrompts(
            channel_id=event["channel"],
            title=_GREETING_TEXT,
            prompts=[{"title": title, "message": message} for title, message in PROMPTS],
        )

    async def refuse_shortcut(self, body: Mapping[str, Any]) -> None:
        """Tell a person that their shortcut does nothing: Nod's manifest has none."""
        workspace = await self.workspaces.find_for_request(body)
        user = str((body.get("user") or {}).get("id") or "")
        if workspace is not None and user:
            self.background.start(
                tell_person(self.workspaces, None, user, _NO_SHORTCUTS_TEXT, workspace.team)
            )

    async def command(self, body: Mapping[str, Any], team: str) -> Reply:
        """Handle a slash command. Slack names no thread with it, so its address is the channel."""
        place = SlackPlace(team, body["channel_id"])
        name = str(body.get("user_name") or "")
        actor = await self.people.load_actor(team, body["user_id"], name=name)
        command_name = str(body["command"]).removeprefix("/")
        words = str(body.get("text") or "")
        people = await self._load_people(team, list_mentioned_users(words))
        names = find_names(words, team)
        names |= {str(person): person.name for person in people.values() if person.name}
        names |= find_channel_name(team, place.channel, str(body.get("channel_name") or ""))
        if words.partition(" ")[0] not in _SUBCOMMANDS_WITH_REASON:
            words = with_addresses(words, team, people)
        words = make_readable(words, {})
        return await self.inbox(
            Command(
                actor,
                command_name,
                words,
                place.address,
                place.private,
                in_conversation=False,
                mentions=tuple(people.values()),
                names=names,
            )
        )

    async def close(self) -> None:
        await self.background.close()


def _format_with_shared(message: IncomingMessage, names: Mapping[str, str]) -> str:
    """Return a message's text for the model, after the messages that the person passes on."""
    text = make_readable(message.text, names)
    for author, shared_text in reversed(message.shared):
        text = format_forwarded(author, make_readable(shared_text, {}), text)
    return text


def _make_program_key(place: SlackPlace) -> str:
    """Return the key under which the messages of programs in a thread are stored."""
    return f"programs:{place.address.key}"


def _remove_mention(words: str, bot_user: str) -> str:
    """Return a text without the mention of Nod that it begins with."""
    return re.sub(rf"^\s*<@{re.escape(bot_user)}(?:\|[^<>]*)?>[\s,:]*", "", words).strip()


def _write_substitute(event: Mapping[str, Any]) -> str:
    """Return the text for a message without words: a greeting, or a remark if it has unreadable contents."""
    if not read_message_text(event) and (event.get("blocks") or event.get("attachments")):
        return _UNREADABLE_TEXT
    return "Hello"


def _list_new_files(messages: Sequence[Mapping[str, Any]], workspace: Workspace) -> list[Upload]:
    """List the files of a thread since Nod last wrote there: it has read the earlier ones."""
    files: list[Upload] = []
    for message in messages:
        if workspace.is_bot(str(message.get("bot_id") or ""), str(message.get("user") or "")):
            files.clear()
        else:
            files += read_files(message)
    return files


def _find_author(message: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return the author's name. ``names`` are those of users by id, with `_YOU` for Nod's own account."""
    user_name = names.get(str(message.get("user")))
    if user_name == _YOU:
        return user_name
    if message.get("bot_id"):
        return find_program_name(message) or user_name or "another program"
    return user_name or find_program_name(message) or "someone"


def _describe_unread(
    messages: Sequence[Mapping[str, Any]], lines: list[tuple[str, str]], *, is_complete: bool
) -> str:
    """Say how many earlier messages of a thread the model does not get; empty if it gets all.

    ``messages``: those that Slack returned. ``lines``: their authors and texts. ``is_complete``: Slack
    returned the full thread.
    """
    if not messages:
        return "" if is_complete else _THREAD_UNREAD_TEXT
    fitting = _choose_lines(lines)  # the same choice as `format_thread` makes
    missing = len(messages) - len(fitting)
    if is_complete:
        return _THREAD_CUT_TEXT.format(f"{missing:,}") if missing else ""
    # Slack's number of replies includes the message that is being taken in, which is not an earlier one
    missing_by_reply_count = _count_missing(fitting, messages[0].get("reply_count")) - 1
    missing = max(missing, missing_by_reply_count, 1)
    return _THREAD_PARTLY_READ_TEXT.format(f"{missing:,}")


def _count_missing(messages: Sequence[object], reply_count: object) -> int:
    """Return how many of a thread's messages are not in ``messages``.

    ``reply_count`` is the number that Slack gives; it does not count the thread's first message.
    """
    if isinstance(reply_count, int):
        return max(reply_count + 1 - len(messages), 0)
    return 0


def _choose_lines(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return a thread's first message, and as many of its newest messages as fit."""
    first, later = lines[:1], lines[1:]
    room = _MAX_THREAD_CHARS
    start = len(later)
    for author, text in reversed(later):
        room -= len(f"{author}: \n") + min(len(text), _MAX_MESSAGE_CHARS)
        if room < 0:
            break
        start -= 1
    return [*first, *later[start:]]
