"""People with their accounts and roles as one list, their absences, and the sessions of the console."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from bot.approvals.accounts import sign_in_links
from bot.domain.chat import Clock
from bot.domain.people import Absence, Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.rules import GivenRole
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
    away: Absence | None = None


def list_people(session: Session, policy: Policy, actor: Actor, *, everyone: bool) -> list[KnownPerson]:
    """List this person first; for ``everyone`` then all who have linked accounts, a role or an absence."""
    asker = people.person_of(session, actor)
    linked_of = _group_accounts(session, policy, None if everyone else asker.id)
    linked_of.setdefault(asker.id, {str(actor): None})
    accounts = [account for linked in linked_of.values() for account in linked]
    names = people.find_known_names(session, accounts)
    names[str(actor)] = actor.label or names.get(str(actor), "")
    role_times = _list_role_times(session)
    absences = {str(absence.who): absence for absence in policy.absences}
    persons = []
    for person_id, linked in linked_of.items():
        described = [
            _describe_account(account, row, names.get(account, ""), policy, role_times)
            for account, row in sorted(linked.items())
        ]
        away = [absences[account] for account in linked if account in absences]
        persons.append(
            KnownPerson(person_id, person_id == asker.id, tuple(described), away[0] if away else None)
        )
    return sorted(persons, key=lambda person: (not person.you, person.id))


def _group_accounts(
    session: Session, policy: Policy, person_id: str | None
) -> dict[str, dict[str, Linked | None]]:
    """Return the linked accounts of a person, by the person's id and the account.

    Without a ``person_id``, the accounts of everyone, and also the accounts that have a role or an absence
    and no link: each of these is a person of its own, with None for the link.
    """
    accounts_of: dict[str, dict[str, Linked | None]] = defaultdict(dict)
    rows = people.list_linked(session, person_id)
    for row in rows:
        accounts_of[row.person_id][row.account] = row
    if person_id is None:
        noted = {str(absence.who) for absence in policy.absences}
        for role in Role:
            noted |= policy.holders(role)
        for account in noted - {row.account for row in rows}:
            accounts_of[account] = {account: None}
    return accounts_of


def _list_role_times(session: Session) -> dict[tuple[str, Role], datetime]:
    """Return when each role that a rule gives was given, by account and role."""
    times = {}
    for stored in rules.list_rules(session):
        given = stored.rule.value
        if isinstance(given, GivenRole):
            times[given.account, given.role] = stored.at
    return times


def _describe_account(
    account: str,
    row: Linked | None,
    known_name: str,
    policy: Policy,
    role_times: Mapping[tuple[str, Role], datetime],
) -> Account:
    """Return an account with its own roles, without the roles of the person's other accounts."""
    name = known_name or (row.name if row else "")
    alone = Person(account, accounts=frozenset({account}))
    roles = sorted(policy.roles_of(alone))
    return Account(
        account,
        "" if name == account else name,
        row.at if row else None,
        tuple(HeldRole(role, role_times.get((account, role))) for role in roles),
    )


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The sessions of people in the console."""

    database: Database
    policies: Policies
    clock: Clock
    may: Callable[[Actor], bool]  # tells if the settings still let this account in
    life = sign_in_links.SESSION_LIFE
    organisation_life = sign_in_links.ORGANISATION_LIFE
    away = sign_in_links.AWAY

    async def enter(self, code: str) -> str | None:
        """Begin a session for the code of a link, and return its secret; None if the code can't be used."""
        return await self.database.write(sign_in_links.sign_in, self.policies, code, self.clock())

    async def begin(self, state: str, kept: Mapping[str, str]) -> bool:
        """Store the values that a browser is checked by when it returns from the organisation's sign-in.

        Returns False if too many sign-ins are under way.
        """
        return await self.database.write(sign_in_links.begin_sign_in, state, kept, self.clock())

    async def come_back(self, state: str) -> Mapping[str, str] | None:
        """Return the values that `begin` stored, and delete them; None if unknown, used or too old."""
        return await self.database.write(sign_in_links.come_back, state, self.clock())

    async def enter_as(self, actor: Actor) -> str:
        """Begin a session for someone whom the organisation has signed in, and return its secret."""
        return await self.database.write(sign_in_links.sign_in_as, actor, self.clock())

    async def holder(self, secret: str) -> Actor | None:
        """Return the account of a session; None if it has ended, or its person is no longer let in."""
        actor = await self.database.read(sign_in_links.find_signed_in, secret, self.clock())
        if actor is not None and self.may(actor):
            return actor
        return None

    async def leave(self, actor: Actor, secret: str = "") -> None:
        """End the session with this secret; without a secret, all sessions of this account."""
        await self.database.write(sign_in_links.sign_out, actor, self.clock(), secret)


def list_absences(session: Session, policies: Policies, actor: Actor) -> str:
    """List the absences that concern a person, for an admin all absences, on a line each."""
    policy, person = policies.load_for(session, actor)
    is_admin = Role.ADMIN in policy.roles_of(person)
    lines = []
    for absence in policy.absences:
        concerns_them = not person.accounts.isdisjoint({str(absence.who), str(absence.stand_in)})
        if is_admin or concerns_them:
            until = absence.end(policy.book.zone)
            who, stand_in = absence.who.label, absence.stand_in.label
            lines.append(f"- {who} is away until {until}: {stand_in} may decide what they may")
    return people.put_names_in(session, "\n".join(lines))
