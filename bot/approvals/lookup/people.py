"""People with their accounts, their roles and their absences, as one list.

A Person is someone with all their linked accounts. An account that is not linked is a Person of its own.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from bot.domain.people import Absence, Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.rule_values import GivenRole
from bot.store import people, rules
from bot.store.people import Linked


@dataclass(frozen=True, slots=True)
class HeldRole:
    """A role of an account."""

    role: Role
    since: datetime | None  # None for a role that the settings give


@dataclass(frozen=True, slots=True)
class Account:
    """An account of a person."""

    account: str
    name: str
    linked_at: datetime | None  # None for an account that is a Person of its own
    roles: tuple[HeldRole, ...]


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """One Person with every account."""

    id: str
    you: bool  # True for the person who asks
    accounts: tuple[Account, ...]
    away: Absence | None = None  # the absence now, if there is one


def list_people(session: Session, policy: Policy, actor: Actor, *, everyone: bool) -> list[KnownPerson]:
    """Return the person with this account; with ``everyone`` also all other known people, after them.

    Known are people who have linked accounts, a role or an absence.
    """
    asker = people.load_person(session, actor)
    links_by_person = _group_accounts(session, policy, None if everyone else asker.id)
    links_by_person.setdefault(asker.id, {str(actor): None})
    accounts = [account for links in links_by_person.values() for account in links]
    names = people.find_known_names(session, accounts)
    names[str(actor)] = actor.label or names.get(str(actor), "")
    role_times = _list_role_times(session)
    absences = {str(absence.absent): absence for absence in policy.absences}
    persons = []
    for person_id, links in links_by_person.items():
        described = [
            _describe_account(account, link, names.get(account, ""), policy, role_times)
            for account, link in sorted(links.items())
        ]
        absences_of_person = [absences[account] for account in links if account in absences]
        away = absences_of_person[0] if absences_of_person else None
        persons.append(KnownPerson(person_id, person_id == asker.id, tuple(described), away))
    return sorted(persons, key=lambda person: (not person.you, person.id))


def _group_accounts(
    session: Session, policy: Policy, person_id: str | None
) -> dict[str, dict[str, Linked | None]]:
    """Return for each person's id a mapping of their accounts to the links, or to None without a link.

    With a ``person_id``, these are the linked accounts of that person. Without it, they are the linked
    accounts of everyone, and the accounts that have a role or an absence and no link. Each account without a
    link is a person of its own.
    """
    links_by_person: dict[str, dict[str, Linked | None]] = defaultdict(dict)
    links = people.list_linked(session, person_id)
    for link in links:
        links_by_person[link.person_id][link.account] = link
    if person_id is None:
        accounts = {str(absence.absent) for absence in policy.absences}
        for role in Role:
            accounts |= policy.list_holders(role)
        for account in accounts - {link.account for link in links}:
            links_by_person[account] = {account: None}  # the account is also the id of its person
    return links_by_person


def _list_role_times(session: Session) -> dict[tuple[str, Role], datetime]:
    """Return the times at which roles were given by rules, by account and role."""
    times = {}
    for stored in rules.list_rules(session):
        given = stored.rule.value
        if isinstance(given, GivenRole):
            times[given.account, given.role] = stored.set_at
    return times


def _describe_account(
    account: str,
    link: Linked | None,
    known_name: str,
    policy: Policy,
    role_times: Mapping[tuple[str, Role], datetime],
) -> Account:
    """Return an account with its own roles, without the roles of the person's other accounts."""
    name = known_name or (link.name if link else "")
    alone = Person(account, accounts=frozenset({account}))
    roles = sorted(policy.roles_of(alone))
    return Account(
        account,
        "" if name == account else name,
        link.at if link else None,
        tuple(HeldRole(role, role_times.get((account, role))) for role in roles),
    )
