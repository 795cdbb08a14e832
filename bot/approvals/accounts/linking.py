"""Linking of accounts to one Person, and unlinking. One transaction each.

A Person is someone with all their accounts, for example one in Slack and one in the console. An account that
is not linked is a Person of its own, and has no row. A Person's id is one of their accounts.

The callers have already got everyone's consent. The first account asked for a code, the second gave the code
and confirmed, then the first confirmed the second. If an account gains a role and neither side is an admin,
an admin has confirmed as well. The accounts of a Person are read in ``bot/store/people.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, update
from sqlmodel import Session, col, select

from bot.approvals import grants, rights
from bot.approvals.accounts import changes
from bot.domain.audit import Act
from bot.domain.jobs import Job
from bot.domain.people import Actor, Person, Role
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.hooks import hooks_of
from bot.store.inserts import insert_or_ignore
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.store.tables.people import AccountRow


@dataclass(frozen=True, slots=True)
class Unlinking:
    """The outcome of unlinking an account, which is a Person of its own then."""

    grants_ended: int
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two accounts that may become one Person."""

    first: Actor
    second: Actor
    gained_roles: Mapping[str, frozenset[Role]]  # the roles that each account of both Persons would gain
    needs_admin: bool  # True if an admin must confirm the link


def link_accounts(
    session: Session, policies: Policies, first: Actor, second: Actor, by: Actor, now: datetime
) -> None:
    """Link two accounts: the second's Person becomes a part of the first's, with all accounts.

    Each account whose Person changes is recorded.
    """
    conversation_lock.lock_everything(session)
    gained_roles = make_pair(session, policies, first, second).gained_roles
    person = people.load_person(session, first)
    second_person = people.load_person(session, second)
    author = people.make_author(session, Act.LINK, by)
    accounts = sorted(person.accounts | second_person.accounts)
    rows = session.exec(select(AccountRow).where(col(AccountRow.actor).in_(accounts)))
    person_before = {row.actor: row.person_id for row in rows}

    # an account that was not linked before has no row yet
    for actor in (first, second):
        values = {"actor": str(actor), "name": actor.name, "person_id": person.id, "linked_at": now}
        session.execute(insert_or_ignore(session, AccountRow).values(values))
    session.execute(
        update(AccountRow).where(col(AccountRow.person_id) == second_person.id).values(person_id=person.id)
    )
    for account in accounts:
        before = person_before.get(account)
        if before == person.id:
            continue
        new_state: dict[str, Any] = {"person": person.id}
        if gained_roles.get(account):
            new_state["gains"] = sorted(gained_roles[account])
        old_state = {"person": before} if before else None
        admin_changes.record(session, Thing.ACCOUNT, account, author, old_state, new_state, now)
        for change_person in hooks_of(session).change_person:  # a feature that raises undoes the link
            change_person(session, Actor.parse(account), now)


def unlink_account(session: Session, account: str, by: Actor, now: datetime) -> Unlinking | None:
    """Unlink an account, which is a Person of its own then. Returns None if it is not linked.

    All grants that the Person gave end: no one can tell which of the accounts' owners gave them.
    """
    conversation_lock.lock_everything(session)
    person = people.load_person(session, Actor.parse(account))
    others = sorted(person.accounts - {account})
    if not others:
        return None
    author = people.make_author(session, Act.UNLINK, by)
    ended = grants.end_given_by(session, person.id, author, now)

    # the others keep the Person's id, unless the leaving account has it; if one is left, it needs no row
    id_of_others = others[0] if person.id == account else person.id
    unlinked = {account}
    if len(others) == 1:
        unlinked.update(others)
    session.execute(delete(AccountRow).where(col(AccountRow.actor).in_(unlinked)))
    session.execute(
        update(AccountRow).where(col(AccountRow.person_id) == person.id).values(person_id=id_of_others)
    )
    old_state = {"person": person.id}
    jobs: list[Job] = []
    for each_account in (account, *others):
        new_state = None if each_account in unlinked else {"person": id_of_others}
        if new_state != old_state:
            admin_changes.record(session, Thing.ACCOUNT, each_account, author, old_state, new_state, now)
            jobs += changes.tell_features(session, Actor.parse(each_account), now).jobs
    return Unlinking(ended, tuple(jobs))


def unlink_if_allowed(
    session: Session, policies: Policies, account: str, actor: Actor, now: datetime
) -> Unlinking | None:
    """Unlink an account as `unlink_account` does, for the person with the account ``actor``.

    They may unlink their own accounts. An admin of all of Nod may unlink anyone's. Returns None if they may
    not, or if the account is not linked.
    """
    if not account.isprintable():
        return None
    try:
        linked = people.load_person(session, Actor.parse(account)).accounts
    except ValueError:
        return None
    if account not in linked:
        return None
    if str(actor) not in linked and not rights.is_global_admin(session, policies, actor):
        return None
    return unlink_account(session, account, actor, now)


def describe_unlinking(account: str, ended: int) -> str:
    """Return the text for people. ``ended``: the number of grants that ended."""
    grants_text = f" {ended} of their grants ended with it." if ended else ""
    return f"Unlinked: {account} is a separate person again.{grants_text}"


def make_pair(session: Session, policies: Policies, first: Actor, second: Actor) -> Pair:
    """Return two accounts as a pair, with the roles that their Persons' accounts would gain by a link."""
    policy = policies.load(session)
    persons = [people.load_person(session, first), people.load_person(session, second)]
    accounts = persons[0].accounts | persons[1].accounts
    joint_roles = policy.roles_of(Person(persons[0].id, accounts=accounts))
    gained_roles = {}
    for person in persons:
        gained_by_person = frozenset(joint_roles - policy.roles_of(person))
        for account in person.accounts:
            gained_roles[account] = gained_by_person
    has_admin = any(Role.ADMIN in policy.roles_of(person) for person in persons)
    needs_admin = any(gained_roles.values()) and not has_admin
    return Pair(first, second, gained_roles, needs_admin=needs_admin)
