"""The agreement that two accounts belong to one Person, by a code.

1. The first account asks for a code (`make_code`).
2. The second account is shown the first (`find_offered_pair`), and agrees by giving the code (`give_code`).
3. The first account is shown the second (`find_agreed_pair`), and confirms it (`confirm`).
4. If one of the accounts gains a role by the link, an admin must allow it as well (`allow`).

A row has the state of one agreement: ``actor`` is the first account, ``other`` the second once it has agreed,
and ``wanted`` says that the link waits for an admin. The row is deleted when the accounts are linked.
"""

import secrets
from datetime import datetime, timedelta
from enum import Enum, auto

from sqlalchemy import ColumnElement, delete, update
from sqlmodel import Session, col, select

from bot.approvals.accounts import linking
from bot.approvals.accounts.linking import Pair
from bot.domain.people import Actor
from bot.domain.text import hash_text
from bot.features.people.tables import LinkCodeRow
from bot.store.rules import Policies

CODE_LIFE = timedelta(minutes=10)
ADMIN_LIFE = timedelta(days=1)
"""The time for which a link that both sides agreed to waits for an admin."""


class LinkOutcome(Enum):
    """The outcome of a confirmation."""

    LINKED = auto()
    WAITS = auto()  # the link waits for an admin
    NOTHING = auto()  # there is no such agreement, or its time is over


def make_code(session: Session, actor: Actor, now: datetime) -> str:
    """Store and return a code, which is good for `CODE_LIFE`. Earlier codes of the account end."""
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


def find_offered_pair(
    session: Session, policies: Policies, actor: Actor, code: str, now: datetime
) -> Pair | None:
    """Return the pair that a code would link if this account gave it, without changing anything.

    Returns None if the code is unknown, used, expired or the account's own.
    """
    row = session.exec(select(LinkCodeRow).where(_is_unused_code(code, actor, now))).first()
    if row:
        return linking.make_pair(session, policies, Actor.parse(row.actor, row.name), actor)
    return None


def give_code(session: Session, actor: Actor, code: str, now: datetime) -> Actor | None:
    """Give a code from this account, and return the account that asked for it.

    Returns None if the code is unknown, used, expired or the account's own.
    """
    row = session.execute(
        update(LinkCodeRow)
        .where(_is_unused_code(code, actor, now))
        .values(other=str(actor), other_name=actor.name, expires_at=now + CODE_LIFE)
        .returning(col(LinkCodeRow.actor), col(LinkCodeRow.name))
    ).one_or_none()
    return Actor.parse(*row) if row else None


def find_agreed_pair(session: Session, policies: Policies, actor: Actor, now: datetime) -> Pair | None:
    """Return the pair with the account that has given this account's code, or None."""
    row = session.exec(
        select(LinkCodeRow).where(_is_agreed(now), col(LinkCodeRow.actor) == str(actor))
    ).first()
    if row:
        return linking.make_pair(session, policies, actor, Actor.parse(row.other or "", row.other_name))
    return None


def confirm(session: Session, policies: Policies, actor: Actor, other: Actor, now: datetime) -> LinkOutcome:
    """Confirm ``other``, which has given the code of ``actor``. Link them unless an admin is needed.

    An agreement waits for an admin for `ADMIN_LIFE` from the first confirmation.
    """
    pair = find_agreed_pair(session, policies, actor, now)
    if pair is None or pair.second != other:
        return LinkOutcome.NOTHING
    is_this_agreement = (
        _is_agreed(now) & (col(LinkCodeRow.actor) == str(actor)) & (col(LinkCodeRow.other) == str(other))
    )
    if pair.needs_admin:
        waits = {"wanted": True, "expires_at": now + ADMIN_LIFE}
        session.execute(
            update(LinkCodeRow).where(is_this_agreement, col(LinkCodeRow.wanted).is_(False)).values(waits)
        )
        return LinkOutcome.WAITS
    return _link(session, policies, is_this_agreement, actor, now)


def allow(
    session: Session, policies: Policies, first: Actor, second: Actor, admin: Actor, now: datetime
) -> LinkOutcome:
    """Allow, as an admin, the link of two accounts that wait for this, named in either order."""
    both = [str(first), str(second)]
    is_of_both = col(LinkCodeRow.actor).in_(both) & col(LinkCodeRow.other).in_(both)
    is_waiting = is_of_both & col(LinkCodeRow.wanted).is_(True) & _is_agreed(now)
    return _link(session, policies, is_waiting, admin, now)


def _link(
    session: Session, policies: Policies, condition: ColumnElement[bool], by: Actor, now: datetime
) -> LinkOutcome:
    """Delete the matching row, and link its accounts. Of several callers only one gets the row."""
    row = session.execute(
        delete(LinkCodeRow)
        .where(condition)
        .returning(
            col(LinkCodeRow.actor), col(LinkCodeRow.name), col(LinkCodeRow.other), col(LinkCodeRow.other_name)
        )
    ).first()
    if row is None:
        return LinkOutcome.NOTHING
    first, first_name, second, second_name = row
    linking.link_accounts(
        session, policies, Actor.parse(first, first_name), Actor.parse(second, second_name), by, now
    )
    return LinkOutcome.LINKED


def _is_unused_code(code: str, actor: Actor, now: datetime) -> ColumnElement[bool]:
    """Return the condition for a code that no one has given yet, and that is not this account's own."""
    return (
        (col(LinkCodeRow.code_hash) == hash_text(code.strip().upper()))
        & (col(LinkCodeRow.expires_at) > now)
        & col(LinkCodeRow.other).is_(None)
        & (col(LinkCodeRow.actor) != str(actor))
    )


def _is_agreed(now: datetime) -> ColumnElement[bool]:
    """Return the condition for agreements in which the second account has given the code."""
    return col(LinkCodeRow.other).is_not(None) & (col(LinkCodeRow.expires_at) > now)
