"""Rules as rows, and the rulebook made of them.

Every change raises the book's version in the same transaction, so a process knows with one small read whether
the book it holds is the one in force. Who changed what is recorded in ``ledger.py``.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import update
from sqlmodel import Session, col, select

from bot.domain.people import Actor, Role
from bot.domain.policy import Policy
from bot.domain.rules import Rule, Rulebook, Subject
from bot.store import ledger, people
from bot.store.audit import By
from bot.store.ledger import Thing
from bot.store.prepared import Prepared
from bot.store.tables import BookRow, ProposalRow, RuleRow
from bot.store.upsert import insert_or_ignore

_BOOK = 1
_ALL = "everything"  # what a pause is about
_BOOKS: Any = BookRow.__table__  # type: ignore[attr-defined]
_VERSION = Prepared(select(_BOOKS.c.version, _BOOKS.c.paused_at).where(_BOOKS.c.id == _BOOK))


class Policies:
    """The policy in force: the settings' defaults joined with the newest rulebook."""

    def __init__(self, defaults: Policy) -> None:
        self._held = defaults

    def load(self, session: Session) -> Policy:
        """The policy as this transaction sees it; read anew only when the book's version moved."""
        row = _VERSION.row(session, {})
        version = row[0] if row else 0
        if version != self._held.book.version:
            rules = session.exec(
                select(RuleRow).where(col(RuleRow.ended_at).is_(None)).order_by(col(RuleRow.id))
            )
            paused = row is not None and row[1] is not None
            self._held = self._held.with_book(Rulebook(version, tuple(_rule(r) for r in rules), paused))
        return self._held

    def is_admin(self, session: Session, actor: Actor) -> bool:
        return Role.ADMIN in self.load(session).roles_of(people.person_of(session, actor))


def add(
    session: Session, subject: Subject, scope: str, pattern: str, value: Any, by: Actor, now: datetime
) -> Rule:
    """Set a rule; one of the same subject, scope and pattern (and account, for roles) is replaced."""
    before: ledger.State = None
    for rule in session.exec(
        select(RuleRow).where(
            RuleRow.subject == subject,
            RuleRow.scope == scope,
            RuleRow.pattern == pattern,
            col(RuleRow.ended_at).is_(None),
        )
    ):
        if subject not in (Subject.ROLE, Subject.ROUTE) or rule.value == value:
            rule.ended_at, rule.ended_by = now, str(by)
            session.add(rule)
            before = ledger.rule_state(rule)
    row = RuleRow(subject=subject, scope=scope, pattern=pattern, value=value, set_by=str(by), set_at=now)
    session.add(row)
    session.flush()
    _raise_version(session)
    _record(session, row, _by(session, "set", by), before, ledger.rule_state(row), now)
    return _rule(row)


def end(session: Session, rule_id: int, by: Actor, now: datetime) -> Rule | None:
    """Take a rule back; None when there is none of that number in force."""
    row = session.get(RuleRow, rule_id)
    if row is None or row.ended_at is not None:
        return None
    row.ended_at, row.ended_by = now, str(by)
    session.add(row)
    session.flush()
    _raise_version(session)
    _record(session, row, _by(session, "drop", by), ledger.rule_state(row), None, now)
    return _rule(row)


def _record(
    session: Session, row: RuleRow, by: By, before: ledger.State, after: ledger.State, now: datetime
) -> None:
    ledger.record(session, Thing.RULE, ledger.rule_key(row), by, before, after, now, row.pattern)


class InForce(NamedTuple):
    """A rule, and which account set it when."""

    rule: Rule
    by: str
    at: datetime


def in_force(session: Session) -> list[InForce]:
    """Every rule, in the order they were set."""
    rows = session.exec(select(RuleRow).where(col(RuleRow.ended_at).is_(None)).order_by(col(RuleRow.id)))
    return [InForce(_rule(row), row.set_by, row.set_at) for row in rows]


def pause(session: Session, by: Actor, now: datetime) -> bool:
    """Stop every execution and every clock; False when that is so already."""
    _raise_version(session)
    paused = session.execute(
        update(BookRow)
        .where(col(BookRow.id) == _BOOK, col(BookRow.paused_at).is_(None))
        .values(paused_at=now)
    )
    if not paused.rowcount:  # type: ignore[attr-defined]
        return False
    after = {"since": now.isoformat()}
    ledger.record(session, Thing.PAUSE, _ALL, _by(session, "pause", by), None, after, now)
    return True


def resume(session: Session, by: Actor, now: datetime) -> timedelta | None:
    """Go on; open proposals get back the time they stood still. None when nothing was paused."""
    row = session.get(BookRow, _BOOK)
    if row is None or row.paused_at is None:
        return None
    before = {"since": row.paused_at.isoformat()}
    stood = max(now - row.paused_at, timedelta())
    row.paused_at = None
    session.add(row)
    session.flush()
    _raise_version(session)
    for proposal in session.exec(select(ProposalRow).where(ProposalRow.state == "proposed")):
        proposal.expires_at += stood
        proposal.warn_at = _later(proposal.warn_at, stood)
        proposal.remind_at = _later(proposal.remind_at, stood)
        proposal.escalate_at = _later(proposal.escalate_at, stood)
        session.add(proposal)
    ledger.record(session, Thing.PAUSE, _ALL, _by(session, "resume", by), before, None, now)
    return stood


def _by(session: Session, verb: str, actor: Actor) -> By:
    return By.press(verb, actor, people.person_of(session, actor))


def _later(due: datetime | None, by: timedelta) -> datetime | None:
    return None if due is None else due + by


def state_of(session: Session, name: str) -> Mapping[str, Any]:
    """What a recurring task remembers between its runs; empty at first."""
    row = session.get(BookRow, _BOOK)
    return (row.memory or {}).get(name, {}) if row else {}


def keep_state(session: Session, name: str, state: Mapping[str, Any]) -> None:
    row = session.get(BookRow, _BOOK)
    if row is None:
        _raise_version(session)
        row = session.get_one(BookRow, _BOOK)
    row.memory = {**(row.memory or {}), name: dict(state)}
    session.add(row)


def _raise_version(session: Session) -> None:
    session.execute(insert_or_ignore(session, BookRow).values(id=_BOOK, version=0))
    session.execute(update(BookRow).where(col(BookRow.id) == _BOOK).values(version=BookRow.version + 1))


def _rule(row: RuleRow) -> Rule:
    return Rule(row.id or 0, Subject(row.subject), row.scope, row.pattern, row.value)
