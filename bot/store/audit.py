"""The append-only record of every change of a proposal, written in the change's own transaction.

Each row carries a hash over itself and over the hash of the row before it within its proposal, so a row
that was changed, removed or slipped in breaks the chain.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, insert
from sqlmodel import Session, col, select

from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal, canonical, digest
from bot.store.prepared import Prepared
from bot.store.tables import AuditRow, ProposalRow
from bot.store.text import storable_or_none


@dataclass(frozen=True, slots=True)
class By:
    """Who or what made a change: a person through an account, or Nod itself."""

    verb: str
    actor: str
    person: str
    channel: str
    reason: str | None = None

    @classmethod
    def press(cls, verb: str, actor: Actor, person: Person, reason: str | None = None) -> "By":
        return cls(verb, str(actor), person.id, actor.channel, reason)

    @classmethod
    def nod(cls, verb: str, reason: str | None = None) -> "By":
        return cls(verb, "nod", "nod", "nod", reason)


@dataclass(frozen=True, slots=True)
class Entry:
    """One audit row as people read it."""

    id: int
    proposal_id: str
    version: int
    at: datetime
    by: By
    state: str
    digest: str
    rule: str
    grant_id: int | None
    previous: str
    hash: str


_TABLE: Any = AuditRow.__table__  # type: ignore[attr-defined]
_INSERT = Prepared(insert(_TABLE))
_LAST_HASH = Prepared(
    select(_TABLE.c.hash)
    .where(_TABLE.c.proposal_id == bindparam("proposal_id"))
    .order_by(_TABLE.c.version.desc())
    .limit(1)
)
_SINCE = Prepared(
    select(_TABLE.c.id, _TABLE.c.proposal_id)
    .where(_TABLE.c.id > bindparam("last_id"))
    .order_by(_TABLE.c.id)
    .limit(bindparam("most"))
)


def append(session: Session, proposal: Proposal, by: By, previous: str | None = None) -> None:
    """Record that ``by`` brought the proposal to what it is now. ``previous`` "" says: the first."""
    if previous is None:
        previous = _LAST_HASH.rows(session, {"proposal_id": proposal.id})[0].hash
    row = {
        "proposal_id": proposal.id,
        "version": proposal.version,
        "at": proposal.updated_at,
        "verb": by.verb,
        "state": str(proposal.state),
        "actor": by.actor,
        "person": by.person,
        "channel": by.channel,
        "reason": storable_or_none(by.reason),
        "digest": proposal.digest,
        "rule": proposal.rule,
        "grant_id": proposal.grant_id,
        "previous": previous,
    }
    _INSERT.count(session, row | {"hash": row_hash(row)})


def row_hash(row: dict[str, Any]) -> str:
    """SHA-256, in hex, over every column but the row id and the hash itself."""
    return hashlib.sha256(canonical(row | {"at": row["at"].isoformat()}).encode()).hexdigest()


def since(session: Session, last_id: int, limit: int = 500) -> list[tuple[int, str]]:
    """Audit row ids and their proposal ids after ``last_id``, oldest first: the feed of changes."""
    rows = _SINCE.rows(session, {"last_id": last_id, "most": limit})
    return [(row[0], row[1]) for row in rows]


def last_id(session: Session) -> int:
    """The id of the newest row; 0 when there is none."""
    found = session.execute(select(AuditRow.id).order_by(col(AuditRow.id).desc()).limit(1)).scalar()
    return found or 0


def history(session: Session, proposal_id: str) -> list[Entry]:
    """All that happened to one proposal, oldest first."""
    rows = session.exec(
        select(AuditRow).where(AuditRow.proposal_id == proposal_id).order_by(col(AuditRow.version))
    )
    return [_entry(row) for row in rows]


def newest(session: Session, limit: int) -> list[Entry]:
    rows = session.exec(select(AuditRow).order_by(col(AuditRow.id).desc()).limit(limit))
    return [_entry(row) for row in rows]


def first_break(session: Session, proposal_id: str) -> str | None:
    """What is wrong with one proposal's chain, in words; None when it is whole and fits the proposal."""
    previous, version = "", 0
    entries = history(session, proposal_id)
    for entry in entries:
        audited = session.get_one(AuditRow, entry.id)
        columns = {c.name: getattr(audited, c.name) for c in _TABLE.columns if c.name not in ("id", "hash")}
        if entry.version != version + 1:
            return f"proposal {proposal_id}: version {version + 1} is missing from the audit"
        if entry.previous != previous or row_hash(columns) != entry.hash:
            return f"proposal {proposal_id}: audit row {entry.id} (version {entry.version}) was altered"
        previous, version = entry.hash, entry.version
    row = session.get(ProposalRow, proposal_id)
    return _difference(row, entries[-1] if entries else None) if row else None


def breaks(session: Session) -> list[str]:
    """What is wrong anywhere in the record, in words, one line for each proposal; empty when it is whole."""
    there = set(session.scalars(select(ProposalRow.id)))
    told = set(session.scalars(select(AuditRow.proposal_id).distinct()))
    gone = [f"proposal {proposal_id}: its row is gone" for proposal_id in sorted(told - there)]
    return gone + [broken for each in sorted(there) if (broken := first_break(session, each))]


def _difference(row: ProposalRow, last: Entry | None) -> str | None:
    """How a proposal is not what its last audit row says, or its arguments not what was approved."""
    version = last.version if last else 0
    if last is None or row.version != version:
        return f"proposal {row.id}: its row is at version {row.version}, its audit at {version}"
    if (row.state, row.digest) != (last.state, last.digest):
        return f"proposal {row.id}: its row is not what audit row {last.id} (version {last.version}) says"
    if digest(row.tool_name, row.tool_version, row.arguments) != row.digest:
        return f"proposal {row.id}: its tool or arguments were altered"
    return None


def _entry(row: AuditRow) -> Entry:
    return Entry(
        id=row.id or 0,
        proposal_id=row.proposal_id,
        version=row.version,
        at=row.at,
        by=By(row.verb, row.actor, row.person, row.channel, row.reason),
        state=row.state,
        digest=row.digest,
        rule=row.rule,
        grant_id=row.grant_id,
        previous=row.previous,
        hash=row.hash,
    )
