"""Access to remembered facts: who may see a fact, and who may change it.

A person's facts are theirs alone. A place's facts are seen by everyone who is or wrote there, a team's by its
people. The person who had them remembered, and admins there, may change them.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

from sqlmodel import Session

from bot.approvals import rights
from bot.domain.chat import Address
from bot.domain.conversations import Conversation
from bot.domain.people import Actor, Role
from bot.domain.record import Act
from bot.domain.rules import EVERYWHERE, covers
from bot.errors import ToolError
from bot.features.memory import rows
from bot.features.memory.facts import ROOM, About, Fact, check_fact, find_scopes_there, own_scopes, scope_of
from bot.store import conversations, people
from bot.store.audit.log import By
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

_NOT_YOURS = "There is no fact {} that you may change. `/nod memory` lists them."


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact as one person sees it. ``whose`` names the person, place or team that it is for.

    ``oldest``: there is hardly room for more facts of its kind, and this fact is the oldest.
    """

    id: int
    fact: str
    about: About
    whose: str
    asked_by: str
    asked_name: str
    said_at: datetime
    until: datetime | None
    may_change: bool
    oldest: bool


def remember(session: Session, fact: Fact) -> bool:
    """Store a fact. Return False if it is stored already; then it holds until the later of both ends.

    Raises ToolError if there is no room for it.
    """
    conversation_lock.everywhere(session)
    there = rows.list_facts(session, [fact.scope], fact.said_at)
    by = people.by(session, Act.REMEMBER, fact.asked_by)
    for each in there:
        if each.text == fact.text:
            if each.until and (fact.until is None or fact.until > each.until):
                rows.change_fact(session, replace(each, until=fact.until, said_at=fact.said_at), by)
            return False
    _check_room(there, fact)
    rows.add_fact(session, fact, by)
    return True


def _check_room(there: list[Fact], fact: Fact) -> None:
    others = [each for each in there if each.id != fact.id]
    if sum(len(each.text) for each in others) + len(fact.text) > ROOM:
        raise ToolError(
            f"No room: what is remembered for one {fact.about} takes {ROOM:,} characters at most. "
            f"The oldest: “{_oldest(others).text}”. Forget it first."
        )


def _oldest(facts: list[Fact]) -> Fact:
    return min(facts, key=lambda each: (each.said_at, each.id))


def list_for_prompt(session: Session, here: Conversation, asker: Actor, now: datetime) -> list[Fact]:
    """Return the facts that the model is told in a conversation.

    A person's facts are included only in their own private conversation, where they themselves ask.
    """
    person = people.person_of(session, asker)
    alone = here.private and people.person_of(session, here.requester) == person
    return rows.list_facts(session, find_scopes_there(person, asker, here.origin, alone=alone), now)


def list_visible(
    session: Session, policies: Policies, actor: Actor, now: datetime, at: Address | None = None
) -> list[KnownFact]:
    """Return the facts that a person may see. With ``at``, the facts of other chats are left out."""
    reader = _Reader(session, policies, actor)
    here = scope_of(About.PLACE, actor, at) if at else None
    found = [
        each
        for each in rows.of_all_but_others(session, reader.person.accounts, now)
        if each.scope == here or (reader.sees(each) and (here is None or each.about is not About.PLACE))
    ]
    kinds = {each.scope: [f for f in found if f.scope == each.scope] for each in found}
    full = {_oldest(same).id for same in kinds.values() if sum(len(f.text) for f in same) > ROOM * 3 // 4}
    names = people.find_known_names(session, [str(each.asked_by) for each in found])

    def mine(fact: Fact) -> bool:
        return str(fact.asked_by) in reader.person.accounts

    return [
        KnownFact(
            id=each.id,
            fact=each.text,
            about=each.about,
            whose=_whose(session, each),
            asked_by=str(each.asked_by),
            asked_name="you" if mine(each) else names.get(str(each.asked_by)) or each.asked_by.label,
            said_at=each.said_at,
            until=each.until,
            may_change=reader.may_change(each),
            oldest=each.id in full,
        )
        for each in found
    ]


def _whose(session: Session, fact: Fact) -> str:
    if fact.about is About.PERSON:
        return "you"
    return people.put_names_in(session, fact.scope[1]) or "the team"


def change_fact(
    session: Session, policies: Policies, actor: Actor, ident: int, words: str, now: datetime
) -> str | None:
    """Change the words of a fact, and return the stored words; None if this person may not change it.

    Raises ValueError for words that can't be remembered, ToolError without room.
    """
    text = check_fact(words)
    conversation_lock.everywhere(session)
    reader, fact = _changeable(session, policies, actor, ident, now)
    if fact is None:
        return None
    changed = replace(fact, text=text, said_at=now)
    _check_room(rows.list_facts(session, [fact.scope], now), changed)
    rows.change_fact(session, changed, By.press(Act.REMEMBER, actor, reader.person))
    return text


def forget_fact(session: Session, policies: Policies, actor: Actor, ident: int, now: datetime) -> str | None:
    """Delete a fact, and return its words; None if this person may not delete it, or it does not exist."""
    reader, fact = _changeable(session, policies, actor, ident, now)
    if fact is None:
        return None
    rows.remove_facts(session, [ident], By.press(Act.FORGET, actor, reader.person), now)
    return fact.text


def not_yours_text(ident: int) -> str:
    """Return the refusal for a person who may not change the fact with this number."""
    return _NOT_YOURS.format(ident)


def forget_person(
    session: Session, policies: Policies, actor: Actor, whose: Actor, now: datetime
) -> int | None:
    """Delete a person's own facts. Return None unless that person, or an admin of all of Nod, asks."""
    person, theirs = people.person_of(session, actor), people.person_of(session, whose)
    if person != theirs and not rights.is_global_admin(session, policies, actor):
        return None
    return rows.remove_of(session, theirs.accounts, By.press(Act.FORGET, actor, person), now)


def _changeable(
    session: Session, policies: Policies, actor: Actor, ident: int, now: datetime
) -> tuple["_Reader", Fact | None]:
    reader = _Reader(session, policies, actor)
    found = (f for f in rows.of_all_but_others(session, reader.person.accounts, now) if f.id == ident)
    return reader, next((each for each in found if reader.may_change(each)), None)


class _Reader:
    """A reader of facts, with the facts that they may see and change."""

    def __init__(self, session: Session, policies: Policies, actor: Actor) -> None:
        policy, self.person = policies.load_for(session, actor)
        self._own = own_scopes(self.person)
        self._bound = policies.bound_to(session, actor) or EVERYWHERE
        self._admin = Role.ADMIN in policy.roles_of(self.person)
        self._wrote = cache(partial(conversations.has_written_in, session, self.person.accounts))

    def sees(self, fact: Fact) -> bool:
        if fact.scope in self._own or self._rules(fact):
            return True
        return fact.about is About.PLACE and self._wrote(fact.scope[1])

    def may_change(self, fact: Fact) -> bool:
        if fact.about is About.PERSON:
            return fact.scope in self._own
        return str(fact.asked_by) in self.person.accounts or self._rules(fact)

    def _rules(self, fact: Fact) -> bool:
        return self._admin and fact.about is not About.PERSON and covers(self._bound, fact.scope[1])
