"""The agreement that two accounts belong to one Person, by a code.

One account asks for a code, the other gives the code and agrees, and the first agrees to that account. If one
of them gains a role and neither is an admin, an admin must agree as well.
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


class End(Enum):
    """The outcome of a confirmation."""

    LINKED = auto()
    WAITS = auto()  # the link waits for an admin
    NOTHING = auto()  # there is no such pair, or its time is over


def new_code(session: Session, actor: Actor, now: datetime) -> str:
    """Store and return a code to be given from another account within `CODE_LIFE`; earlier ones end."""
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
    if row:
        return linking.pair_of(session, policies, Actor.parse(row.actor, row.name), actor)
    return None


def agree(session: Session, actor: Actor, code: str, now: datetime) -> Actor | None:
    """Use a code for this account, and return the account that asked for it; None as in `look`."""
    row = session.execute(
        update(LinkCodeRow)
        .where(_fresh(code, actor, now))
        .values(other=str(actor), other_name=actor.name, expires_at=now + CODE_LIFE)
        .returning(col(LinkCodeRow.actor), col(LinkCodeRow.name))
    ).one_or_none()
    return Actor.parse(*row) if row else None


def find_agreed_pair(session: Session, policies: Policies, actor: Actor, now: datetime) -> Pair | None:
    """Return the pair with the account that gave this account's code and agreed, or None."""
    row = session.exec(select(LinkCodeRow).where(_waiting(now), col(LinkCodeRow.actor) == str(actor))).first()
    if row:
        return linking.pair_of(session, policies, actor, Actor.parse(row.other or "", row.other_name))
    return None


def confirm(session: Session, policies: Policies, actor: Actor, other: Actor, now: datetime) -> End:
    """Confirm, as the account that asked for the code, the account that gave it."""
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
    """Confirm, as an admin, two accounts that both agreed, named in either order."""
    each = [str(first), str(second)]
    pair = col(LinkCodeRow.actor).in_(each) & col(LinkCodeRow.other).in_(each)
    return _take(session, policies, pair & col(LinkCodeRow.wanted).is_(True) & _waiting(now), admin, now)


def _take(session: Session, policies: Policies, which: ColumnElement[bool], by: Actor, now: datetime) -> End:
    """Join the pair of a row, and delete the row, so that only one of several callers joins the pair."""
    row = session.execute(
        delete(LinkCodeRow)
        .where(which)
        .returning(
            col(LinkCodeRow.actor), col(LinkCodeRow.name), col(LinkCodeRow.other), col(LinkCodeRow.other_name)
        )
    ).first()
    if row is None:
        return End.NOTHING
    linking.join(session, policies, Actor.parse(row[0], row[1]), Actor.parse(row[2], row[3]), by, now)
    return End.LINKED


def _fresh(code: str, actor: Actor, now: datetime) -> ColumnElement[bool]:
    """Return the condition for a code that no one has given yet, and that is not this account's own."""
    return (
        (col(LinkCodeRow.code_hash) == hash_text(code.strip().upper()))
        & (col(LinkCodeRow.expires_at) > now)
        & col(LinkCodeRow.other).is_(None)
        & (col(LinkCodeRow.actor) != str(actor))
    )


def _waiting(now: datetime) -> ColumnElement[bool]:
    return col(LinkCodeRow.other).is_not(None) & (col(LinkCodeRow.expires_at) > now)
