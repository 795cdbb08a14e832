"""Linking of accounts to one Person, and unlinking. One transaction each.

Both sides agree: one account asks for a code, the other gives it and says yes, the first says yes to that
account. Where one of them gains a role and neither is an admin, an admin says yes as well. The accounts of a
Person are read in ``bot/store/people.py``.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from sqlalchemy import ColumnElement, delete, update
from sqlmodel import Session, col, select

from bot.approvals import grants
from bot.domain.people import Actor, Person, Role
from bot.domain.record import Act
from bot.domain.text import hash_text
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.engine import insert_or_ignore
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.store.tables.people import AccountRow, LinkCodeRow

CODE_LIFE = timedelta(minutes=10)
ADMIN_LIFE = timedelta(days=1)
"""How long a link that both sides want waits for an admin."""


class End(Enum):
    """The outcome of a confirmation."""

    LINKED = auto()
    WAITS = auto()  # for an admin
    NOTHING = auto()  # there is no such pair, or it is too late


@dataclass(frozen=True, slots=True)
class Pair:
    """Two accounts that may become one Person, and the roles that each would gain."""

    first: Actor
    second: Actor
    gains: Mapping[str, frozenset[Role]]
    needs_admin: bool


def new_code(session: Session, actor: Actor, now: datetime) -> str:
    """A code that this person gives from another account within `CODE_LIFE`; earlier ones end."""
    session.execute(
        delete(LinkCodeRow).where(
            (col(LinkCodeRow.actor) == str(actor)) | (col(LinkCodeRow.expires_at) <= now)
        )
    )
    code = secrets.token_hex(5).upper()
    session.add(
        LinkCodeRow(
            code_hash=hash_text(code),
            actor=str(actor),
            name=actor.name,
            expires_at=now + CODE_LIFE,
            other_name="",
        )
    )
    return code


def look(session: Session, policies: Policies, actor: Actor, code: str, now: datetime) -> Pair | None:
    """Return the pair that a code would link.

    None if the code is unknown, used, expired or the account's own.
    """
    row = session.exec(select(LinkCodeRow).where(_fresh(code, actor, now))).first()
    return _pair(session, policies, Actor.parse(row.actor, row.name), actor) if row else None


def agree(session: Session, actor: Actor, code: str, now: datetime) -> Actor | None:
    """This account says yes to the one that asked for the code, which is used then; None as for `look`."""
    row = session.execute(
        update(LinkCodeRow)
        .where(_fresh(code, actor, now))
        .values(other=str(actor), other_name=actor.name, expires_at=now + CODE_LIFE)
        .returning(col(LinkCodeRow.actor), col(LinkCodeRow.name))
    ).one_or_none()
    return Actor.parse(*row) if row else None


def find_agreed_pair(session: Session, policies: Policies, actor: Actor, now: datetime) -> Pair | None:
    """Return who gave this account's code and said yes; None while no one did."""
    row = session.exec(select(LinkCodeRow).where(_waiting(now), col(LinkCodeRow.actor) == str(actor))).first()
    return _pair(session, policies, actor, Actor.parse(row.other or "", row.other_name)) if row else None


def confirm(session: Session, policies: Policies, actor: Actor, other: Actor, now: datetime) -> End:
    """The account that asked for the code says yes to the one that gave it."""
    pair = find_agreed_pair(session, policies, actor, now)
    if pair is None or pair.second != other:
        return End.NOTHING
    mine = _waiting(now) & (col(LinkCodeRow.actor) == str(actor)) & (col(LinkCodeRow.other) == str(other))
    if pair.needs_admin:
        waits = {"wanted": True, "expires_at": now + ADMIN_LIFE}
        session.execute(update(LinkCodeRow).where(mine).values(waits))
        return End.WAITS
    return _take(session, policies, mine, actor, now)


def allow(
    session: Session, policies: Policies, first: Actor, second: Actor, admin: Actor, now: datetime
) -> End:
    """An admin says yes to two accounts that both want it, named in either order."""
    each = [str(first), str(second)]
    pair = col(LinkCodeRow.actor).in_(each) & col(LinkCodeRow.other).in_(each)
    return _take(session, policies, pair & col(LinkCodeRow.wanted).is_(True) & _waiting(now), admin, now)


def _take(session: Session, policies: Policies, which: ColumnElement[bool], by: Actor, now: datetime) -> End:
    """Join the pair of a row that is used up by it: of several who say yes at the same time one joins."""
    row = session.execute(
        delete(LinkCodeRow)
        .where(which)
        .returning(
            col(LinkCodeRow.actor), col(LinkCodeRow.name), col(LinkCodeRow.other), col(LinkCodeRow.other_name)
        )
    ).first()
    if row is None:
        return End.NOTHING
    join(session, policies, Actor.parse(row[0], row[1]), Actor.parse(row[2], row[3]), by, now)
    return End.LINKED


def join(session: Session, policies: Policies, first: Actor, second: Actor, by: Actor, now: datetime) -> None:
    """Make the Persons of two accounts one; the audit log has each account, and the roles that it gained."""
    conversation_lock.everywhere(session)
    gains = _pair(session, policies, first, second).gains
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
            _tell_features(session, account, now)


def part(session: Session, account: str, by: Actor, now: datetime) -> int | None:
    """Make an account a Person of its own again; how many grants ended, or None where it is not linked.

    What its Person had allowed ends: no one can tell which of the two allowed it.
    """
    conversation_lock.everywhere(session)
    left = people.person_of(session, Actor.parse(account))
    rest = sorted(left.accounts - {account})
    if not rest:
        return None
    who = people.by(session, Act.UNLINK, by)
    ended = grants.end_of_person(session, left.id, who, now)
    stays = left.id if left.id != account else rest[0]
    alone = {account, *(rest if len(rest) == 1 else ())}
    session.execute(delete(AccountRow).where(col(AccountRow.actor).in_(alone)))
    session.execute(update(AccountRow).where(col(AccountRow.person_id) == left.id).values(person_id=stays))
    for each in (account, *rest):  # the one that leaves first
        is_now = None if each in alone else {"person": stays}
        if is_now != {"person": left.id}:
            admin_changes.record(session, Thing.ACCOUNT, each, who, {"person": left.id}, is_now, now)
            _tell_features(session, each, now)
    return ended


def _tell_features(session: Session, account: str, now: datetime) -> None:
    for change_person in hooks_of(session).change_person:
        change_person(session, Actor.parse(account), now)


def _pair(session: Session, policies: Policies, first: Actor, second: Actor) -> Pair:
    policy = policies.load(session)
    persons = [people.person_of(session, first), people.person_of(session, second)]
    accounts = persons[0].accounts | persons[1].accounts
    together = policy.roles_of(Person(persons[0].id, accounts=accounts))
    gains = {account: frozenset(together - policy.roles_of(p)) for p in persons for account in p.accounts}
    knows = any(Role.ADMIN in policy.roles_of(person) for person in persons)
    return Pair(first, second, gains, needs_admin=any(gains.values()) and not knows)


def _fresh(code: str, actor: Actor, now: datetime) -> ColumnElement[bool]:
    """A code that no one has given yet, and not this account's own."""
    return (
        (col(LinkCodeRow.code_hash) == hash_text(code.strip().upper()))
        & (col(LinkCodeRow.expires_at) > now)
        & col(LinkCodeRow.other).is_(None)
        & (col(LinkCodeRow.actor) != str(actor))
    )


def _waiting(now: datetime) -> ColumnElement[bool]:
    return col(LinkCodeRow.other).is_not(None) & (col(LinkCodeRow.expires_at) > now)
