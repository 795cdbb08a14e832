"""Which rules concern someone who is not an admin."""

from sqlmodel import Session

from bot.domain.people import Person
from bot.domain.rules import GivenRole, Rule, Subject, covers
from bot.store import conversations

_ELSEWHERE = frozenset({Subject.ROUTE, Subject.ESCALATE, Subject.DIGEST})
"""These name other places, in which that person may not be."""


def concerns(session: Session, rule: Rule, person: Person) -> bool:
    """Whether a rule is about what this person asks for, where they have an account or have written."""
    if isinstance(rule.value, GivenRole):
        return rule.value.account in person.accounts
    if rule.subject in _ELSEWHERE:
        return False
    if any(covers(rule.scope, account) for account in person.accounts):
        return True
    return conversations.wrote_in(session, person.accounts, rule.scope)
