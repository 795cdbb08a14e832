"""Facts that people had Nod remember, with their scopes and limits."""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum

from bot.domain.chat import Address, chat_of
from bot.domain.people import Actor, Person, workspace_of
from bot.domain.redaction import redact_text
from bot.domain.text import blank, one_line

LONGEST = 500
"""The most characters of one fact."""
ROOM = 4_000
"""The most characters of all facts for one person, one place or one team."""
_TOLD = re.compile(
    r"(?i)\b(password|passphrase|passcode|pin|secret|token|(api|access|private)[ _-]?key)s?\b"
    r"\W{0,3}(is|are|=|:)?\s{0,3}(?=\S*\d)[^\s,]{4,}"
)


class About(StrEnum):
    """The subject of a fact: the model is told the fact only in conversations of that subject."""

    PERSON = "person"
    PLACE = "place"
    TEAM = "team"

    @property
    def words(self) -> str:
        """The words for the subject on a card."""
        return _WORDS[self]


_WORDS = {
    About.PERSON: "the person who asked",
    About.PLACE: "this chat",
    About.TEAM: "the team",
}

Scope = tuple[About, str]
"""The scope of a fact: an account, the address of a chat, or a workspace, which may be empty."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact. ``said_at``: the time when a person said or edited it."""

    id: int
    text: str
    scope: Scope
    asked_by: Actor
    said_at: datetime
    until: datetime | None

    @property
    def about(self) -> About:
        return self.scope[0]


def scope_of(about: About, asker: Actor, origin: Address) -> Scope:
    """Return the scope of a fact from a conversation; threads share the scope of their chat."""
    match about:
        case About.PERSON:
            return about, str(asker)
        case About.PLACE:
            return about, str(chat_of(origin))
        case About.TEAM:
            return about, workspace_of(str(asker)) or ""


def own_scopes(person: Person) -> set[Scope]:
    """Return the scopes of a person and of their accounts' teams; outsiders have no team."""
    teams = () if person.outside else person.accounts
    return {(About.PERSON, each) for each in person.accounts} | {
        (About.TEAM, workspace_of(each) or "") for each in teams
    }


def find_scopes_there(person: Person, asker: Actor, origin: Address, *, alone: bool) -> set[Scope]:
    """Return the scopes whose facts the model is told; a person's own only if no one else reads along."""
    found = {scope_of(About.PLACE, asker, origin)}
    if not person.outside:
        found.add(scope_of(About.TEAM, asker, origin))
    return found | ({(About.PERSON, each) for each in person.accounts} if alone else set())


def last_day(until: datetime, zone: tzinfo) -> date:
    """Return the last day on which a fact holds, in the time zone of its people."""
    return (until - timedelta(seconds=1)).astimezone(zone).date()


def check_fact(text: str) -> str:
    """Return a fact in its stored form, on one line. Raises ValueError, with the reason for people."""
    if len(text) > LONGEST:
        raise ValueError(f"At most {LONGEST} characters. Shorten it to what matters.")
    fact = one_line(text)
    if blank(fact):
        raise ValueError("Say what to remember.")
    if redact_text(fact) != fact or _TOLD.search(fact):
        raise ValueError("This looks like a secret, and secrets are not remembered. Leave it out.")
    return fact
