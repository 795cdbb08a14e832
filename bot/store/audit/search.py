"""The search in the audit log and its export, as plain rows without secrets.

The log is in two tables: `AuditRow` has the rows about proposals (*proposal rows*), `LedgerRow` those about
other changes (*ledger rows*). The rows of both are numbered together. The functions here read both and return
rows with the same columns (`EXPORTED`), in which secrets are hidden.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, select

from bot.domain.audit import AuditFilter
from bot.domain.people import Actor
from bot.domain.redaction import redact
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.tables.audit import AuditRow, LedgerRow
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import starts_with, table_of

PART_ROWS = 1000  # an export reads so many successive rows at a time; a part has those of them that match
_AUDIT = table_of(AuditRow)
_LEDGER = table_of(LedgerRow)
_PROPOSAL = table_of(ProposalRow)
_CONVERSATION = table_of(ConversationRow)
_AUDIT_COLUMNS = tuple(column.name for column in _AUDIT.columns)
_LAST_COLUMNS = ("about", "content", "previous", "hash")  # the last ones of an export
_REQUEST_COLUMNS = ("tool_name", "description", "requester", "requester_name", "tool_version")
EXPORTED = (
    *(name for name in _AUDIT_COLUMNS if name not in _LAST_COLUMNS),
    # from the request of a proposal, as it was at the time of the row
    *_REQUEST_COLUMNS,
    "place",
    "arguments",
    # from ledger rows
    "thing",
    "key",
    "before",
    "after",
    "tool",
    "holds",
    *_LAST_COLUMNS,
    "hidden",  # the names of the columns of this row in which a secret is hidden
)
"""The columns of the export: every column of both tables, so that each hash can be computed again.

A column that only one kind of row has is empty in the other kind. The request as a whole (``about``) and its
arguments are only in the first row of a proposal and in each row that changed the arguments.
"""
_EARLIER = _AUDIT.alias("earlier")
_REQUEST_OF_ROW = (
    select(_EARLIER.c.about)
    .where(
        _EARLIER.c.proposal_id == _AUDIT.c.proposal_id,
        _EARLIER.c.version <= _AUDIT.c.version,
        _EARLIER.c.about.is_not(None),
    )
    .order_by(_EARLIER.c.version.desc())
    .limit(1)
    .correlate(_AUDIT)
    .scalar_subquery()
)
"""The newest request of a proposal up to the row that is read."""
_HASHES = frozenset({"digest", "content", "previous", "hash", "holds"})
"""The columns of hashes, which have no secrets to hide."""


def list_matching_rows(
    session: Session, wanted: AuditFilter, limit: int | None = None
) -> list[dict[str, Any]]:
    """Return matching rows of both tables, oldest first, each with all of `EXPORTED`.

    ``limit``: only so many of the newest.
    """
    return find_rows_and_count(session, wanted, limit)[0]


def find_rows_and_count(
    session: Session, wanted: AuditFilter, limit: int | None = None
) -> tuple[list[dict[str, Any]], int]:
    """Return the newest ``limit`` rows that match, oldest first, and the number of all that match."""
    authors = _list_authors(session, wanted)
    statement = _select_proposal_rows(wanted, authors)
    proposal_rows = _read_proposal_rows(session, statement, limit)
    ledger_rows = _read_ledger_rows(session, wanted, authors)
    proposal_count = len(proposal_rows)
    if proposal_count == limit:  # there may be further ones
        proposal_count = session.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
    rows = sorted([*proposal_rows, *ledger_rows], key=lambda row: (row["at"], row["id"]))
    newest = rows[-limit:] if limit else rows
    return [_make_plain(row) for row in newest], proposal_count + len(ledger_rows)


def load_page(session: Session, wanted: AuditFilter, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return a page of the matching rows, newest first, and the ``before`` of the next page.

    The ``before`` is None after the last page. ``limit``: the rows of a page. The last number of a page may
    be that of two rows, since rows from before the chain (`chain.UPGRADE_THING`) are numbered in each table
    apart. Then the page has both, one row more than ``limit``.
    """
    authors = _list_authors(session, wanted)
    proposal_rows = _read_proposal_rows(session, _select_proposal_rows(wanted, authors), limit + 1)
    ledger_rows = _read_ledger_rows(session, wanted, authors, limit + 1)
    rows = sorted([*proposal_rows, *ledger_rows], key=lambda row: row["id"], reverse=True)
    if len(rows) <= limit:
        return [_make_plain(row) for row in rows], None
    last_number: int = rows[limit - 1]["id"]
    page = [row for row in rows if row["id"] >= last_number]
    has_more = len(rows) > len(page)
    return [_make_plain(row) for row in page], (last_number if has_more else None)


@dataclass(frozen=True, slots=True)
class ExportPart:
    """Some rows of an export, oldest first, and the progress of the export."""

    rows: list[dict[str, Any]]
    done: int  # the number up to which rows have been read
    total: int  # the number of the newest row


