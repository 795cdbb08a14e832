"""People as one list (`listed`), and who is signed in to the console (`SignedIn`)."""

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
    """A role of an account; ``since`` is None for one that the settings give."""

    role: Role
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Account:
    """An account of a person. ``linked_at`` is None for an account that is a Person of its own."""

    account: str
    name: str
    linked_at: datetime | None
    roles: tuple[HeldRole, ...]


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """One Person with every account."""

    id: str
    you: bool
    accounts: tuple[Account, ...]
    away: Absence | None = None


def list_people(session: Session, policy: Policy, actor: Actor, *, everyone: bool) -> list[KnownPerson]:
    """List this person first; for ``everyone`` then all others who have linked accounts or a role."""
    me = people.person_of(session, actor)
    grouped: dict[str, dict[str, Linked | None]] = defaultdict(dict)
    rows = people.list_linked(session, None if everyone else me.id)
    for row in rows:
        grouped[row.person_id][row.account] = row
    if me.id not in grouped:
        grouped[me.id] = {str(actor): None}
    if everyone:
        alone = frozenset().union(*(policy.holders(role) for role in Role)) - {row.account for row in rows}
        alone |= {str(each.who) for each in policy.absences} - {row.account for row in rows}
        for account in alone:
            grouped[account] = {account: None}
    called = people.find_known_names(
        session, [account for accounts in grouped.values() for account in accounts]
    )
    since = {
        (found.rule.value.account, found.rule.value.role): found.at
        for found in rules.in_force(session)
        if isinstance(found.rule.value, GivenRole)
    }

    def account_of(account: str, row: Linked | None) -> Account:
        own = actor.label if account == str(actor) else ""
        name = own or called.get(account, "") or (row.name if row else "")
        alone = Person(account, accounts=frozenset({account}))  # whatever the others of its Person are
        held = (HeldRole(role, since.get((account, role))) for role in sorted(policy.roles_of(alone)))
        return Account(account, "" if name == account else name, row.at if row else None, tuple(held))

    away = {str(each.who): each for each in policy.absences}
    known = [
        KnownPerson(
            ident,
            ident == me.id,
            tuple(account_of(*each) for each in sorted(accounts.items())),
            next((away[each] for each in accounts if each in away), None),
        )
        for ident, accounts in grouped.items()
    ]
    return sorted(known, key=lambda each: (not each.you, each.id))


@dataclass(frozen=True, slots=True)
class SignedIn:
    database: Database
    policies: Policies
    clock: Clock
    may: Callable[[Actor], bool]  # whether the settings still let this account in
    life = sign_in_links.SESSION_LIFE
    organisation_life = sign_in_links.ORGANISATION_LIFE
    away = sign_in_links.AWAY

    async def enter(self, code: str) -> str | None:
        """Begin a session for the code of a link, and return its secret; None where it can't be used."""
        return await self.database.write(sign_in_links.sign_in, self.policies, code, self.clock())

    async def begin(self, state: str, kept: Mapping[str, str]) -> bool:
        """Keep what a browser is checked by when it comes back from the organisation's sign-in.

        False where too many are under way.
        """
        return await self.database.write(sign_in_links.begin_sign_in, state, kept, self.clock())

    async def come_back(self, state: str) -> Mapping[str, str] | None:
        """Return the stored sign-in and delete it."""
        return await self.database.write(sign_in_links.come_back, state, self.clock())

    async def enter_as(self, actor: Actor) -> str:
        """Begin a session for someone whom the organisation has signed in, and return its secret."""
        return await self.database.write(sign_in_links.sign_in_as, actor, self.clock())

    async def holder(self, secret: str) -> Actor | None:
        """Return the account of a session; None where it has ended, or its person is no longer let in."""
        found = await self.database.read(sign_in_links.find_signed_in, secret, self.clock())
        if found is not None and self.may(found):
            return found
        return None

    async def leave(self, actor: Actor, secret: str = "") -> None:
        """End the session of this secret; without one, all of this account's."""
        await self.database.write(sign_in_links.sign_out, actor, self.clock(), secret)


def list_absences(session: Session, policies: Policies, actor: Actor) -> str:
    """List the absences that concern a person, one a line; for an admin all."""
    policy, person = policies.load_for(session, actor)
    every = Role.ADMIN in policy.roles_of(person)
    found = (a for a in policy.absences if every or person.accounts & {str(a.who), str(a.stand_in)})
    lines = (
        f"- {each.who.label} is away until {each.end(policy.book.zone)}: "
        f"{each.stand_in.label} may decide what they may"
        for each in found
    )
    return people.put_names_in(session, "\n".join(lines))
