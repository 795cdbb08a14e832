"""The append-only record of every change of a proposal, written in the change's own transaction.

Each row carries a hash over itself and over the hash of the row before it within its proposal, so a row
that was changed, removed or slipped in breaks the chain.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
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
    return next(iter(breaks(session, proposal_id)), None)


def breaks(session: Session, proposal_id: str | None = None) -> list[str]:
    """What is wrong anywhere in the record (or that of one proposal), in words; empty when it is whole.

    Two passes over ordered rows, whatever their number: the chains, then the proposals beside their last row.
    One line for each proposal.
    """
    chains, rows = _CHAINS, _LAST
    if proposal_id is not None:
        chains, rows = chains.where(_TABLE.c.proposal_id == proposal_id), rows.where(_P.c.id == proposal_id)
    found: dict[str, str] = {}
    streamed = session.connection().execute(chains, execution_options={"yield_per": _BATCH})
    for ident, entries in groupby(streamed, key=lambda row: row.proposal_id):
        if broken := _broken_chain(list(entries)):
            found[ident] = f"proposal {ident}: {broken}"
    for row in session.connection().execute(rows, execution_options={"yield_per": _BATCH}):
        if row.id not in found and (broken := _difference(row)):
            found[row.id] = f"proposal {row.id}: {broken}"
    return [found[ident] for ident in sorted(found)]


_BATCH = 2000
_P: Any = ProposalRow.__table__  # type: ignore[attr-defined]
_CHAINS = (
    select(_TABLE, _P.c.version.label("now_at"))
    .outerjoin_from(_TABLE, _P, _P.c.id == _TABLE.c.proposal_id)
    .order_by(_TABLE.c.proposal_id, _TABLE.c.version)
)
_LAST = select(  # type: ignore[call-overload]
    *(_P.c[name] for name in ("id", "version", "state", "digest", "tool_name", "tool_version", "arguments")),
    _TABLE.c.id.label("audit_id"),
    _TABLE.c.state.label("audit_state"),
    _TABLE.c.digest.label("audit_digest"),
).outerjoin_from(_P, _TABLE, (_TABLE.c.proposal_id == _P.c.id) & (_TABLE.c.version == _P.c.version))
_COLUMNS = tuple(c.name for c in _TABLE.columns)


def _broken_chain(entries: Sequence[Any]) -> str | None:
    """Where one proposal's rows, oldest first, are no chain, or do not end where the proposal stands."""
    previous = ""
    for version, entry in enumerate(entries, 1):
        if entry.version != version:
            return f"version {version} is missing from the audit"
        columns = dict(zip(_COLUMNS, entry, strict=False))  # the last of the entry is the proposal's
        del columns["id"], columns["hash"]
        if entry.previous != previous or row_hash(columns) != entry.hash:
            return f"audit row {entry.id} (version {version}) was altered"
        previous = entry.hash
    last = entries[-1]
    if last.now_at is None:
        return "its row is gone"
    if last.now_at != last.version:
        return f"its row is at version {last.now_at}, its audit at {last.version}"
    return None


def _difference(row: Any) -> str | None:
    """How a proposal is not what its last audit row says, or its arguments not what was approved."""
    if row.audit_id is None:
        return f"its row is at version {row.version}, its audit at 0"
    if (row.state, row.digest) != (row.audit_state, row.audit_digest):
        return f"its row is not what audit row {row.audit_id} (version {row.version}) says"
    if digest(row.tool_name, row.tool_version, row.arguments) != row.digest:
        return "its tool or arguments were altered"
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
