"""A fact that people had Nod remember: one sentence about a person, a place (a chat) or a team.

The scope of a fact is this person, place or team. The model is told the fact in the conversations of its
scope. `check_fact` says which texts can be facts. This module reads no database.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import NamedTuple

from bot.domain.chat import Address, chat_of
from bot.domain.people import Actor, Person, workspace_of
from bot.domain.redaction import redact_text
from bot.domain.text import is_blank, one_line

MAX_FACT_CHARS = 500
MAX_SCOPE_CHARS = 4_000
"""The most characters of all facts about one person, one place or one team."""
# a word for a secret, and a value with a digit after it: "the password is hunter22", "api key: a1b2c3"
_SECRET = re.compile(
    r"(?i)\b(password|passphrase|passcode|pin|secret|token|(api|access|private)[ _-]?key)s?\b"
    r"\W{0,3}(is|are|=|:)?\s{0,3}(?=\S*\d)[^\s,]{4,}"
)


class About(StrEnum):
    """The kind of a fact's subject, and so in which conversations the model is told the fact."""

    PERSON = "person"
    PLACE = "place"
    TEAM = "team"

    @property
    def label(self) -> str:
        """The words for the subject on a card."""
        return _WORDS[self]


_WORDS = {
    About.PERSON: "the person who asked",
    About.PLACE: "this chat",
    About.TEAM: "the team",
}


class FactScope(NamedTuple):
    """The scope of a fact: the person, place or team that the fact is about.

    Examples: ``(PERSON, "slack:T1/U7")``, ``(PLACE, "slack:T1/C2")`` and ``(TEAM, "slack:T1")``.
    """

    about: About  # the kind of the subject
    subject: str  # an account, the address of a chat, or a team's workspace; empty without workspaces


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact with its scope, its author and its end."""

    id: int  # its number for people; 0 for a fact that is not stored yet
    text: str
    scope: FactScope
    asked_by: Actor  # the person who asked Nod to remember it
    said_at: datetime  # the time when a person said or edited it
    until: datetime | None  # the time from which it no longer holds; None: it holds without an end

    @property
    def about(self) -> About:
        return self.scope.about


def scope_of(about: About, asker: Actor, origin: Address) -> FactScope:
    """Return the scope of a fact from a conversation at ``origin``; threads share the scope of their chat."""
    match about:
        case About.PERSON:
            return FactScope(about, str(asker))
        case About.PLACE:
            return FactScope(about, str(chat_of(origin)))
        case About.TEAM:
            return FactScope(about, workspace_of(str(asker)) or "")


def own_scopes(person: Person) -> set[FactScope]:
    """Return the scopes of a person and of their accounts' teams; people of other companies have no team."""
    scopes = {FactScope(About.PERSON, account) for account in person.accounts}
    if not person.is_outsider:
        scopes |= {FactScope(About.TEAM, workspace_of(account) or "") for account in person.accounts}
    return scopes


def find_scopes_of_conversation(
    person: Person, asker: Actor, origin: Address, *, is_private_to_asker: bool
) -> set[FactScope]:
    """Return the scopes whose facts the model is told in a conversation at ``origin``.

    ``is_private_to_asker``: no one but the person reads the conversation, so facts about the person are
    included.
    """
    scopes = {scope_of(About.PLACE, asker, origin)}
    if not person.is_outsider:
        scopes.add(scope_of(About.TEAM, asker, origin))
    if is_private_to_asker:
        scopes |= {FactScope(About.PERSON, account) for account in person.accounts}
    return scopes


def find_last_day(until: datetime, zone: tzinfo) -> date:
    """Return the last day on which a fact holds that ends at ``until``, in this time zone."""
    return (until - timedelta(seconds=1)).astimezone(zone).date()


def check_fact(text: str) -> str:
    """Return a fact in its stored form, on one line. Raises ValueError, with the reason for people."""
    if len(text) > MAX_FACT_CHARS:
        raise ValueError(f"At most {MAX_FACT_CHARS} characters. Shorten it to what matters.")
    fact = one_line(text)
    if is_blank(fact):
        raise ValueError("Say what to remember.")
    if redact_text(fact) != fact or _SECRET.search(fact):
        raise ValueError("This looks like a secret, and secrets are not remembered. Leave it out.")
    return fact
