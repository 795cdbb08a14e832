"""Slack's events about messages, parsed: a person's message, and the edit or deletion of one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.channels.slack.marks import list_mentioned_users
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.reading import read_attachments, read_files, read_message_text
from bot.domain.attachments import Upload

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


def _remove_mention(text: str, bot_user: str) -> str:
    """Return a text without the mention of Nod that it begins with."""
    return re.sub(rf"^\s*<@{re.escape(bot_user)}(?:\|[^<>]*)?>[\s,:]*", "", text).strip()


def _write_substitute(event: Mapping[str, Any]) -> str:
    """Return the text for a message without words: a greeting, or a remark if it has unreadable contents."""
    if not read_message_text(event) and (event.get("blocks") or event.get("attachments")):
        return _UNREADABLE_TEXT
    return "Hello"
