"""Approve similar: a grant lets further calls run that are like one that people approved.

A grant has a *scope* (how much a call must be like the approved one), an *audience* (whose calls, and where)
and a *duration*. The scopes that one call offers are a ladder, from exactly these arguments to any call of
the tool (`list_grant_scopes`). A press and the HTTP API have other names for the three: ``rung`` (a rung of
this ladder) is the scope, ``reach`` the audience, and ``lasting`` the duration.

A grant is matched against full canonical arguments, never against what a card displayed. A tool may give its
calls a `Likeness`: a key (for a file the resolved folder) and a beginning (the first words of a command).
Both are computed again for each call, so another spelling of a path, ``..``, a symlink or a letter's case
can't widen the grant.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from bot.domain.digests import to_canonical_json
from bot.domain.rules import covers
from bot.domain.text import SHORT_ID_CHARS

_HERE = "the conversation where it was asked"
_CHAT = "the chat where it was asked"


class GrantScope(StrEnum):
    """The scope of a grant, narrowest first. A press and the HTTP API call it ``rung``."""

    EXACT = "exact"  # exactly these arguments
    KEY = "key"  # the same tool with the same key arguments
    PREFIX = "prefix"  # the same tool, where the call begins alike: a command's first words, a folder
    TOOL = "tool"  # the same tool


class GrantDuration(StrEnum):
    """The duration of a grant. A press and the HTTP API call it ``lasting``."""

    CONVERSATION = "conversation"  # until the conversation ends
    HOUR = "1h"
    EIGHT_HOURS = "8h"
    DAY = "24h"

    @property
    def span(self) -> timedelta | None:
        """The length of time; None for `CONVERSATION`."""
        return {"1h": timedelta(hours=1), "8h": timedelta(hours=8), "24h": timedelta(hours=24)}.get(self)

    @property
    def label(self) -> str:
        """The duration as people choose it."""
        named = {"1h": "1 hour", "8h": "8 hours", "24h": "24 hours"}
        return named.get(self, "As long as this conversation")


class GrantAudience(StrEnum):
    """The people whose calls a grant lets run, and the places. A press and the HTTP API call it ``reach``."""

    HERE = "here"  # calls of the requester, in the conversation of the card; the default
    REQUESTER = "requester"  # calls of the requester, everywhere
    CHAT = "chat"  # calls of everyone in that chat; only an admin may give it
    EVERYONE = "everyone"  # calls of everyone, everywhere; only an admin may give it
    SCHEDULE = "schedule"  # runs of the schedule that asked for this call

    @property
    def is_wide(self) -> bool:
        """True if the grant is for other people, too."""
        return self in (GrantAudience.CHAT, GrantAudience.EVERYONE)

    def describe(self, requester: str, here: str = _HERE, chat: str = _CHAT, schedule: str = "") -> str:
        """Return the audience in words, for example ``Ana everywhere``.

        ``here`` and ``chat`` are the names of the grant's conversation and chat, ``schedule`` the id of its
        schedule.
        """
        return {
            GrantAudience.HERE: f"{requester} in {here}",
            GrantAudience.REQUESTER: f"{requester} everywhere",
            GrantAudience.CHAT: f"everyone in {chat}",
            GrantAudience.EVERYONE: "everyone everywhere",
            GrantAudience.SCHEDULE: f"runs of {requester}'s schedule {schedule[:SHORT_ID_CHARS]}".rstrip(),
        }[self]


class Beginning(NamedTuple):
    """The beginning of a call, in parts: words of a command, or the folders of a path with links followed.

    Of ``git push origin main`` a grant may fix the first two words, so it allows any call of ``git push``.
    """

    words: tuple[str, ...] = ()  # the parts; empty: the call has no beginning, so no PREFIX grant covers it
    fixed: int = 0  # the number of first parts that calls under a grant must share
    said: str = ""  # a description of the calls that such a grant allows


NO_BEGINNING = Beginning()


class Likeness(NamedTuple):
    """The properties by which a tool says which calls are alike."""

    key: Mapping[str, Any] | None = None  # the arguments that alike calls share; None: the tool names none
    begins: Beginning = NO_BEGINNING  # the beginning, whose fixed words alike calls share


@dataclass(frozen=True, slots=True)
class Scope:
    """The calls that a grant covers: the `GrantScope`, and what a call must have in common with it."""

    tool_name: str
    tool_version: str
    rung: GrantScope  # how much a call must have in common with the approved one; named as in a press
    match: str  # what it must have in common, as canonical JSON: all arguments, the key or the words

    def covers(self, tool_name: str, tool_version: str, arguments: Mapping[str, Any], like: Likeness) -> bool:
        """Return whether a call is within the scope. A tool that changed since is another tool."""
        if (tool_name, tool_version) != (self.tool_name, self.tool_version):
            return False
        match self.rung:
            case GrantScope.EXACT:
                return to_canonical_json(arguments) == self.match
            case GrantScope.KEY:
                return like.key is not None and to_canonical_json(like.key) == self.match
            case GrantScope.PREFIX:
                fixed_words = json.loads(self.match)
                first_words = list(like.begins.words[: len(fixed_words)])
                return bool(fixed_words) and first_words == fixed_words
            case GrantScope.TOOL:
                return True


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission for similar calls, given with one decision. People know it as ``G-7``.

    Its audience is in the fields ``conversation_id``, ``requester``, ``place`` and ``schedule``.
    """

    id: int
    scope: Scope
    description: str  # the allowed calls, for people
    person_id: str  # the person who gave it
    person_name: str
    conversation_id: str | None  # the conversation in which alone it holds, and with which it ends
    requester: str | None  # an account of the one Person whose calls it lets run; None: everyone's
    place: str | None  # the address, as text, at and below which it holds; None: everywhere
    proposal_id: str
    created_at: datetime
    expires_at: datetime | None  # None: it has no time at which it ends
    uses: int = 0  # the number of calls that it let run
    plan_digest: str | None = None  # the digest of the plan that gave it: it holds while that plan is current
    schedule: str | None = None  # the id of the schedule whose calls alone it lets run
    connection: str | None = None  # the key of the connection whose calls it lets run; None: Nod's calls

    @property
    def label(self) -> str:
        return f"G-{self.id}"

    def is_for(self, accounts: frozenset[str], place: str) -> bool:
        """Return whether the grant is for a Person with these accounts who asks at this address."""
        is_for_person = self.requester is None or self.requester in accounts
        is_for_place = self.place is None or covers(self.place, place)
        return is_for_person and is_for_place


def list_grant_scopes(
    tool_name: str,
    tool_version: str,
    arguments: Mapping[str, Any],
    like: Likeness,
    shown: Mapping[str, Any] | None = None,
) -> list[tuple[Scope, str]]:
    """Return the scopes that a grant for a call may have, narrowest first, each with its calls in words.

    ``like``: the likeness of the call. ``shown``: the likeness's key without secrets, for the words; the
    scope has the true key.
    """
    scopes = [(GrantScope.EXACT, to_canonical_json(arguments), "with exactly these arguments")]
    if like.key:
        values = ", ".join(f"{name} = {value}" for name, value in (shown or like.key).items())
        scopes.append((GrantScope.KEY, to_canonical_json(like.key), f"with {values}, whatever the rest"))
    if like.begins.fixed:
        fixed_words = like.begins.words[: like.begins.fixed]
        scopes.append((GrantScope.PREFIX, to_canonical_json(fixed_words), like.begins.said))
    scopes.append((GrantScope.TOOL, "", "with any arguments"))
    return [
        (Scope(tool_name, tool_version, scope, match), f"{tool_name} {words}")
        for scope, match, words in scopes
    ]
