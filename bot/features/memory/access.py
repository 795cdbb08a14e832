"""The rights of people to see and change remembered facts, and the changes themselves.

Each fact is about a person, a place (a chat) or a team:

- Only the person sees and changes a fact about a person.
- Everyone who is in a chat, or wrote there, sees the facts about it; the people of a team see those about it.
  The person who asked Nod to remember such a fact may change it, and so may the admins there.

The tools, commands and routes of memory go through this module.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

from sqlmodel import Session

from bot.approvals import rights
from bot.domain.audit import Act
from bot.domain.chat import Address
from bot.domain.conversations import Conversation
from bot.domain.people import Actor, Role
from bot.domain.rules import EVERYWHERE, covers
from bot.errors import ToolError
from bot.features.memory import rows
from bot.features.memory.facts import (
    MAX_SCOPE_CHARS,
    About,
    Fact,
    check_fact,
    find_scopes_of_conversation,
    own_scopes,
    scope_of,
)
from bot.store import conversations, people
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

_NO_SUCH_FACT_TEXT = "There is no fact {} that you may change. `/nod memory` lists them."
_NEARLY_FULL_CHARS = MAX_SCOPE_CHARS * 3 // 4


@dataclass(frozen=True, slots=True)
class VisibleFact:
    """A fact as one person sees it."""

    id: int
    fact: str
    about: About
    whose: str  # the name of the place or team that the fact is about, or "you"
    asked_by: str  # the account of the person who asked Nod to remember it
    asked_name: str  # that person's name, or "you"
    said_at: datetime
    until: datetime | None
    may_change: bool
    oldest: bool  # little room is left for facts about the same subject, and this is the oldest of them


def remember(session: Session, fact: Fact) -> bool:
    """Store a fact. Return False if the same fact is stored already.

    A fact that is stored already holds until the later of both ends. Raises ToolError if there is no room.
    """
    conversation_lock.lock_everything(session)  # facts that are added at the same time are counted in turn
    stored = rows.list_facts(session, [fact.scope], fact.said_at)
    author = people.make_author(session, Act.REMEMBER, fact.asked_by)
    same = next((stored_fact for stored_fact in stored if stored_fact.text == fact.text), None)
    if same is not None:
        ends_later = same.until is not None and (fact.until is None or fact.until > same.until)
        if ends_later:
            rows.change_fact(session, replace(same, until=fact.until, said_at=fact.said_at), author)
        return False
    _check_room(stored, fact)
    rows.add_fact(session, fact, author)
    return True


def list_for_prompt(session: Session, conversation: Conversation, asker: Actor, now: datetime) -> list[Fact]:
    """Return the facts that the model is told in a conversation when ``asker`` asks.

    Facts about a person are included only in a private conversation of this person, where they ask.
    """
    person = people.load_person(session, asker)
    is_private_to_asker = (
        conversation.private and people.load_person(session, conversation.requester) == person
    )
    scopes = find_scopes_of_conversation(
        person, asker, conversation.origin, is_private_to_asker=is_private_to_asker
    )
    return rows.list_facts(session, scopes, now)


def list_visible(
    session: Session, policies: Policies, actor: Actor, now: datetime, address: Address | None = None
) -> list[VisibleFact]:
    """Return the facts that a person may see. With ``address``, the facts of other chats are left out."""
    reader = _FactRights(session, policies, actor)
    scope_here = scope_of(About.PLACE, actor, address) if address else None

    def is_listed(fact: Fact) -> bool:
        if scope_here is not None and fact.about is About.PLACE:
            return fact.scope == scope_here  # the person is in this chat, so they see its facts
        return reader.may_see(fact)

    facts = rows.list_all_but_about_others(session, reader.person.accounts, now)
    listed = [fact for fact in facts if is_listed(fact)]
    oldest_ids = _find_oldest_of_full_scopes(listed)
    names = people.find_known_names(session, [str(fact.asked_by) for fact in listed])

    def name_asker(fact: Fact) -> str:
        account = str(fact.asked_by)
        if account in reader.person.accounts:
            return "you"
        return names.get(account) or fact.asked_by.label

    return [
        VisibleFact(
            id=fact.id,
            fact=fact.text,
            about=fact.about,
            whose=_name_subject(session, fact),
            asked_by=str(fact.asked_by),
            asked_name=name_asker(fact),
            said_at=fact.said_at,
            until=fact.until,
            may_change=reader.may_change(fact),
            oldest=fact.id in oldest_ids,
        )
        for fact in listed
    ]


def change_fact(
    session: Session, policies: Policies, actor: Actor, ident: int, words: str, now: datetime
) -> str | None:
    """Change the words of a fact, and return the stored words; None if this person may not change it.

    Raises ValueError for words that can't be remembered, ToolError without room.
    """
    text = check_fact(words)
    conversation_lock.lock_everything(session)
    reader = _FactRights(session, policies, actor)
    fact = reader.find_changeable(ident, now)
    if fact is None:
        return None
    changed = replace(fact, text=text, said_at=now)
    _check_room(rows.list_facts(session, [fact.scope], now), changed)
    rows.change_fact(session, changed, Author.of_person(Act.REMEMBER, actor, reader.person))
    return text


def forget_fact(session: Session, policies: Policies, actor: Actor, ident: int, now: datetime) -> str | None:
    """Delete a fact, and return its words; None if this person may not delete it, or it does not exist."""
    reader = _FactRights(session, policies, actor)
    fact = reader.find_changeable(ident, now)
    if fact is None:
        return None
    rows.remove_facts(session, [ident], Author.of_person(Act.FORGET, actor, reader.person), now)
    return fact.text


def no_such_fact_text(ident: int) -> str:
    """Return the refusal for a person who may not change the fact with this number."""
    return _NO_SUCH_FACT_TEXT.format(ident)


def forget_person(
    session: Session, policies: Policies, actor: Actor, subject_account: Actor, now: datetime
) -> int | None:
    """Delete the facts about the person with ``subject_account``, and return their number.

    Return None unless this person, or an admin of all of Nod, asks for it (``actor``).
    """
    person = people.load_person(session, actor)
    subject = people.load_person(session, subject_account)
    if person != subject and not rights.is_global_admin(session, policies, actor):
        return None
    return rows.remove_about_person(
        session, subject.accounts, Author.of_person(Act.FORGET, actor, person), now
    )


class _FactRights:
    """A person who reads facts, and the rights of this person by the rules at the top of the module."""

    def __init__(self, session: Session, policies: Policies, actor: Actor) -> None:
        self._session = session
        policy, self.person = policies.load_with_person(session, actor)
        self._own_scopes = own_scopes(self.person)  # the person's own, and those of their teams
        self._is_admin = Role.ADMIN in policy.roles_of(self.person)
        # where the rights of this admin hold
        self._admin_scope = policies.find_workspace_bound(session, actor) or EVERYWHERE
        # with a cache, so that the database is asked only once about each chat
        self._has_written_in = cache(partial(conversations.has_written_in, session, self.person.accounts))

    def may_see(self, fact: Fact) -> bool:
        """Return whether it is about them, their team or a chat of theirs, or they are an admin there."""
        if fact.scope in self._own_scopes or self._is_admin_of(fact):
            return True
        return fact.about is About.PLACE and self._has_written_in(fact.scope.subject)

    def may_change(self, fact: Fact) -> bool:
        """Return whether the fact is about the person, or they asked for it, or are an admin there."""
        if fact.about is About.PERSON:
            return fact.scope in self._own_scopes
        return str(fact.asked_by) in self.person.accounts or self._is_admin_of(fact)

    def find_changeable(self, ident: int, now: datetime) -> Fact | None:
        """Return the fact with this number if the person may change it, else None."""
        facts = rows.list_all_but_about_others(self._session, self.person.accounts, now)
        return next((fact for fact in facts if fact.id == ident and self.may_change(fact)), None)

    def _is_admin_of(self, fact: Fact) -> bool:
        if fact.about is About.PERSON:
            return False
        return self._is_admin and covers(self._admin_scope, fact.scope.subject)


def _check_room(stored: list[Fact], fact: Fact) -> None:
    """Raise ToolError if a scope has no room for a fact. ``stored``: the facts of the scope."""
    others = [each for each in stored if each.id != fact.id]
    if sum(len(each.text) for each in others) + len(fact.text) > MAX_SCOPE_CHARS:
        raise ToolError(
            f"No room: what is remembered for one {fact.about} takes {MAX_SCOPE_CHARS:,} characters at most. "
            f"The oldest: “{_find_oldest(others).text}”. Forget it first."
        )


def _find_oldest(facts: list[Fact]) -> Fact:
    return min(facts, key=lambda fact: (fact.said_at, fact.id))


def _find_oldest_of_full_scopes(facts: list[Fact]) -> set[int]:
    """Return the id of the oldest fact of each scope that is nearly full."""
    by_scope = defaultdict(list)
    for fact in facts:
        by_scope[fact.scope].append(fact)
    oldest_ids = set()
    for facts_there in by_scope.values():
        if sum(len(fact.text) for fact in facts_there) > _NEARLY_FULL_CHARS:
            oldest_ids.add(_find_oldest(facts_there).id)
    return oldest_ids


def _name_subject(session: Session, fact: Fact) -> str:
    if fact.about is About.PERSON:
        return "you"
    return people.put_names_in(session, fact.scope.subject) or "the team"
