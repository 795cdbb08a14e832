"""Events and slash commands from Slack to the inbox.

Slack counts an event as delivered once it is acknowledged, so a message is in the database before that:
bolt's middleware calls `Events.take_in` and answers after it. Whatever fails there is answered with an error,
and Slack delivers again; the inbox stops the second delivery by its event id.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.base import Lookup
from bot.channels.connecting import Background
from bot.channels.slack.ephemerals import Ephemerals
from bot.channels.slack.home import Homes
from bot.channels.slack.incoming import (
    FollowedThreads,
    Said,
    channel_named,
    corrected_in,
    mentioned_users,
    named_in,
    not_seen,
    readable,
    said_by,
    said_in,
    with_addresses,
)
from bot.channels.slack.manifest import PROMPTS
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.sessions import Sessions
from bot.channels.slack.workspaces import Workspaces
from bot.domain.chat import Answer, Command, Inbox, Message, Reply
from bot.domain.text import forwarded, in_thread
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

_PROSE = frozenset({"decline"})  # words of `/approvals` that are followed by a reason, for people
_MOST_READ = 200  # messages of a thread
_MOST_NAMED = 10  # people in one text whose names are looked up
_LOOKING = 1.5  # seconds; Slack waits 3 for its acknowledgement
_GREETING = "I do the work and ask before I change anything. What do you need?"
_CORRECTIONS = frozenset({"message_changed", "message_deleted"})
_EDITED = "I don't read edited messages. Send the change as a new message."
_DELETED = "I have read what you deleted. To stop me, press Slack's stop button in the thread."


class Events:
    """Takes in what the Events API and slash commands deliver."""

    def __init__(
        self,
        workspaces: Workspaces,
        sessions: Sessions,
        homes: Homes,
        ephemerals: Ephemerals,
        threads: FollowedThreads,
        *,
        inbox: Inbox,
        lookup: Lookup,
    ) -> None:
        self._workspaces = workspaces
        self._sessions = sessions
        self._homes = homes
        self._ephemerals = ephemerals
        self._threads = threads
        self._lookup = lookup
        self._inbox = inbox
        self._background = Background(
            "Slack rejected a best-effort call", SlackClientError, aiohttp.ClientError, OSError
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
                self._background.start(self._opened(event, team))
            case "app_uninstalled":
                await self._workspaces.mark_off(team, "the app was uninstalled")
            case "tokens_revoked" if (event.get("tokens") or {}).get("bot"):
                await self._workspaces.mark_off(team, "the bot token was revoked")
            case _:
                pass  # subscribed for what Slack wants to see, nothing to do

    async def _corrected(self, body: Mapping[str, Any], team: str) -> None:
        """Say that a correction was not read where Nod has the words; take in a mention that came by it."""
        workspace = await self._workspaces.find(team)
        found = corrected_in(body, team, workspace.bot_user) if workspace else None
        if found is None:
            return
        if await self._follows(found.place):
            words = _DELETED if found.deleted else _EDITED
            self._background.start(self._ephemerals.tell(found.place, found.user, words))
        elif found.as_mention is not None:
            await self._message({**body, "event": found.as_mention}, team)

    async def _message(self, body: Mapping[str, Any], team: str) -> None:
        workspace = await self._workspaces.find(team)
        said = said_in(body, team, workspace.bot_user) if workspace else None
        follows = said is not None and said.in_thread and await self._follows(said.place)
        if workspace is None or said is None or not (said.addressed or follows):
            return
        people = mentioned_users(said.text)[:_MOST_NAMED]
        actor, *found = await asyncio.gather(
            self._workspaces.actor(team, said.user, *said.teams),
            *(self._workspaces.actor(team, user) for user in people),
        )
        names = {user: each.name for user, each in zip(people, found, strict=True)}
        text = readable(said.text, names)
        for author, passed_on in reversed(said.shared):
            text = forwarded(author, readable(passed_on, {}), text)
        if said.in_thread and not follows:
            text = in_thread(await self._thread(said, workspace.bot_user), text)
        reply = await self._inbox(
            Message(
                address=said.place.address,
                actor=actor,
                text=text,
                event_id=said.event_id,
                private=said.place.private,
                names=named_in(said.text, team),
            )
        )
        if reply.answer is Answer.ACCEPTED:
            self._sessions.begin(said.place, readable(said.text, names))
            if words := not_seen(said):
                self._background.start(self._ephemerals.tell(said.place, said.user, words))
        elif reply.answer is not Answer.DUPLICATE and reply.text and (said.addressed or not actor.outside):
            self._background.start(self._ephemerals.tell(said.place, said.user, reply.text))

    async def _thread(self, said: Said, bot_user: str) -> list[tuple[str, str]]:
        """Who wrote what in the thread before; nothing where it can't be read soon, for Slack waits."""
        team, place = said.place.team, said.place
        try:
            async with asyncio.timeout(_LOOKING):
                client = await self._workspaces.client(team)
                page = await client.conversations_replies(
                    channel=place.channel, ts=str(place.thread), latest=said.ts, limit=_MOST_READ
                )
                shown: list[dict[str, Any]] = page.get("messages") or []
                before = [m for m in shown if m.get("ts") != said.ts]
                users = list(dict.fromkeys(str(m["user"]) for m in before if m.get("user")))[:_MOST_NAMED]
                found = await asyncio.gather(*(self._workspaces.actor(team, user) for user in users))
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError, ChannelError) as error:
            log.info("a thread could not be read", place=str(place.address), why=str(error))
            return []
        names = {user: each.name or user for user, each in zip(users, found, strict=True)} | {bot_user: "you"}
        return [
            (
                names.get(str(m.get("user"))) or str(m.get("username") or "someone"),
                readable(said_by(m), names),
            )
            for m in before
        ]

    async def _follows(self, place: SlackPlace) -> bool:
        """Whether the bot takes part in this thread, and listens without a mention."""
        return await self._lookup.follows(place.address) and await self._threads.listens(place)

    async def _stopped(self, event: Mapping[str, Any], team: str) -> None:
        place = SlackPlace(team, event["channel"], event.get("thread_ts"))
        actor = await self._workspaces.actor(team, event.get("user") or "unknown")
        reply = await self._inbox(Command(actor, "stop", "", place.address, place.private))
        log.info("a person pressed stop", place=str(place.address), answer=reply.answer)

    async def _opened(self, event: Mapping[str, Any], team: str) -> None:
        user = event["user"]
        if event.get("tab") == "home":
            await self._homes.opened(team, user)
            return
        client = await self._workspaces.client(team)
        await client.assistant_threads_setSuggestedPrompts(
            channel_id=event["channel"],
            title=_GREETING,
            prompts=[{"title": title, "message": message} for title, message in PROMPTS],
        )

    async def command(self, body: Mapping[str, Any], team: str) -> Reply:
        """Hand on a slash command; it carries no thread, so its address is the channel."""
        place = SlackPlace(team, body["channel_id"])
        name = str(body.get("user_name") or "")
        actor = await self._workspaces.actor(team, body["user_id"], name=name)
        word, words = str(body["command"]).removeprefix("/"), str(body.get("text") or "")
        names = named_in(words, team)
        people = mentioned_users(words)[:_MOST_NAMED]
        found = await asyncio.gather(*(self._workspaces.actor(team, user) for user in people))
        names |= {str(each): each.name for each in found if each.name}
        if words.partition(" ")[0] not in _PROSE:
            words = with_addresses(words, team, dict(zip(people, found, strict=True)))
        words = readable(words, {})
        names |= channel_named(team, place.channel, str(body.get("channel_name") or ""))
        return await self._inbox(
            Command(actor, word, words, place.address, place.private, in_conversation=False, names=names)
        )

    async def close(self) -> None:
        await self._background.close()
