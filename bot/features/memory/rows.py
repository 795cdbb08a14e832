"""The queries of remembered facts. `access.py` decides who may see and change a fact.

Each change is recorded in the audit log, which has only a hash of the fact: so a forgotten fact is gone.
Adding and deleting facts raises the version of the rulebook: then `prompt_section.py` reads again if there
are any facts. The facts themselves it reads each time, so an edit raises no version.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, or_, tuple_
from sqlmodel import Session, col, select

from bot.domain.audit import Act
from bot.domain.chat import Address
from bot.domain.people import Actor
from bot.domain.text import hash_text
from bot.features.memory.facts import About, Fact, FactScope
from bot.features.memory.tables import FACT, MemoryRow
from bot.store.audit import admin_changes
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.rules import raise_version

_MAX_LISTED = 1_000  # the most facts in one list


def add_fact(session: Session, fact: Fact, author: Author) -> None:
    """Store a new fact. ``author``: who added it, for the audit log."""
    about, scope = fact.scope
    row = MemoryRow(
        about=about,
        scope=scope,
        fact=fact.text,
        asked_by=str(fact.asked_by),
        said_at=fact.said_at,
        until=fact.until,
    )
    session.add(row)
    session.flush()
    raise_version(session)
    admin_changes.record(session, FACT, str(row.id), author, None, _make_audit_state(row), fact.said_at)


def change_fact(session: Session, fact: Fact, author: Author) -> None:
    """Store a fact's new words or new end."""
    row = session.get_one(MemoryRow, fact.id)
    before = _make_audit_state(row)
    row.fact, row.said_at, row.until = fact.text, fact.said_at, fact.until
    session.add(row)
    session.flush()
    admin_changes.record(session, FACT, str(row.id), author, before, _make_audit_state(row), fact.said_at)


def remove_facts(session: Session, idents: Collection[int], author: Author, now: datetime) -> int:
    """Delete these facts, and return their number."""
    return _remove(session, col(MemoryRow.id).in_(sorted(idents)), author, now)


def remove_ended(session: Session, now: datetime) -> None:
    """Delete the facts that no longer hold."""
    _remove(session, col(MemoryRow.until) <= now, Author.of_nod(Act.FORGET), now)


def remove_about_person(session: Session, accounts: Collection[str], author: Author, now: datetime) -> int:
    """Delete the facts about the person with these accounts, and return their number."""
    is_about_person = (col(MemoryRow.about) == About.PERSON) & col(MemoryRow.scope).in_(sorted(accounts))
    return _remove(session, is_about_person, author, now)


def move_facts(session: Session, old: Address, new: Address, now: datetime) -> None:
    """Move the facts of a chat to its new address. Implements `MoveChat`."""
    is_of_chat = (col(MemoryRow.about) == About.PLACE) & (col(MemoryRow.scope) == str(old))
    rows = list(session.exec(select(MemoryRow).where(is_of_chat).order_by(col(MemoryRow.id))))
    for row in rows:
        before = _make_audit_state(row)
        row.scope = str(new)
        session.add(row)
        session.flush()
        admin_changes.record(
            session, FACT, str(row.id), Author.of_nod(Act.MOVE), before, _make_audit_state(row), now
        )
    if rows:
        raise_version(session)


def list_facts(session: Session, scopes: Collection[FactScope], now: datetime) -> list[Fact]:
    """Return the facts of these scopes that still hold."""
    is_in_scope = tuple_(col(MemoryRow.about), col(MemoryRow.scope)).in_(sorted(scopes))
    return _select_facts(session, is_in_scope, now)


def list_all_but_about_others(session: Session, accounts: Collection[str], now: datetime) -> list[Fact]:
    """Return the facts about places, about teams and about the person with these accounts."""
    is_allowed = or_(col(MemoryRow.about) != About.PERSON, col(MemoryRow.scope).in_(sorted(accounts)))
    return _select_facts(session, is_allowed, now)


def _remove(session: Session, condition: ColumnElement[bool], author: Author, now: datetime) -> int:
    conversation_lock.lock_everything(session)  # facts change one transaction after the other
    rows = list(session.exec(select(MemoryRow).where(condition)))
    for row in rows:
        session.delete(row)
        session.flush()
        admin_changes.record(session, FACT, str(row.id), author, _make_audit_state(row), None, now)
    if rows:
        raise_version(session)
    return len(rows)


def _select_facts(session: Session, condition: ColumnElement[bool], now: datetime) -> list[Fact]:
    """Return the matching facts that still hold, ordered by their scopes."""
    still_holds = or_(col(MemoryRow.until).is_(None), col(MemoryRow.until) > now)
    order = (col(MemoryRow.about), col(MemoryRow.scope), col(MemoryRow.id))
    rows = session.exec(select(MemoryRow).where(condition, still_holds).order_by(*order).limit(_MAX_LISTED))
    return [_make_fact(row) for row in rows]


def _make_fact(row: MemoryRow) -> Fact:
    scope = FactScope(About(row.about), row.scope)
    return Fact(row.id or 0, row.fact, scope, Actor.parse(row.asked_by), row.said_at, row.until)


def _make_audit_state(row: MemoryRow) -> dict[str, str]:
    """Return a fact's state for the audit log, without its words, which may be forgotten."""
    return {"about": row.about, "scope": row.scope, "fact": hash_text(row.fact)}