def load_export_part(
    session: Session, wanted: AuditFilter, after: int = 0, total: int | None = None
) -> ExportPart:
    """Return the next rows of an export, in the order of their numbers.

    ``after`` and ``total`` are the ``done`` and ``total`` of the part before; without them it is the first
    part. The part whose ``done`` equals its ``total`` is the last one: rows that are added while an export
    runs are not in it.
    """
    if total is None:
        newest = [session.execute(select(func.max(table.c.id))).scalar() for table in (_AUDIT, _LEDGER)]
        total = max(number or 0 for number in newest)
    done = min(after + PART_ROWS, total)
    wanted_part = wanted.between(after, done + 1)
    authors = _list_authors(session, wanted)
    proposal_rows = _read_proposal_rows(session, _select_proposal_rows(wanted_part, authors))
    ledger_rows = _read_ledger_rows(session, wanted_part, authors)
    rows = sorted([*proposal_rows, *ledger_rows], key=lambda row: row["id"])
    return ExportPart([_make_plain(row) for row in rows], done, total)


def _list_authors(session: Session, wanted: AuditFilter) -> frozenset[str]:
    """Return the id and the accounts of the Person that the filter names; empty for everyone."""
    if not wanted.who:
        return frozenset()
    person = people.load_person(session, Actor.parse(wanted.who))
    return person.accounts | {person.id}


def _select_proposal_rows(wanted: AuditFilter, authors: frozenset[str]) -> Any:
    """Return the statement that finds the matching proposal rows, newest first.

    ``authors``: the result of `_list_authors`.
    """
    statement = (
        select(  # type: ignore[call-overload]
            *(_AUDIT.c[name] for name in _AUDIT_COLUMNS),
            *(_PROPOSAL.c[name] for name in _REQUEST_COLUMNS),
            _REQUEST_OF_ROW.label("request"),
            (_CONVERSATION.c.channel + ":" + _CONVERSATION.c.key).label("place"),
        )
        .join(_PROPOSAL, _PROPOSAL.c.id == _AUDIT.c.proposal_id)
        .join(_CONVERSATION, _CONVERSATION.c.id == _PROPOSAL.c.conversation_id)
    )
    if authors:
        statement = statement.where(_AUDIT.c.actor.in_(authors) | _AUDIT.c.person.in_(authors))
    if wanted.tool:
        statement = statement.where(_PROPOSAL.c.tool_name == wanted.tool)
    if wanted.proposal:
        statement = statement.where(starts_with(_AUDIT.c.proposal_id, wanted.proposal))
    if wanted.since:
        statement = statement.where(_AUDIT.c.at >= wanted.since)
    if wanted.grant is not None:
        statement = statement.where(_AUDIT.c.grant_id == wanted.grant)
    if wanted.before is not None:
        statement = statement.where(_AUDIT.c.id < wanted.before)
    if wanted.after is not None:
        statement = statement.where(_AUDIT.c.id > wanted.after)
    return statement.order_by(_AUDIT.c.id.desc())


def _read_proposal_rows(session: Session, statement: Any, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of a statement of `_select_proposal_rows`, each with the request as it was then.

    ``limit``: only so many; None for all.
    """
    rows = session.connection().execute(statement.limit(limit)).mappings()
    return [row | _read_request(row) for row in map(dict, rows)]


def _read_request(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of the request at the time of a row, by column; empty where the log has no request."""
    request = row["request"]
    if request is None:
        return {}
    tool_name, tool_version = request["tool"]
    return {
        "tool_name": tool_name,
        "tool_version": tool_version,
        "description": request["summary"],
        "requester": request["requester"],
        "requester_name": request["name"],
        "place": request["place"],
        "arguments": request["arguments"] if row["about"] is not None else None,
    }


def _read_ledger_rows(
    session: Session, wanted: AuditFilter, authors: frozenset[str], limit: int | None = None
) -> list[dict[str, Any]]:
    """Return the matching ledger rows, newest first.

    ``authors``: the result of `_list_authors`. ``limit``: only so many; None for all.
    """
    statement = select(_LEDGER).order_by(_LEDGER.c.id.desc())
    if wanted.proposal:  # the only ledger rows about a proposal say who read what led to it
        is_about_proposal = starts_with(_LEDGER.c.key, wanted.proposal)
        statement = statement.where(admin_changes.IS_CONTEXT_READ, is_about_proposal)
    if authors:
        statement = statement.where(_LEDGER.c.actor.in_(authors) | _LEDGER.c.person.in_(authors))
    if wanted.since:
        statement = statement.where(_LEDGER.c.at >= wanted.since)
    if wanted.grant is not None:
        statement = statement.where(_LEDGER.c.thing == Thing.GRANT, _LEDGER.c.key == f"G-{wanted.grant}")
    if wanted.before is not None:
        statement = statement.where(_LEDGER.c.id < wanted.before)
    if wanted.after is not None:
        statement = statement.where(_LEDGER.c.id > wanted.after)
    with session.connection().execute(statement, execution_options={"yield_per": PART_ROWS}) as rows:
        matching = (row for row in rows.mappings() if not wanted.tool or _is_about_tool(row["tool"], wanted))
        return [dict(row) for row in islice(matching, limit)]


def _is_about_tool(pattern: str, wanted: AuditFilter) -> bool:
    """Return whether a ledger row about the tools of this pattern is about the tool of the filter."""
    if wanted.matches_patterns:
        return fnmatchcase(wanted.tool, pattern)
    return pattern == wanted.tool


def _make_plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with all columns of `EXPORTED` as JSON data, in which secrets are hidden."""
    full: dict[str, Any] = {name: row.get(name) for name in EXPORTED}
    full["at"] = full["at"].astimezone(UTC).isoformat()
    shown = {name: value if name in _HASHES else redact(value) for name, value in full.items()}
    hidden = [name for name in EXPORTED if shown[name] != full[name]]
    return {**shown, "hidden": hidden or None}
