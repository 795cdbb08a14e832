"""What channels last called accounts and places, so that people read names where rows keep addresses."""

from collections.abc import Iterable

from sqlalchemy import update
from sqlmodel import Session, col, select

from bot.domain.names import Names, with_names, within, written_in
from bot.domain.people import Actor, Membership
from bot.domain.text import storable
from bot.store.inserts import insert_or_ignore
from bot.store.tables.people import NameRow

_LONGEST = 100  # characters


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


def known(session: Session, wanted: Iterable[str]) -> dict[str, str]:
    """The names of accounts and places, and of what they are part of, as far as there are any."""
    keys = {each for what in wanted for each in within(what)}
    if not keys:
        return {}
    rows = session.exec(select(NameRow).where(col(NameRow.key).in_(sorted(keys))))
    return {row.key: row.name for row in rows}


def named(session: Session, text: str) -> str:
    """A text with its accounts and places called by name."""
    found = written_in(text)
    return with_names(text, known(session, found)) if found else text
