"""Linked accounts, and the latest names of accounts and places.

Rows keep addresses, and people read names. How accounts come together: ``bot/approvals/accounts/linking.py``.
"""

from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, update
from sqlmodel import Session, col, select

from bot.domain.people import Actor, Membership, Names, Person, find_written, with_names, within
from bot.domain.proposals import Proposal
from bot.domain.record import Act
from bot.domain.text import storable
from bot.store import database
from bot.store.audit.log import By
from bot.store.engine import insert_or_ignore
from bot.store.tables.people import AccountRow, NameRow
from bot.store.tables.row import table_of

_ACCOUNT = table_of(AccountRow)
_NAME = table_of(NameRow)
KNOWN = select(
    select(_ACCOUNT.c.person_id).where(_ACCOUNT.c.actor == bindparam("actor")).scalar_subquery(),
    select(_NAME.c.standing).where(_NAME.c.key == bindparam("actor")).scalar_subquery(),
)
_LONGEST = 100  # characters
_MOST_NAMED = 500


def person_of(session: Session, actor: Actor) -> Person:
    """Return the Person behind an account: itself alone, unless it was linked."""
    return database.read_once(session, key(actor), lambda: _person_of(session, actor))


def by(session: Session, verb: Act, actor: Actor) -> By:
    """Return the author of a change for the audit log, by their account."""
    return By.press(verb, actor, person_of(session, actor))


def key(actor: Actor) -> tuple[Hashable, ...]:
    """Return the key under which a snapshot caches a person."""
    return (Person, actor.channel, actor.key, actor.name, actor.standing)


def _person_of(session: Session, actor: Actor) -> Person:
    return of_known(session, actor, *session.connection().execute(KNOWN, {"actor": str(actor)}).one())


def of_known(session: Session, actor: Actor, person_id: str | None, last_said: str | None) -> Person:
    """Return the Person, from what `KNOWN` has of an account."""
    standing = actor.standing
    if standing in (None, Membership.UNKNOWN):
        standing = Membership(last_said or standing or Membership.MEMBER)
    if person_id is None:
        account = str(actor)
        return Person(account, actor.label, frozenset({account}), standing)
    accounts = session.exec(select(AccountRow.actor).where(AccountRow.person_id == person_id))
    return Person(person_id, actor.label, frozenset(accounts), standing)


class Linked(NamedTuple):
    """An account that is linked with others; ``name`` as it was then."""

    account: str
    name: str
    person_id: str
    at: datetime


def list_linked(session: Session, person_id: str | None = None) -> list[Linked]:
    """Return every linked account, or those of one Person."""
    rows = select(AccountRow).order_by(col(AccountRow.actor))
    if person_id is not None:
        rows = rows.where(AccountRow.person_id == person_id)
    return [Linked(row.actor, row.name, row.person_id, row.linked_at) for row in session.exec(rows)]


def voices(session: Session, p: Proposal, verb: str | None = None) -> list[set[str]]:
    """Return the votes of a verb, or all, each as the ids of its voter and the absent person, if any.

    They are as they are now: accounts may be linked after they voted.
    """
    found: list[set[str]] = []
    for vote in (v for v in p.votes if verb in (None, v.verb)):
        whose = {person_of(session, each).id for each in (vote.actor, vote.absent) if each}
        found = [*(each for each in found if not each & whose), whose.union(*(e for e in found if e & whose))]
    return found


def learn(session: Session, names: Names) -> None:
    """Remember what accounts and places are called now."""
    for key, name in sorted(names.items()):  # in one order, or two of these could wait for each other
        said = storable(" ".join(name.split()))[:_LONGEST]
        row = session.get(NameRow, key)
        if row is None:
            session.execute(insert_or_ignore(session, NameRow).values(key=key, name=said))
        elif row.name != said:
            row.name = said
            session.add(row)


def learn_standing(session: Session, actor: Actor) -> None:
    """Remember whether an account belongs to the team; what its platform did not say changes nothing.

    Where that changes the name does, too: it says so of one from outside.
    """
    if actor.standing in (None, Membership.UNKNOWN):
        return
    key, standing = str(actor), str(actor.standing)
    session.execute(insert_or_ignore(session, NameRow).values(key=key, name=actor.name))
    session.execute(update(NameRow).where(col(NameRow.key) == key).values(standing=standing))


def find_by_name(session: Session, name: str) -> list[Actor]:
    """Return the accounts of the team with this name or first name, in any case."""
    said = name.casefold()
    if not said:
        return []
    rows = session.exec(select(NameRow).where(col(NameRow.name).istartswith(said, autoescape=True)).limit(50))
    names = ((row, row.name.casefold()) for row in rows if row.standing in (None, Membership.MEMBER))
    return [Actor.parse(row.key, row.name) for row, each in names if said in (each, each.split()[0])]


def accounts_in(session: Session, channel: str) -> list[str]:
    """Return accounts of a channel that have a name, the most that are compared with one that is mistyped."""
    keys = select(NameRow.key).where(col(NameRow.key).startswith(f"{channel}:", autoescape=True))
    return list(session.exec(keys.order_by(col(NameRow.key)).limit(_MOST_NAMED)))


def find_known_names(session: Session, wanted: Iterable[str]) -> dict[str, str]:
    """Return the names of accounts and places, and of what they are part of, as far as there are any."""
    keys = {each for what in wanted for each in within(what)}
    if not keys:
        return {}
    rows = session.exec(select(NameRow).where(col(NameRow.key).in_(sorted(keys))))
    return {row.key: row.name for row in rows}


def put_names_in(session: Session, text: str) -> str:
    """Return a text with its accounts and places called by name."""
    found = find_written(text)
    if found:
        return with_names(text, find_known_names(session, found))
    return text
