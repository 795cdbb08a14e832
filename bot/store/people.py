"""Which accounts are one Person. How they come together and apart is in ``bot/approvals/linking.py``."""

from collections.abc import Hashable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam
from sqlmodel import Session, col, select

from bot.domain.people import Actor, Membership, Person
from bot.domain.proposals import Proposal
from bot.store import snapshot
from bot.store.tables.people import AccountRow, NameRow
from bot.store.tables.row import table_of

_ACCOUNT = table_of(AccountRow)
_NAME = table_of(NameRow)
KNOWN = select(
    select(_ACCOUNT.c.person_id).where(_ACCOUNT.c.actor == bindparam("actor")).scalar_subquery(),
    select(_NAME.c.standing).where(_NAME.c.key == bindparam("actor")).scalar_subquery(),
)


def person_of(session: Session, actor: Actor) -> Person:
    """The Person behind an account: itself alone, unless it was linked."""
    return snapshot.once(session, key(actor), lambda: _person_of(session, actor))


def key(actor: Actor) -> tuple[Hashable, ...]:
    """By what a snapshot keeps who someone is."""
    return (Person, actor, actor.label, actor.standing)


def _person_of(session: Session, actor: Actor) -> Person:
    return of_known(session, actor, *session.connection().execute(KNOWN, {"actor": str(actor)}).one())


def of_known(session: Session, actor: Actor, person_id: str | None, last_said: str | None) -> Person:
    """The Person, from what `KNOWN` has of an account."""
    standing = actor.standing
    if standing in (None, Membership.UNKNOWN):
        standing = Membership(last_said or standing or Membership.MEMBER)
    if person_id is None:
        return Person(str(actor), actor.label, frozenset({str(actor)}), standing)
    accounts = session.exec(select(AccountRow.actor).where(AccountRow.person_id == person_id))
    return Person(person_id, actor.label, frozenset(accounts), standing)


class Linked(NamedTuple):
    """An account that is linked with others; ``name`` as it was then."""

    account: str
    name: str
    person_id: str
    at: datetime


def linked(session: Session, person_id: str | None = None) -> list[Linked]:
    """Every linked account, or those of one Person."""
    rows = select(AccountRow).order_by(col(AccountRow.actor))
    if person_id is not None:
        rows = rows.where(AccountRow.person_id == person_id)
    return [Linked(row.actor, row.name, row.person_id, row.linked_at) for row in session.exec(rows)]


def voters(session: Session, p: Proposal, verb: str | None = None) -> set[str]:
    """Ids of the Persons who voted (so), as they are now: accounts may be linked after they voted."""
    return {person_of(session, v.actor).id for v in p.votes if verb in (None, v.verb)}
