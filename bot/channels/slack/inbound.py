"""Incoming events and slash commands of Slack: messages for Nod are found and handed to the core.

Slack counts an event as delivered once it is acknowledged, so a message is in the database before that:
the middleware of ``channel.py`` calls `Events.take_in` and answers after it. Whatever fails there is answered
with an error, and Slack delivers again; the core drops the second delivery by its event id.

A message is for Nod if it is addressed to Nod (a direct message or a mention), or in a thread that Nod
follows: the thread has a conversation, and no one has set it to answer only mentions (``threads.py``). The
model gets the earlier messages of a thread in one of two ways:

- Nod is called into a thread that it does not follow: the thread is read from Slack (``earlier_messages.py``)
- Nod follows the thread: the conversation has people's messages; those of other programs are stored as they
  arrive, and handed over with the next message of a person (``program_messages.py``)

Events are parsed by ``incoming_messages.py``, the text of a message by ``reading.py`` and ``marks.py``.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.base import Lookup
from bot.channels.connecting import Background
from bot.channels.slack.earlier_messages import EarlierMessages, ThreadReader
from bot.channels.slack.home import Homes
from bot.channels.slack.incoming_messages import IncomingMessage, read_correction, read_message
from bot.channels.slack.manifest import PROMPTS
from bot.channels.slack.marks import (
    find_channel_name,
    find_names,
    list_mentioned_users,
    make_readable,
    with_addresses,
)
from bot.channels.slack.people import SlackPeople
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.posting import post_directly, tell_person
from bot.channels.slack.program_messages import ProgramMessages
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.threads import FollowedThreads
from bot.channels.slack.workspaces import Workspace, Workspaces
from bot.domain.chat import Answer, Command, Inbox, Message, Reply
from bot.domain.people import Actor
from bot.domain.text import format_forwarded, format_group, format_thread
from bot.telemetry.logs import logger

log = logger(__name__)

_SUBCOMMANDS_WITH_REASON = frozenset({"decline"})
"""Subcommands that end in a reason for people, in which mentions do not become addresses."""
_MAX_LOOKUP_SECONDS = 1.5  # Slack waits 3 s for its acknowledgement
_GREETING_TEXT = "I do the work and ask before I change anything. What do you need?"
_CORRECTION_SUBTYPES = frozenset({"message_changed", "message_deleted"})
_NO_SHORTCUTS_TEXT = "I have no shortcuts. Write to me here, or mention me in a channel."
_EDITED_TEXT = "I don't read edited messages. Send the change as a new message."
_DELETED_TEXT = "I have read what you deleted. To stop me, press Slack's stop button in the thread."


@dataclass(frozen=True, slots=True)
class Events:
    """The handler of events and slash commands."""

    workspaces: Workspaces
    people: SlackPeople
    sessions: Sessions
    homes: Homes
    threads: FollowedThreads
    thread_reader: ThreadReader
    program_messages: ProgramMessages
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
            self.people.load_people(team, list_mentioned_users(message.text)),
        )
        names = {user: person.name for user, person in people.items()}
        text = _format_with_shared(message, names)
        earlier = EarlierMessages()
        if is_followed:  # the conversation has people's messages already
            earlier = await self.program_messages.load(message.place)
            text = format_group(earlier.lines, text)
        elif message.in_thread:
            earlier = await self.thread_reader.read_thread(message, workspace)
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
                await self.program_messages.delete(message.place)  # the core has them now
            if earlier.note:
                self.background.start(self._reply(message, earlier.note))
        elif reply.answer is not Answer.DUPLICATE and reply.text:
            self._refuse(message, actor, reply.text)

    def _refuse(self, message: IncomingMessage, actor: Actor, text: str) -> None:
        """Tell the author why their message was refused, once: a mention may come as two events."""
        if message.event_id in self.refused_events:
            return
        self.refused_events.append(message.event_id)
        if message.addressed or not actor.is_outsider:  # people from outside are told only if they called Nod
            self.background.start(self._reply(message, text))

    async def _reply(self, message: IncomingMessage, text: str) -> None:
        """Reply to the author where they see it.

        Slack shows an ephemeral message of a thread to no one before the thread has a reply.
        """
        place = message.place
        if place.private:
            await post_directly(self.workspaces, place, text)
        else:
            reply_place = place if message.in_thread else SlackPlace(place.team, place.channel)
            await tell_person(self.workspaces, reply_place, message.user, text)

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
        await self.program_messages.add(place, event)

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
        client = await self.workspaces.get_client(team)
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
        people = await self.people.load_people(team, list_mentioned_users(words))
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
