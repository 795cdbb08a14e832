"""What people and places are called: rows and rules keep accounts and addresses, people read names."""

import re
from collections.abc import Mapping

Names = Mapping[str, str]
"""Names by account (``slack:T1/U7``) or address of a chat (``slack:T1/C2``, ``telegram:-100``)."""

NO_NAMES: Names = {}

_OWN: Mapping[str, str] = {"http": "the console", "cli": "the command line"}
"""Nod's own channels: what is below them is no place to anyone."""

_WRITTEN = re.compile(r"`[^`\n]*`|(?<![\w:/])[a-z]+:-?\w(?:[\w/.-]*\w)?")


def written_in(text: str) -> frozenset[str]:
    """The accounts and addresses in a text; those in backticks are for typing and stay as they are."""
    return frozenset(each for each in _WRITTEN.findall(text) if not each.startswith("`"))


def with_names(text: str, names: Names) -> str:
    """The text with each account and address that has a name called by it."""
    return _WRITTEN.sub(lambda found: names.get(found[0]) or called(found[0], names) or found[0], text)


def called(what: str, names: Names) -> str:
    """The name of an account, of a place or of the chat that a thread is in; empty where none is known."""
    return next((names[each] for each in within(what) if each in names), "")


def within(what: str) -> list[str]:
    """An address and what it is a part of, the nearest first: a thread, its chat, their workspace."""
    steps = what.split("/")
    return ["/".join(steps[:count]) for count in range(len(steps), 0, -1)]


def place_called(place: str, names: Names) -> str:
    """What a place is called, or its address."""
    channel = place.partition(":")[0]
    return _OWN.get(channel) or called(place, names) or place


def channel_called(channel: str) -> str:
    """What people call a channel: a platform by its name, which is the folder's."""
    return _OWN.get(channel) or channel.capitalize()
