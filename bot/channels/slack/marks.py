"""Slack's marks in a text: ``<@U1>`` is a person, ``<#C1>`` a channel, ``<https://a.test|words>`` a link.

The model gets a text with the names of people and channels (`make_readable`). Admin commands get Nod's
addresses in place of the marks (`with_addresses`). Some marks bring the name along, such as ``<@U1|ana>``;
for the others the caller looks the name up in Slack. Pure.
"""

import re
from collections.abc import Mapping
from html import unescape

from bot.channels.slack.places import NAME, actor_of
from bot.domain.people import Actor

# Slack's marks in a text: docs.slack.dev/messaging/formatting-message-text
_USER_PATTERN = re.compile(r"<@([A-Z0-9]+)(?:\|([^<>]*))?>")  # <@U1>, <@U1|ana>
_CHANNEL_PATTERN = re.compile(r"<#([A-Z0-9]+)(?:\|([^<>]*))?>")  # <#C1>, <#C1|general>
_GROUP_PATTERN = re.compile(r"<!subteam\^([A-Z0-9]+)(?:\|([^<>]*))?>")  # <!subteam^S1>, <!subteam^S1|@ops>
_LINK_PATTERN = re.compile(r"<((?:https?|mailto|tel):[^<>|]+)(?:\|([^<>]*))?>")  # <https://a.test|words>
_SPECIAL_PATTERN = re.compile(
    r"<!(?:subteam\^[A-Z0-9]+\|@?)?(?P<keyword>[^<>|^]+)(?:\^[^<>|]*)?(?:\|(?P<words>[^<>]*))?>"
)
"""A group, ``<!here>``, or a date such as ``<!date^1700^{date}|1 May>``.

``keyword``: the group's name ("subteam" for a group without a name), or a keyword, such as here or date.
``words``: the words to show.
"""
_PLACEHOLDER_NAMES = frozenset({"privategroup", "directmessage"})  # Slack writes these in place of a name


def list_mentioned_users(text: str) -> list[str]:
    """List the ids of users named in a text, each once."""
    return list(dict.fromkeys(match[1] for match in _USER_PATTERN.finditer(text)))


def with_addresses(text: str, team: str, accounts: Mapping[str, Actor]) -> str:
    """Replace Slack's marks for people, groups and channels by addresses: ``<@U2>`` by ``slack:T1/U2``.

    Admin commands read addresses. ``accounts``: people's accounts by user id; other people are of ``team``.
    """

    def write_account(match: re.Match[str]) -> str:
        return str(accounts.get(match[1]) or actor_of(team, match[1]))

    text = _GROUP_PATTERN.sub(rf"{NAME}:{team}/\1", text)
    text = _USER_PATTERN.sub(write_account, text)
    return _CHANNEL_PATTERN.sub(rf"{NAME}:{team}/\1", text)


def find_names(text: str, team: str) -> dict[str, str]:
    """Return the names that Slack gives for people and channels in a text, by their address."""
    names = {}
    for match in (*_USER_PATTERN.finditer(text), *_GROUP_PATTERN.finditer(text)):
        if match[2]:
            names[f"{NAME}:{team}/{match[1]}"] = match[2]
    for match in _CHANNEL_PATTERN.finditer(text):
        if match[2]:
            names[f"{NAME}:{team}/{match[1]}"] = f"#{match[2]}"
    return names


def find_channel_name(team: str, channel: str, name: str) -> dict[str, str]:
    """Return the name of a channel by its address; nothing for a private channel, or without a name."""
    if not channel.startswith("C") or name in _PLACEHOLDER_NAMES or not name:
        return {}
    return {f"{NAME}:{team}/{channel}": f"#{name}"}


def make_readable(text: str, names: Mapping[str, str]) -> str:
    """Turn Slack's marks into words for the model: ``@Ana``, ``#general``, plain links."""
    text = _USER_PATTERN.sub(lambda match: f"@{names.get(match[1]) or match[2] or match[1]}", text)
    text = _CHANNEL_PATTERN.sub(lambda match: f"#{match[2] or match[1]}", text)
    text = _LINK_PATTERN.sub(_format_link, text)
    text = _SPECIAL_PATTERN.sub(_format_special, text)
    return unescape(text)


def _format_link(match: re.Match[str]) -> str:
    url, label = match[1], match[2]
    if label and label not in url:
        return f"{label} ({url})"
    return url.removeprefix("mailto:").removeprefix("tel:")


def _format_special(match: re.Match[str]) -> str:
    keyword, words = match["keyword"], match["words"]
    if words:
        return words
    return "@group" if keyword == "subteam" else f"@{keyword}"
