"""The queries of mutes, and `Mutes`, a copy of all mutes in memory.

Each change of a mute is in the audit log, and raises the version of the rulebook. By this version, a process
notices that its copy is old.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from bot.domain.audit import Act
from bot.domain.people import Actor, Person
from bot.features.mutes.tables import MUTE, MuteRow
from bot.store import database, people
from bot.store.audit import admin_changes
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.rules import Policies, raise_version

EIGHT_HOURS = timedelta(hours=8)
"""The length of a mute after the first press of the button."""
WEEK = timedelta(days=7)
"""The longest mute: its length after a second press of the button."""
MAX_MUTES = 50
"""The most tools that one person mutes at a time."""


@dataclass(frozen=True, slots=True)
class Mute:
    """A mute: until a time, the person of an account is not told of a tool's cards."""

    id: int
    account: str  # the account that muted; the mute counts for all accounts linked with it
    tool_name: str
    set_at: datetime
    until: datetime


class Mutes:
    """A copy of all mutes in memory, as they were at one version of the rulebook."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        # The version and the mutes are one value, since a reader takes no lock. Before any rule or mute was
        # set, the version is 0.
        self._copy: tuple[int, tuple[Mute, ...]] = (0, ())
        self._lock = Lock()

    def may_have_mutes(self) -> bool:
        """Return whether there may be mutes: some are in the copy, or the copy is old. Reads no row.

        The copy is old if its version is not that of the rulebook that this process read last
        (``policies.latest_policy``).
        """
        version, mutes = self._copy
        return bool(mutes) or version != self._policies.latest_policy.rulebook.version

    def load_mutes(self, session: Session) -> tuple[Mute, ...]:
        """Return all mutes as this transaction sees them, also mutes that are over and not deleted yet."""
        version = self._policies.load(session).rulebook.version
        copied_version, copied_mutes = self._copy
        if version == copied_version:
            return copied_mutes
        mutes = tuple(list_mutes(session))
        # only in a snapshot the version and the mutes belong together; otherwise the mutes may be newer
        if database.is_snapshot(session):
            with self._lock:
                if version > self._copy[0]:
                    self._copy = (version, mutes)
        return mutes


def list_mutes(session: Session, accounts: Collection[str] | None = None) -> Sequence[Mute]:
    """Return the mutes of these accounts, by default of all accounts, in the order of their ends."""
    query = select(MuteRow).order_by(col(MuteRow.until), col(MuteRow.id))
    if accounts is not None:
        query = query.where(col(MuteRow.account).in_(sorted(accounts)))
    return [
        Mute(row.id or 0, row.account, row.tool_name, row.set_at, row.until) for row in session.exec(query)
    ]


def find_mute(session: Session, person: Person, tool_name: str, now: datetime) -> Mute | None:
    """Return a person's current mute of a tool, or None.

    If several linked accounts mute the tool, the mute that ends last is returned.
    """
    mutes = list_mutes(session, person.accounts)
    current = [mute for mute in mutes if mute.tool_name == tool_name and mute.until > now]
    return current[-1] if current else None


def set_mute(
    session: Session, who: Actor, person: Person, tool_name: str, until: datetime, now: datetime
) -> bool:
    """Mute a tool for a person, in place of an earlier mute of it. Return False for more than `MAX_MUTES`."""
    conversation_lock.lock_everything(session)  # mutes that are set at the same time are counted in turn
    author = Author.of_person(Act.MUTE, who, person)
    mutes = list_mutes(session, person.accounts)
    earlier_ids = [mute.id for mute in mutes if mute.tool_name == tool_name]
    current = [mute for mute in mutes if mute.until > now]
    if not earlier_ids and len(current) >= MAX_MUTES:
        return False
    _remove(session, col(MuteRow.id).in_(earlier_ids), author, now)
    row = MuteRow(account=str(who), tool_name=tool_name, set_at=now, until=until)
    session.add(row)
    session.flush()
    raise_version(session)
    admin_changes.record(session, MUTE, str(row.id), author, None, _make_audit_state(row), now, tool_name)
    return True


def end_mutes(
    session: Session, who: Actor, person: Person, idents: Collection[int], now: datetime
) -> Sequence[str]:
    """End a person's own mutes with these numbers, and return the names of the tools."""
    conversation_lock.lock_everything(session)
    is_own = col(MuteRow.account).in_(sorted(person.accounts)) & col(MuteRow.id).in_(sorted(idents))
    return _remove(session, is_own, Author.of_person(Act.UNMUTE, who, person), now)


def delete_ended(session: Session, now: datetime) -> None:
    """Delete the mutes whose time is over."""
    conversation_lock.lock_everything(session)
    _remove(session, col(MuteRow.until) <= now, Author.of_nod(Act.UNMUTE), now)


def person_of(session: Session, mute: Mute) -> Person:
    """Return the person for whom a mute counts."""
    return people.load_person(session, Actor.parse(mute.account))


def _remove(session: Session, condition: ColumnElement[bool], author: Author, now: datetime) -> Sequence[str]:
    """Delete the matching mutes, and return the names of their tools."""
    rows = list(session.exec(select(MuteRow).where(condition)))
    for row in rows:
        session.delete(row)
        session.flush()
        admin_changes.record(
            session, MUTE, str(row.id), author, _make_audit_state(row), None, now, row.tool_name
        )
    if rows:
        raise_version(session)
    return [row.tool_name for row in rows]


def _make_audit_state(row: MuteRow) -> admin_changes.ThingState:
    return {"account": row.account, "tool": row.tool_name, "until": row.until.isoformat()}
