"""People with their accounts and roles as one list, their absences, and the sessions of the console.

A Person is someone with all their linked accounts. An account that is not linked is a Person of its own.
While a person is absent, a stand-in may decide in their place. `ConsoleSessions` is the service for sign-in
to the console; the functions of ``bot/approvals/accounts`` do its work.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from bot.approvals.accounts import organisation_sign_ins, sign_in_links
from bot.domain.chat import Clock
from bot.domain.people import Absence, Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.rule_values import GivenRole
from bot.store import people, rules
from bot.store.database import Database
from bot.store.people import Linked
from bot.store.rules import Policies


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
    absences = {str(absence.who): absence for absence in policy.absences}
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
        accounts = {str(absence.who) for absence in policy.absences}
        for role in Role:
            accounts |= policy.holders(role)
        for account in accounts - {link.account for link in links}:
            links_by_person[account] = {account: None}  # the account is also the id of its person
    return links_by_person


def _list_role_times(session: Session) -> dict[tuple[str, Role], datetime]:
    """Return the times at which roles were given by rules, by account and role."""
    times = {}
    for stored in rules.list_rules(session):
        given = stored.rule.value
        if isinstance(given, GivenRole):
            times[given.account, given.role] = stored.at
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


@dataclass(frozen=True, slots=True)
class ConsoleSessions:
    """The service for sessions of the console."""

    database: Database
    policies: Policies
    clock: Clock
    may_enter: Callable[[Actor], bool]  # tells if the settings still let an account in
    session_life = sign_in_links.SESSION_LIFE  # of a session that a link began
    organisation_session_life = sign_in_links.ORGANISATION_LIFE  # of one by the organisation's sign-in
    max_sign_in_time = (
        organisation_sign_ins.MAX_AWAY
    )  # the longest time that a browser may spend at that sign-in

    async def sign_in_by_code(self, code: str) -> str | None:
        """Begin a session for the code of a link, and return its secret; None if the code can't be used."""
        return await self.database.write(sign_in_links.sign_in_by_link, self.policies, code, self.clock())

    async def begin_organisation_sign_in(self, state: str, values: Mapping[str, str]) -> bool:
        """Store the values that a browser is checked by when it returns from the organisation's sign-in.

        Returns False if too many sign-ins are under way.
        """
        return await self.database.write(organisation_sign_ins.begin, state, values, self.clock())

    async def take_begun_sign_in(self, state: str) -> Mapping[str, str] | None:
        """Return the values that `begin_organisation_sign_in` stored, and delete them.

        None if they are unknown, used or too old.
        """
        return await self.database.write(organisation_sign_ins.take, state, self.clock())

    async def sign_in_as(self, actor: Actor) -> str:
        """Begin a session for someone whom the organisation has signed in, and return its secret."""
        return await self.database.write(sign_in_links.sign_in_by_organisation, actor, self.clock())

    async def find_session_account(self, secret: str) -> Actor | None:
        """Return the account of a session; None if it has ended, or its person is no longer let in."""
        actor = await self.database.read(sign_in_links.find_signed_in, secret, self.clock())
        if actor is not None and self.may_enter(actor):
            return actor
        return None

    async def sign_out(self, actor: Actor, secret: str = "") -> None:
        """End the session with this secret; without a secret, all sessions of this account."""
        await self.database.write(sign_in_links.sign_out, actor, self.clock(), secret)


def list_absences(session: Session, policies: Policies, actor: Actor) -> str:
    """Return the absences that concern a person as text, a line for each; for an admin all absences."""
    policy, person = policies.load_with_person(session, actor)
    is_admin = Role.ADMIN in policy.roles_of(person)
    lines = []
    for absence in policy.absences:
        concerns_them = not person.accounts.isdisjoint({str(absence.who), str(absence.stand_in)})
        if is_admin or concerns_them:
            until = absence.end(policy.book.zone)
            stand_in = absence.stand_in.label
            lines.append(f"- {absence.who.label} is away until {until}: {stand_in} may decide what they may")
    return people.put_names_in(session, "\n".join(lines))
