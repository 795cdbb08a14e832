"""People and accounts: an `Actor` is an account in a channel, a `Person` the human behind linked accounts.

Rows and rules have accounts (``slack:T1/U7``) and the addresses of chats (``slack:T1/C2``); people read
names. `Names` maps one to the other, and the functions at the end put names into texts.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Self

SHELL = "cli"
"""The channel of the person at this machine's shell. Nothing is posted there."""

NOD = "nod"
"""The channel of Nod itself: the lead agent decides as an account there."""

AGENTS = "agents"
"""The channel of agents' calls. No person has an account there, and nothing is posted there."""

# what Nod itself writes in place of a name, as "you", "policy (…)" or "grant G-7"; in letters and digits
# alone, since `_like_nods_own` compares names without spaces and signs
_NODS_OWN = re.compile(
    r"(you|nod|someone|noone|anyone)|(policy|your|theleadagent|leadagent|nodsince).*|.*grantg\d+.*"
)
_GROUP = re.compile(r"[\w-]+:[^/\s]+/(S[A-Z0-9]+|admins)")  # Slack's ids of user groups begin with S
# a text in backticks, or an account or address as in "by slack:T1/U7, in telegram:-100"
_ACCOUNT_OR_CODE = re.compile(r"`[^`\n]*`|(?<![\w:/])[a-z]+:-?\w(?:[\w/.-]*\w)?")
_CHANNEL_NAMES: Mapping[str, str] = {"http": "the console", "cli": "the command line", AGENTS: "a program"}
"""The names of Nod's own channels, for people. Each stands for all addresses below it."""


Names = Mapping[str, str]
"""Names by account (``slack:T1/U7``) or address of a chat (``slack:T1/C2``, ``telegram:-100``)."""

NO_NAMES: Names = {}


class Membership(StrEnum):
    """The relation of an account to the team that Nod works for, according to its platform."""

    MEMBER = "member"
    GUEST = "guest"  # let in by the team, and restricted there
    OUTSIDER = "another company"
    UNKNOWN = "unknown"  # the platform could not be asked


@dataclass(frozen=True, slots=True)
class Actor:
    """An account in a channel, written ``slack:T1/U7``, ``telegram:991``, ``http:ci``; equal by that."""

    channel: str
    key: str
    name: str = field(default="", compare=False)
    # None: the channel does not say it now, so its last report counts; without any, the account is a member
    standing: Membership | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.channel}:{self.key}"

    @property
    def is_outsider(self) -> bool:
        """True if the platform says that the account is from outside, or could not be asked."""
        return self.standing not in (None, Membership.MEMBER)

    @property
    def outside(self) -> bool:
        """The name by which plugins know `is_outsider`."""
        return self.is_outsider

    @property
    def label(self) -> str:
        """The name people know, or the account where none is known.

        A name that reads like Nod's own words ("you", "policy (…)") has its account behind it.
        """
        if not self.name or str(self) in self.name:
            return self.name or str(self)
        trusted = self == LOCAL or self.channel == NOD
        if trusted or not _like_nods_own(self.name):
            return self.name
        return f"{self.name} ({self})"

    @classmethod
    def parse(cls, text: str, name: str = "") -> Self:
        """Read ``channel:key``; raises ValueError when there is no colon or an empty half."""
        channel, colon, key = text.strip().partition(":")
        if not (colon and channel and key):
            raise ValueError(f"{text!r} is not of the form channel:account")
        return cls(channel, key, name)


def _like_nods_own(name: str) -> bool:
    folded = unicodedata.normalize("NFKC", name).casefold()
    return _NODS_OWN.fullmatch("".join(filter(str.isalnum, folded))) is not None


def is_group(text: str) -> bool:
    """Tell if a text names a user group or a chat's admins: ``slack:T1/S2``, ``telegram:-100/admins``."""
    return _GROUP.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class UserGroup:
    """A user group of a platform, as the platform last described it: the name, and the members' accounts."""

    name: str
    members: frozenset[str]


def workspace_of(text: str) -> str | None:
    """Return the workspace of an account or a place in it: ``slack:T1`` of ``slack:T1/U7``.

    None for an account in a channel that has no workspaces, such as ``telegram:991``.
    """
    workspace, slash, _ = text.partition("/")
    return workspace if slash else None


def role_counts_at(account: str, place: str | None) -> bool:
    """Return whether the roles of an account count at a place.

    They count everywhere but in other workspaces of the account's channel.
    """
    workspace = workspace_of(account)
    if workspace is None or place is None:
        return True
    if place.partition(":")[0] != workspace.partition(":")[0]:
        return True  # the place is in another channel
    return place == workspace or place.startswith(f"{workspace}/")


@dataclass(frozen=True, slots=True)
class Person:
    """One human being. Votes and self-approval are counted by ``id``, whichever account was used."""

    id: str
    name: str = field(default="", compare=False)
    accounts: frozenset[str] = field(default=frozenset(), compare=False)  # Actors, as text
    standing: Membership = field(default=Membership.MEMBER, compare=False)  # of the account in use

    @property
    def is_outsider(self) -> bool:
        """True if the person counts as someone from outside the team, also where the platform can't say."""
        return self.standing is not Membership.MEMBER


LOCAL = Actor("http", "local", "you")
"""The person at this machine, where no token is configured."""


@dataclass(frozen=True, slots=True)
class Absence:
    """The absence of a person, with the stand-in who decides for them until its end."""

    id: int
    absent: Actor
    stand_in: Actor
    until: datetime

    @property
    def label(self) -> str:
        """For example ``Ben for Ana``."""
        return f"{self.stand_in.label} for {self.absent.label}"

    def format_end(self, zone: tzinfo) -> str:
        """Format the end of the absence, for example ``Monday 30 Nov, 00:00 UTC``."""
        local = self.until.astimezone(zone)
        return f"{local:%A} {local.day} {local:%b, %H:%M} {local:%Z}"


class Role(StrEnum):
    """The rights of a Person beyond those of a requester."""

    ADMIN = "admin"  # may decide anything and change the rules
    APPROVER = "approver"  # may decide what others asked for


def find_accounts_in(text: str) -> frozenset[str]:
    """Return the accounts and addresses in a text, except in backticks, which hold what is to be typed."""
    return frozenset(word for word in _ACCOUNT_OR_CODE.findall(text) if not word.startswith("`"))


def with_names(text: str, names: Names) -> str:
    """Return the text with names in place of the accounts and addresses that have one."""

    def find_replacement(match: re.Match[str]) -> str:
        word = match[0]
        return names.get(word) or find_name(word, names) or word

    return _ACCOUNT_OR_CODE.sub(find_replacement, text)


def find_name(what: str, names: Names) -> str:
    """Return the name of an account or a place, or else the name of the nearest place around it.

    So a thread has the name of its chat. Empty where no name is known.
    """
    return next((names[place] for place in list_enclosing(what) if place in names), "")


def list_enclosing(what: str) -> list[str]:
    """Return an address and the places around it, nearest first: ``s:T/C/1`` -> ``s:T/C/1, s:T/C, s:T``."""
    steps = what.split("/")
    return ["/".join(steps[:count]) for count in range(len(steps), 0, -1)]


def name_of_place(place: str, names: Names) -> str:
    """Return the name of a place; its address where no name is known."""
    channel = place.partition(":")[0]
    return _CHANNEL_NAMES.get(channel) or find_name(place, names) or place


def name_of_channel(channel: str) -> str:
    """Return the name of a channel for people: ``slack`` -> ``Slack``."""
    return _CHANNEL_NAMES.get(channel) or channel.capitalize()
