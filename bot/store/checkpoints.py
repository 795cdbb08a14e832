"""The record as a whole: daily seals, verification, export.

Within a proposal each row is chained to the one before it (``bot/store/audit.py``); what people
change besides is one chain (``bot/store/ledger.py``). A checkpoint
seals all rows of both up to it and the checkpoint
before it, so that a whole proposal, or the newest rules, cannot vanish or appear unseen either.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from sqlmodel import Session, col, select

from bot.domain.people import Actor
from bot.domain.redaction import redact
from bot.store import audit, ledger, people
from bot.store.ledger import Thing
from bot.store.tables import AuditRow, CheckpointRow, LedgerRow, ProposalRow

_AUDIT: Any = AuditRow.__table__  # type: ignore[attr-defined]
_LEDGER: Any = LedgerRow.__table__  # type: ignore[attr-defined]
_OF_AUDIT = tuple(c.name for c in _AUDIT.columns if c.name != "previous")
_OF_LEDGER = tuple(c.name for c in _LEDGER.columns if c.name not in ("previous", "tool"))
EXPORTED = (*_OF_AUDIT, "tool_name", "description", "thing", "key", "before", "after")
"""The columns of the export. Rows about proposals leave the last four empty, all others the first few."""


def seal(session: Session, now: datetime) -> bool:
    """Make today's checkpoint, once; False when there is one, or nothing new to seal."""
    day = now.date().isoformat()
    if session.get(CheckpointRow, day) is not None:
        return False
    last = session.exec(_SEALS.order_by(_AUDITED.desc(), _NOTED.desc()).limit(1)).first()
    since = (last.last_audit_id, last.last_ledger_id) if last else (0, 0)
    until = (_newest(session, _AUDIT), _newest(session, _LEDGER))
    if until == since:
        return False
    previous = last.hash if last else ""
    count, whole = _sealed(session, since, until, previous)
    session.add(
        CheckpointRow(
            day=day,
            last_audit_id=until[0],
            last_ledger_id=until[1],
            rows=count,
            previous=previous,
            hash=whole,
            made_at=now,
        )
    )
    return True


_AUDITED, _NOTED = col(CheckpointRow.last_audit_id), col(CheckpointRow.last_ledger_id)
_SEALS = select(CheckpointRow)


def _newest(session: Session, table: Any) -> int:
    found = session.execute(select(table.c.id).order_by(table.c.id.desc()).limit(1)).scalar_one_or_none()
    return found or 0


def faults(session: Session) -> list[str]:
    """Every row that was changed, removed or inserted, named in words; empty when the record is whole."""
    return [*audit.breaks(session), *ledger.breaks(session), *_broken_seals(session)]


def _sealed(
    session: Session, after: tuple[int, int], until: tuple[int, int], previous: str
) -> tuple[int, str]:
    """How many rows lie in between, and the hash over them and the seal before."""
    running = hashlib.sha256(previous.encode())
    count = 0
    for table, first, last in zip((_AUDIT, _LEDGER), after, until, strict=True):
        rows = session.connection().execute(
            select(table.c.id, table.c.hash)
            .where(table.c.id > first, table.c.id <= last)
            .order_by(table.c.id),
            execution_options={"yield_per": 2000},
        )
        for ident, row in rows:
            running.update(f"{ident}:{row};".encode())
            count += 1
        running.update(b"|")
    return count, running.hexdigest()


def _broken_seals(session: Session) -> Iterator[str]:
    previous, after = "", (0, 0)
    for found in session.exec(_SEALS.order_by(_AUDITED, _NOTED)).all():
        until = (found.last_audit_id, found.last_ledger_id)
        count, whole = _sealed(session, after, until, previous)
        if found.previous != previous or (count, whole) != (found.rows, found.hash):
            yield (
                f"the checkpoint of {found.day} does not fit: it sealed {found.rows} rows up to row "
                f"{until[0]}, now there are {count}, or their contents differ"
            )
        previous, after = found.hash, until


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows of the record; empty fields match all.

    ``who`` is an account, and stands for every account of that Person. ``tool`` finds rules about it, too,
    ``grant`` what was run under it and how it came and went.
    """

    who: str = ""
    tool: str = ""
    proposal: str = ""
    since: datetime | None = None
    grant: int | None = None


def rows(session: Session, wanted: Wanted, limit: int | None = None) -> list[dict[str, Any]]:
    """Rows of both records, oldest first, each with all of `EXPORTED`; ``limit`` keeps the newest."""
    who: frozenset[str] = frozenset()
    if wanted.who:
        person = people.person_of(session, Actor.parse(wanted.who))
        who = person.accounts | {person.id}
    found = [*_of_proposals(session, wanted, who, limit), *_of_the_rest(session, wanted, who, limit)]
    found.sort(key=lambda row: row["at"])
    return [_plain(row) for row in (found[-limit:] if limit else found)]


def _of_proposals(
    session: Session, wanted: Wanted, who: frozenset[str], limit: int | None
) -> list[dict[str, Any]]:
    proposal: Any = ProposalRow.__table__  # type: ignore[attr-defined]
    statement = select(  # type: ignore[call-overload]
        *(_AUDIT.c[name] for name in _OF_AUDIT), proposal.c.tool_name, proposal.c.description
    ).join(proposal, proposal.c.id == _AUDIT.c.proposal_id)
    if who:
        statement = statement.where(_AUDIT.c.actor.in_(who) | _AUDIT.c.person.in_(who))
    if wanted.tool:
        statement = statement.where(proposal.c.tool_name == wanted.tool)
    if wanted.proposal:
        statement = statement.where(_AUDIT.c.proposal_id.startswith(wanted.proposal, autoescape=True))
    if wanted.since:
        statement = statement.where(_AUDIT.c.at >= wanted.since)
    if wanted.grant is not None:
        statement = statement.where(_AUDIT.c.grant_id == wanted.grant)
    found = session.connection().execute(statement.order_by(_AUDIT.c.id.desc()).limit(limit)).mappings()
    return [dict(row) for row in reversed(list(found))]


def _of_the_rest(
    session: Session, wanted: Wanted, who: frozenset[str], limit: int | None
) -> list[dict[str, Any]]:
    if wanted.proposal:
        return []
    statement = select(_LEDGER)
    if who:
        statement = statement.where(_LEDGER.c.actor.in_(who) | _LEDGER.c.person.in_(who))
    if wanted.since:
        statement = statement.where(_LEDGER.c.at >= wanted.since)
    if wanted.grant is not None:
        statement = statement.where(_LEDGER.c.thing == Thing.GRANT, _LEDGER.c.key == f"G-{wanted.grant}")
    found = session.connection().execute(statement.order_by(_LEDGER.c.id.desc())).mappings()
    kept = [row for row in found if not wanted.tool or fnmatchcase(wanted.tool, row["tool"])]
    return [{name: row[name] for name in _OF_LEDGER} for row in reversed(kept[:limit])]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    whole = {name: row.get(name) for name in EXPORTED}
    return {k: v.isoformat() if isinstance(v, datetime) else redact(v) for k, v in whole.items()}


def as_jsonl(found: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)


def as_csv(found: Sequence[dict[str, Any]]) -> str:
    """With a header line; a cell that a spreadsheet would run as a formula gets a quote before it."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=EXPORTED)
    writer.writeheader()
    for row in found:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return out.getvalue()


def _cell(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
