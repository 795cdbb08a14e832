"""The queries of absences: the time in which a stand-in may decide in the place of an absent person.

Each change is in the audit log. The absences are held in memory with the rulebook (``bot/store/rules.py``),
and each change raises the rulebook's version, so that every process reads them again.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from bot.domain.audit import Act
from bot.domain.people import Absence, Actor
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.rules import make_absence, raise_version
from bot.store.tables.people import AbsenceRow


def begin_absence(session: Session, who: Actor, stand_in: Actor, until: datetime, now: datetime) -> Absence:
    """Begin an absence, in place of an earlier absence of the person."""
    person = people.load_person(session, who)
    end_absences(session, person.accounts, Author.of_person(Act.RETURN, who, person), now)
    row = AbsenceRow(
        account=str(who),
        name=who.name,
        stand_in=str(stand_in),
        stand_in_name=stand_in.name,
        since=now,
        until=until,
    )
    session.add(row)
    session.flush()
    raise_version(session)
    author = Author.of_person(Act.LEAVE, who, person)
    admin_changes.record(session, Thing.ABSENCE, row.account, author, None, _make_audit_state(row), now)
    return make_absence(row)


def list_away(session: Session) -> list[str]:
    """Return the accounts of absent people."""
    return list(session.exec(select(AbsenceRow.account).where(col(AbsenceRow.ended_at).is_(None))))


def end_absences(session: Session, accounts: Collection[str], author: Author, now: datetime) -> list[Absence]:
    """End the absence of the person with these accounts. Return the absences that ended, if any."""
    return _end(session, col(AbsenceRow.account).in_(sorted(accounts)), author, now)


def end_past(session: Session, now: datetime) -> list[Absence]:
    """End the absences whose time is over, and return them."""
    return _end(session, col(AbsenceRow.until) <= now, Author.of_nod(Act.RETURN), now)


def _end(session: Session, condition: ColumnElement[bool], author: Author, now: datetime) -> list[Absence]:
    conversation_lock.lock_everything(session)  # no one decides as a stand-in while the absence ends
    rows = list(session.exec(select(AbsenceRow).where(condition, col(AbsenceRow.ended_at).is_(None))))
    for row in rows:
        row.ended_at, row.ended_by = now, author.actor
        session.add(row)
        session.flush()
        admin_changes.record(session, Thing.ABSENCE, row.account, author, _make_audit_state(row), None, now)
    if rows:
        raise_version(session)
    return [make_absence(row) for row in rows]


def _make_audit_state(row: AbsenceRow) -> admin_changes.ThingState:
    """Return an absence's state for the audit log."""
    return {"absence": row.id, "stand_in": row.stand_in, "until": row.until.isoformat()}
