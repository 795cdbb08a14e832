"""Reading text of Discord: its marks for people, places, times, commands and emoji.

A mark is text such as ``<@991>``, which Discord shows as the person's name. `write_marks_as_names` writes the
same name for the model. `write_marks_as_addresses` writes Nod's addresses for admin commands, and
`write_addresses_as_mentions` turns addresses into marks. In code Discord shows marks as they are written, and
so does Nod. A command comes without the names of the people that it mentions, so `find_names` asks Discord
for them. All marks: https://docs.discord.com/developers/reference#message-formatting.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bot.channels.discord.places import CHANNEL_NAME
from bot.channels.discord.transport import DiscordRest
from bot.domain.text import one_line
from bot.errors import ChannelError

MAX_NAMES = 20  # the names that are looked up for one message; further ones are written as unknown
_WAIT_SECONDS = 1.0  # the longest wait that Discord may ask for before a name is looked up
_CODE_PART = r"(?P<code>```.{0,6000}?```|`[^`\n]{1,2000}`)"
_PERSON_PART = r"<@!?(?P<person>\d{1,20})>"  # <@991>, <@!991>
_ROLE_PART = r"<@&(?P<role>\d{1,20})>"  # <@&7>
_CHANNEL_PART = r"<#(?P<channel>\d{1,20})>"  # <#5>
_TIME_PART = r"<t:(?P<time>-?\d{1,13})(?::[tTdDfFsSR])?>"  # <t:1700000000:R>
_COMMAND_PART = r"</(?P<command>[^:<>\n]{1,100}):\d{1,20}>"  # </nod:12>
_EMOJI_PART = r"<a?:(?P<emoji>\w{1,32}):\d{1,20}>"  # <:parrot:9>, animated <a:parrot:9>
_GUIDE_PART = r"<id:(?P<guide>[\w-]{1,32})(?::\d{1,20})?>"  # <id:browse>
_MARK_PATTERN = re.compile(
    f"{_CODE_PART}|{_PERSON_PART}|{_ROLE_PART}|{_CHANNEL_PART}|{_TIME_PART}|{_COMMAND_PART}|{_EMOJI_PART}|{_GUIDE_PART}",
    re.DOTALL,
)
_GUIDE_NAMES = {
    "customize": "Channels & Roles",
    "browse": "Browse Channels",
    "guide": "Server Guide",
    "linked-roles": "Linked Roles",
}
_UNKNOWN_NAMES = {"person": "@unknown person", "role": "@unknown role", "channel": "#unknown channel"}
"""The words for a mark whose name is not known, for the three kinds of marks that have names."""
# an address of Nod's: discord:SERVER/CHANNEL, discord:PERSON; or code, for which no group is filled
_ADDRESS_PATTERN = re.compile(
    rf"```.*?```|`[^`\n]*`|(?<![\w:/]){CHANNEL_NAME}:(?:(?P<server>\d{{1,20}})/(?P<channel>\d{{1,20}})|(?P<person>\d{{1,20}}))(?![\w/])",
    re.DOTALL,
)


class Mention(NamedTuple):
    """A mark for something that has a name."""

    kind: str  # "person", "role" or "channel"
    id: str


MentionNames = Mapping[Mention, str]
"""The names of people, roles and channels, as Discord shows them: with their "@" or "#"."""


def list_names_in(message: Mapping[str, Any]) -> dict[Mention, str]:
    """Return the names of the accounts that a message, or a message forwarded in it, mentions."""
    names: dict[Mention, str] = {}
    for user in message.get("mentions") or ():
        name = (user.get("member") or {}).get("nick") or user.get("global_name") or user.get("username")
        names[Mention("person", str(user["id"]))] = f"@{one_line(str(name or 'unknown person'))}"
    for channel in message.get("mention_channels") or ():
        names[Mention("channel", str(channel["id"]))] = f"#{one_line(str(channel['name']))}"
    for snapshot in message.get("message_snapshots") or ():
        names |= list_names_in(snapshot.get("message") or {})
    return names


async def find_names(rest: DiscordRest, server: str, text: str, known: MentionNames) -> MentionNames:
    """Return ``known`` and the names that Discord gives for at most `MAX_NAMES` other mentions in a text."""
    unnamed: dict[Mention, None] = {}  # the mentions without a known name, each once
    for match in _MARK_PATTERN.finditer(text):
        for kind in _UNKNOWN_NAMES:
            mention = Mention(kind, match[kind])
            if mention.id and mention not in known:
                unnamed[mention] = None
    mentions = list(unnamed)[:MAX_NAMES]
    if not mentions:
        return known
    roles: dict[Mention, str] = {}
    if any(mention.kind == "role" for mention in mentions):
        roles = await _fetch_roles(rest, server)
    others = [mention for mention in mentions if mention.kind != "role"]
    fetched = await asyncio.gather(*(_fetch_name(rest, server, mention) for mention in others))
    names = {mention: name for mention, name in zip(others, fetched, strict=True) if name}
    return {**known, **roles, **names}


async def _fetch_name(rest: DiscordRest, server: str, mention: Mention) -> str:
    """Return the name of a person or a channel; empty if Discord does not give it in time."""
    with suppress(ChannelError, KeyError, TypeError, AttributeError):
        if mention.kind == "channel":
            channel = await rest.call("GET", f"/channels/{mention.id}", patience=_WAIT_SECONDS)
            return f"#{one_line(str(channel['name']))}"
        if server:
            member = await rest.call("GET", f"/guilds/{server}/members/{mention.id}", patience=_WAIT_SECONDS)
            user = {**member["user"], "member": member}  # in the shape in which a message names people
            names = list_names_in({"mentions": [user]})
            return names[Mention("person", str(user["id"]))]
    return ""


async def _fetch_roles(rest: DiscordRest, server: str) -> dict[Mention, str]:
    with suppress(ChannelError, KeyError, TypeError):
        if server:
            roles = await rest.call("GET", f"/guilds/{server}/roles", patience=_WAIT_SECONDS)
            return {Mention("role", str(role["id"])): f"@{one_line(str(role['name']))}" for role in roles}
    return {}


def write_marks_as_names(text: str, names: MentionNames) -> str:
    """Return a text with names in place of its marks, as Discord shows it to people."""

    def write_mark(match: re.Match[str]) -> str:
        if match["time"]:
            return _format_time(int(match["time"]), match[0])
        if match["command"]:
            return f"/{match['command']}"
        if match["emoji"]:
            return f":{match['emoji']}:"
        if match["guide"]:
            return f"#{_GUIDE_NAMES.get(match['guide'], match['guide'])}"
        for kind, unknown in _UNKNOWN_NAMES.items():
            if match[kind]:
                return names.get(Mention(kind, match[kind]), unknown)
        return match[0]

    return _MARK_PATTERN.sub(write_mark, text)


def write_marks_as_addresses(text: str, server: str, names: MentionNames) -> str:
    """Return the text of an admin command with people and channels as addresses, other marks as names."""

    def write_mark(match: re.Match[str]) -> str:
        if match["person"]:
            return f"{CHANNEL_NAME}:{match['person']}"
        if match["channel"]:
            return f"{CHANNEL_NAME}:{server}/{match['channel']}"
        return write_marks_as_names(match[0], names)

    return _MARK_PATTERN.sub(write_mark, text)


def write_addresses_as_mentions(markdown: str, server: str) -> str:
    """Replace addresses of people and of a server's channels by mentions, which Discord shows by name."""

    def write_mention(match: re.Match[str]) -> str:
        if match["person"]:
            return f"<@{match['person']}>"
        if match["channel"] and match["server"] == server:
            return f"<#{match['channel']}>"
        return match[0]

    return _ADDRESS_PATTERN.sub(write_mention, markdown)


def _format_time(timestamp: int, written: str) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        return written
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"
