"""The words that people write in Discord: its marks for people, places, times, commands and emoji.

The marks: https://docs.discord.com/developers/reference#message-formatting. In code Discord shows them as
they are written, and so does Nod. A command's words come without the names of those whom they mention, so
Discord is asked for them.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from bot.channels.discord.places import NAME
from bot.channels.discord.transport import DiscordRest
from bot.domain.text import one_line
from bot.errors import ChannelError

MAX_NAMES = 20  # that are looked up for one message; the others are said to be unknown
_WAIT_SECONDS = 1.0
_CODE = r"(?P<code>```.{0,6000}?```|`[^`\n]{1,2000}`)"
_PERSON, _ROLE, _CHANNEL = (
    r"<@!?(?P<person>\d{1,20})>",
    r"<@&(?P<role>\d{1,20})>",
    r"<#(?P<channel>\d{1,20})>",
)
_TIME = r"<t:(?P<time>-?\d{1,13})(?::[tTdDfFsSR])?>"
_COMMAND = r"</(?P<command>[^:<>\n]{1,100}):\d{1,20}>"
_EMOJI = r"<a?:(?P<emoji>\w{1,32}):\d{1,20}>"
_GUIDE = r"<id:(?P<guide>[\w-]{1,32})(?::\d{1,20})?>"
_MARK = re.compile(f"{_CODE}|{_PERSON}|{_ROLE}|{_CHANNEL}|{_TIME}|{_COMMAND}|{_EMOJI}|{_GUIDE}", re.DOTALL)
_GUIDES = {
    "customize": "Channels & Roles",
    "browse": "Browse Channels",
    "guide": "Server Guide",
    "linked-roles": "Linked Roles",
}
_UNKNOWN = {"person": "@unknown person", "role": "@unknown role", "channel": "#unknown channel"}
_OWN = re.compile(
    rf"```.*?```|`[^`\n]*`|(?<![\w:/]){NAME}:(?:(?P<server>\d{{1,20}})/(?P<channel>\d{{1,20}})|(?P<person>\d{{1,20}}))(?![\w/])",
    re.DOTALL,
)

Names = Mapping[tuple[str, str], str]
"""The names of people, roles and channels, by the sort of mark and the id."""


def names_in(message: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the names that a message brings along, of its own mentions and of those in what it forwards."""
    found = {}
    for user in message.get("mentions") or ():
        called = (user.get("member") or {}).get("nick") or user.get("global_name") or user.get("username")
        found["person", str(user["id"])] = f"@{one_line(str(called or 'unknown person'))}"
    for channel in message.get("mention_channels") or ():
        found["channel", str(channel["id"])] = f"#{one_line(str(channel['name']))}"
    for each in message.get("message_snapshots") or ():
        found |= names_in(each.get("message") or {})
    return found


async def find_names(rest: DiscordRest, server: str, words: str, known: Names) -> Names:
    """Ask Discord what those are called that a text mentions; who can't be found is left out."""
    wanted = dict.fromkeys(
        (kind, ident)
        for found in _MARK.finditer(words)
        for kind in _UNKNOWN
        if (ident := found[kind]) and (kind, ident) not in known
    )
    asked = [*wanted][:MAX_NAMES]
    if not asked:
        return known
    if any(kind == "role" for kind, _ in asked):
        roles = await _roles(rest, server)
    else:
        roles = {}
    others = [each for each in asked if each[0] != "role"]
    told = await asyncio.gather(*(_name(rest, server, *each) for each in others))
    found = {each: name for each, name in zip(others, told, strict=True) if name}
    return {**known, **roles, **found}


async def _name(rest: DiscordRest, server: str, kind: str, ident: str) -> str:
    with suppress(ChannelError, KeyError, TypeError, AttributeError):
        if kind == "channel":
            channel = await rest.call("GET", f"/channels/{ident}", patience=_WAIT_SECONDS)
            return f"#{one_line(str(channel['name']))}"
        if server:
            member = await rest.call("GET", f"/guilds/{server}/members/{ident}", patience=_WAIT_SECONDS)
            return next(iter(names_in({"mentions": [{**member["user"], "member": member}]}).values()))
    return ""


async def _roles(rest: DiscordRest, server: str) -> dict[tuple[str, str], str]:
    with suppress(ChannelError, KeyError, TypeError):
        if server:
            found = await rest.call("GET", f"/guilds/{server}/roles", patience=_WAIT_SECONDS)
            return {("role", str(each["id"])): f"@{one_line(str(each['name']))}" for each in found}
    return {}


def as_words(words: str, names: Names) -> str:
    """Return a text with what its marks say to people, as Discord shows them."""

    def word(found: re.Match[str]) -> str:
        if found["time"]:
            return _moment(int(found["time"]), found[0])
        if found["command"]:
            return f"/{found['command']}"
        if found["emoji"]:
            return f":{found['emoji']}:"
        if found["guide"]:
            return f"#{_GUIDES.get(found['guide'], found['guide'])}"
        for kind, unknown in _UNKNOWN.items():
            if found[kind]:
                return names.get((kind, found[kind]), unknown)
        return found[0]

    return _MARK.sub(word, words)


def as_accounts(words: str, server: str, names: Names) -> str:
    """Return the words of an admin command: people and channels as Nod names them, the rest as words."""

    def account(found: re.Match[str]) -> str:
        if found["person"]:
            return f"{NAME}:{found['person']}"
        if found["channel"]:
            return f"{NAME}:{server}/{found['channel']}"
        return as_words(found[0], names)

    return _MARK.sub(account, words)


def with_mentions(markdown: str, server: str) -> str:
    """Turn accounts and channels of a server in Nod's own words into what Discord shows by name."""

    def shown(found: re.Match[str]) -> str:
        if found["person"]:
            return f"<@{found['person']}>"
        return f"<#{found['channel']}>" if found["channel"] and found["server"] == server else found[0]

    return _OWN.sub(shown, markdown)


def _moment(stamp: int, written: str) -> str:
    try:
        at = datetime.fromtimestamp(stamp, UTC)
    except (ValueError, OverflowError, OSError):
        return written
    return f"{at.day} {at:%b %Y, %H:%M} UTC"
