"""People as one list: which accounts are one Person, the roles of each, and since when."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from bot.domain.people import Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.rules import GivenRole
from bot.store import names, people, rules
from bot.store.people import Linked


@dataclass(frozen=True, slots=True)
class HeldRole:
    """A role of an account; ``since`` is None for one that the settings give."""

    role: Role
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Account:
    """``linked_at`` is None for an account that is a Person of its own."""

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


def listed(session: Session, policy: Policy, actor: Actor, *, everyone: bool) -> list[KnownPerson]:
    """This person first; for ``everyone`` also all who have linked accounts or a role."""
    me = people.person_of(session, actor)
    grouped: dict[str, dict[str, Linked | None]] = defaultdict(dict)
    rows = people.linked(session, None if everyone else me.id)
    for row in rows:
        grouped[row.person_id][row.account] = row
    if me.id not in grouped:
        grouped[me.id] = {str(actor): None}
    if everyone:
        alone = frozenset().union(*(policy.holders(role) for role in Role)) - {row.account for row in rows}
        for account in alone:
            grouped[account] = {account: None}
    called = names.known(session, [account for accounts in grouped.values() for account in accounts])
    since = {
        (found.rule.value.account, found.rule.value.role): found.at
        for found in rules.in_force(session)
        if isinstance(found.rule.value, GivenRole)
    }

    def account_of(account: str, row: Linked | None) -> Account:
        own = actor.label if account == str(actor) else ""
        name = own or called.get(account, "") or (row.name if row else "")
        held = (HeldRole(role, since.get((account, role))) for role in _roles(policy, account))
        return Account(account, "" if name == account else name, row.at if row else None, tuple(held))

    known = [
        KnownPerson(ident, ident == me.id, tuple(account_of(*each) for each in sorted(accounts.items())))
        for ident, accounts in grouped.items()
    ]
    return sorted(known, key=lambda each: (not each.you, each.id))


def _roles(policy: Policy, account: str) -> Iterator[Role]:
    """What this account is, whatever the others of its Person are."""
    yield from sorted(policy.roles_of(Person(account, accounts=frozenset({account}))))
