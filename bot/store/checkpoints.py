"""The audit as a whole: daily seals, verification, export.

Within a proposal each row is chained to the one before it (``bot/store/audit.py``). A checkpoint seals all
rows up to it and the checkpoint before it, so that a whole proposal cannot vanish or appear unseen either.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from bot.domain.redaction import redact
from bot.store import audit
from bot.store.tables import AuditRow, CheckpointRow, ProposalRow

_COLUMNS = tuple(c.name for c in AuditRow.__table__.columns)  # type: ignore[attr-defined]
_EXPORTED = tuple(name for name in _COLUMNS if name != "previous")


def seal(session: Session, now: datetime) -> bool:
    """Make today's checkpoint, once; False when there is one, or nothing new to seal."""
    day = now.date().isoformat()
    last = session.exec(
        select(CheckpointRow).order_by(col(CheckpointRow.last_audit_id).desc()).limit(1)
    ).first()
    if session.get(CheckpointRow, day) is not None:
        return False
    newest = session.exec(select(AuditRow.id).order_by(col(AuditRow.id).desc()).limit(1)).first()
    if newest is None or (last is not None and newest == last.last_audit_id):
        return False
    previous = last.hash if last else ""
    count, whole = _sealed(session, last.last_audit_id if last else 0, newest, previous)
    session.add(
        CheckpointRow(day=day, last_audit_id=newest, rows=count, previous=previous, hash=whole, made_at=now)
    )
    return True


def faults(session: Session) -> list[str]:
    """Every row that was changed, removed or inserted, named in words; empty when the record is whole."""
    return [*audit.breaks(session), *_broken_seals(session)]


def _sealed(session: Session, after: int, until: int, previous: str) -> tuple[int, str]:
    """How many rows lie in between, and the hash over them and the seal before."""
    running = hashlib.sha256(previous.encode())
    count = 0
    rows = session.execute(
        select(AuditRow.id, AuditRow.hash)
        .where(col(AuditRow.id) > after, col(AuditRow.id) <= until)
        .order_by(col(AuditRow.id))
    )
    for ident, row in rows:
        running.update(f"{ident}:{row};".encode())
        count += 1
    return count, running.hexdigest()


def _broken_seals(session: Session) -> Iterator[str]:
    previous, after = "", 0
    for seal_ in session.exec(select(CheckpointRow).order_by(col(CheckpointRow.last_audit_id))):
        count, whole = _sealed(session, after, seal_.last_audit_id, previous)
        if seal_.previous != previous or (count, whole) != (seal_.rows, seal_.hash):
            yield (
                f"the checkpoint of {seal_.day} does not fit: it sealed {seal_.rows} rows up to row "
                f"{seal_.last_audit_id}, now there are {count}, or their contents differ"
            )
        previous, after = seal_.hash, seal_.last_audit_id


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows of the audit; empty fields match all."""

    who: str = ""
    tool: str = ""
    proposal: str = ""
    since: datetime | None = None


def rows(session: Session, wanted: Wanted, limit: int | None = None) -> list[dict[str, Any]]:
    """Audit rows with their tool and arguments' digest, oldest first; ``limit`` keeps the newest."""
    audit: Any = AuditRow.__table__  # type: ignore[attr-defined]
    proposal: Any = ProposalRow.__table__  # type: ignore[attr-defined]
    statement = select(  # type: ignore[call-overload]
        *(audit.c[name] for name in _EXPORTED), proposal.c.tool_name, proposal.c.description
    ).join(proposal, proposal.c.id == audit.c.proposal_id)
    if wanted.who:
        statement = statement.where((audit.c.actor == wanted.who) | (audit.c.person == wanted.who))
    if wanted.tool:
        statement = statement.where(proposal.c.tool_name == wanted.tool)
    if wanted.proposal:
        statement = statement.where(audit.c.proposal_id.startswith(wanted.proposal, autoescape=True))
    if wanted.since:
        statement = statement.where(audit.c.at >= wanted.since)
    found = session.connection().execute(statement.order_by(audit.c.id.desc()).limit(limit)).mappings()
    return [_plain(dict(row)) for row in reversed(list(found))]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v.isoformat() if isinstance(v, datetime) else redact(v) for k, v in row.items()}


def as_jsonl(found: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)


def as_csv(found: Sequence[dict[str, Any]]) -> str:
    """With a header line; a cell that a spreadsheet would run as a formula gets a quote before it."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=[*_EXPORTED, "tool_name", "description"])
    writer.writeheader()
    for row in found:
        writer.writerow(
            {k: f"'{v}" if isinstance(v, str) and v[:1] in "=+-@\t\r" else v for k, v in row.items()}
        )
    return out.getvalue()
