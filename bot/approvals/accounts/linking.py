"""Linking of accounts to one Person, and unlinking. One transaction each.

Both sides agree: one account asks for a code, the other gives it and says yes, the first says yes to that
account. Where one of them gains a role and neither is an admin, an admin says yes as well. The accounts of a
Person are read in ``bot/store/people.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, update
from sqlmodel import Session, col, select

from bot.approvals import grants, rights
from bot.approvals.accounts import changes
from bot.domain.jobs import Job
from bot.domain.people import Actor, Person, Role
from bot.domain.record import Act
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.engine import insert_or_ignore
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.store.tables.people import AccountRow


@dataclass(frozen=True, slots=True)
class Unlinking:
    """An account that became a Person of its own: how many grants ended with that, and work to start."""

    grants_ended: int
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two accounts that may become one Person, and the roles that each would gain."""

    first: Actor
    second: Actor
    gains: Mapping[str, frozenset[Role]]
    needs_admin: bool


def join(session: Session, policies: Policies, first: Actor, second: Actor, by: Actor, now: datetime) -> None:
    """Make the Persons of two accounts one; the audit log has each account, and the roles that it gained."""
    conversation_lock.everywhere(session)
    gains = pair_of(session, policies, first, second).gains
    person, joined = people.person_of(session, first), people.person_of(session, second)
    who = people.by(session, Act.LINK, by)
    accounts = sorted(person.accounts | joined.accounts)
    rows = session.exec(select(AccountRow).where(col(AccountRow.actor).in_(accounts)))
    before = {row.actor: row.person_id for row in rows}
    for each in (first, second):
        values = {"actor": str(each), "name": each.name, "person_id": person.id, "linked_at": now}
        session.execute(insert_or_ignore(session, AccountRow).values(values))
    session.execute(
        update(AccountRow).where(col(AccountRow.person_id) == joined.id).values(person_id=person.id)
    )
    for account in accounts:
        was = before.get(account)
        if was != person.id:
            gained = {"gains": sorted(gains[account])} if gains.get(account) else {}
            now_is = {"person": person.id, **gained}
            old = {"person": was} if was else None
            admin_changes.record(session, Thing.ACCOUNT, account, who, old, now_is, now)
            for change_person in hooks_of(session).change_person:
                change_person(session, Actor.parse(account), now)


def part(session: Session, account: str, by: Actor, now: datetime) -> Unlinking | None:
    """Make an account a Person of its own again; None where it is not linked.

    What its Person had allowed ends: no one can tell which of the two allowed it.
    """
    conversation_lock.everywhere(session)
    left = people.person_of(session, Actor.parse(account))
    rest = sorted(left.accounts - {account})
    if not rest:
        return None
    who = people.by(session, Act.UNLINK, by)
    ended = grants.end_given_by(session, left.id, who, now)
    stays = left.id if left.id != account else rest[0]
    alone = {account, *(rest if len(rest) == 1 else ())}
    session.execute(delete(AccountRow).where(col(AccountRow.actor).in_(alone)))
    session.execute(update(AccountRow).where(col(AccountRow.person_id) == left.id).values(person_id=stays))
    jobs: list[Job] = []
    for each in (account, *rest):  # the one that leaves first
        is_now = None if each in alone else {"person": stays}
        if is_now != {"person": left.id}:
            admin_changes.record(session, Thing.ACCOUNT, each, who, {"person": left.id}, is_now, now)
            jobs += changes.tell_features(session, Actor.parse(each), now).jobs
    return Unlinking(ended, tuple(jobs))


def unlink(
    session: Session, policies: Policies, account: str, actor: Actor, now: datetime
) -> Unlinking | None:
    """`part` for a person: of their own accounts, and for an admin of all of Nod of anyone's.

    None, too, where this person may not.
    """
    try:
        linked = people.person_of(session, Actor.parse(account)).accounts if account.isprintable() else ()
    except ValueError:
        return None
    if account not in linked or not (
        str(actor) in linked or rights.is_global_admin(session, policies, actor)
    ):
        return None
    return part(session, account, actor, now)


def describe_unlinking(account: str, ended: int) -> str:
    """Return the text for people. ``ended``: the number of grants that ended with the link."""
    grants = f" {ended} of their grants ended with it." if ended else ""
    return f"Unlinked: {account} is a separate person again.{grants}"


def pair_of(session: Session, policies: Policies, first: Actor, second: Actor) -> Pair:
    """Return the pair of two accounts, with the roles that each would gain as one Person."""
    policy = policies.load(session)
    persons = [people.person_of(session, first), people.person_of(session, second)]
    accounts = persons[0].accounts | persons[1].accounts
    together = policy.roles_of(Person(persons[0].id, accounts=accounts))
    gains = {account: frozenset(together - policy.roles_of(p)) for p in persons for account in p.accounts}
    knows = any(Role.ADMIN in policy.roles_of(person) for person in persons)
    return Pair(first, second, gains, needs_admin=any(gains.values()) and not knows)
