"""The audit log as one: its verification, anchors to keep outside, search and export.

Every row is a link of one hash chain (``bot/store/audit/chain.py``). Rows about proposals are made in
``bot/store/audit/log.py``, rows about other changes in ``bot/store/audit/admin_changes.py``. The functions
here read both and return plain rows with the same columns (`EXPORTED`), in which secrets are hidden. An
*anchor* is the number and the hash of the newest row: kept outside the database, it proves later that the
rows up to it are still the same.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import func
from sqlmodel import Session, select

import bot.store.migrations.schema  # noqa: F401 - the checks cover all tables, also those of features
from bot.domain.audit import AuditFilter
from bot.domain.people import Actor
from bot.domain.progress import Abandoned, Counter, Progress, ignore
from bot.domain.redaction import redact
from bot.store import people
from bot.store.audit import admin_changes, chain, log
from bot.store.audit.admin_changes import Thing
from bot.store.state import load_task_state, store_task_state
from bot.store.tables.audit import AuditRow, LedgerRow
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import starts_with, table_of

_AUDIT = table_of(AuditRow)
_LEDGER = table_of(LedgerRow)
_PROPOSAL = table_of(ProposalRow)
_PLACE = table_of(ConversationRow)
PART_ROWS = 1000  # an export reads so many successive rows at a time; a part has those of them that match
_AUDIT_COLUMNS = tuple(column.name for column in _AUDIT.columns)
_LAST_COLUMNS = ("about", "content", "previous", "hash")  # the last ones of an export
_REQUEST_COLUMNS = ("tool_name", "description", "requester", "requester_name", "tool_version")
EXPORTED = (
    *(name for name in _AUDIT_COLUMNS if name not in _LAST_COLUMNS),
    *_REQUEST_COLUMNS,
    *("place", "arguments"),
    *("thing", "key", "before", "after", "tool", "holds"),
    *_LAST_COLUMNS,
    "hidden",
)
"""The columns of the export: every column of both records, so that each hash can be computed again.

A column that only one kind of row has is empty in the other kind. The first row of a proposal, and each row
that changed them, has ``arguments`` and ``about``. Every row of a proposal has the other facts of the
request, as they were then. ``hidden`` names the columns of a row in which a secret is hidden.
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

ANCHOR_EVERY = timedelta(hours=1)
"""The least time between two anchors that are due."""
_ANCHOR_TASK = "audit anchor"  # the name of the recurring task that remembers the last anchor


def describe_intact(session: Session) -> str:
    """Return the sentence for people on a log in which no faults were found."""
    older = chain.count_unsealed(session)
    note = f" Rows 1 to {older} are older than the seal." if older else ""
    return f"Audit log verified: nothing missing or altered.{note}"


def find_faults_in_session(
    session: Session, anchors: Sequence[str] = (), progress: Progress = ignore
) -> list[str]:
    """Return the faults that `find_faults` finds, over the snapshot of this session."""
    return find_faults(lambda function: function(session), anchors, progress)


def find_faults(
    read: chain.SnapshotReader, anchors: Sequence[str] = (), progress: Progress = ignore
) -> list[str]:
    """Return a sentence on each row that was changed, removed or inserted without a record; empty for none.

    ``read`` runs functions over one snapshot or several, since a long log takes long. ``anchors``: anchors of
    the log that were kept outside the database (`chain.make_anchor`); raises NodError for any other text.
    ``progress`` receives the number of checks so far and of all checks; some rows have several.
    """
    found: list[str] = []
    counter = Counter(0 if progress is ignore else read(_count_checks), progress)
    for check in (chain.find_chain_faults, log.find_altered_proposals, admin_changes.find_unrecorded_rows):
        try:
            found += check(read, counter)
        except Abandoned:
            raise
        except Exception as error:  # noqa: BLE001 - whatever was written over a cell, it is a finding
            found.append(f"there is a value that no release of Nod wrote ({type(error).__name__}: {error})")
    for anchor in anchors:
        contradiction = read(partial(chain.find_contradiction, anchor=anchor))
        if contradiction:
            found.append(contradiction)
    return found


def _count_checks(session: Session) -> int:
    """Return the number of rows that the checks of `find_faults` read, each as often as it is read."""
    counts = (  # the chain reads every row; requests, states and proposals are read a second time
        func.count(_AUDIT.c.id) + func.count(_AUDIT.c.about),
        func.count(_LEDGER.c.id) + func.count(_LEDGER.c.holds),
        func.count(_PROPOSAL.c.id),
    )
    return sum(int(session.execute(select(count)).scalar_one()) for count in counts)


def take_due_anchor(session: Session, now: datetime) -> str | None:
    """Return the anchor to keep elsewhere now, and remember it.

    None within `ANCHOR_EVERY` after the last one, or without new rows.
    """
    last = load_task_state(session, _ANCHOR_TASK)
    anchor = chain.make_anchor(session)
    if anchor is None or last.get("anchor") == anchor:
        return None
    if last and now - datetime.fromisoformat(last["at"]) < ANCHOR_EVERY:
        return None
    store_task_state(session, _ANCHOR_TASK, last, {"anchor": anchor, "at": now.isoformat()})
    return anchor


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
    who = _list_authors(session, wanted)
    statement = _select_proposal_rows(wanted, who)
    of_proposals = _read_proposal_rows(session, statement, limit)
    of_other_changes = _read_other_rows(session, wanted, who)
    rows = sorted([*of_proposals, *of_other_changes], key=lambda row: (row["at"], row["id"]))
    count = len(of_proposals)
    if count == limit:  # there may be more rows about proposals; those about other changes were read in full
        count = session.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
    newest = rows[-limit:] if limit else rows
    return [_make_plain(row) for row in newest], count + len(of_other_changes)


def load_page(session: Session, wanted: AuditFilter, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return a page of the matching rows, newest first, and the ``before`` of the next page.

    ``limit``: the rows of a page. A page may have one row more: rows from before the chain
    (`chain.UPGRADE_THING`) are numbered in each of the two tables apart, so two rows may have the number at
    which the page ends. The ``before`` is None after the last page.
    """
    who = _list_authors(session, wanted)
    of_proposals = _read_proposal_rows(session, _select_proposal_rows(wanted, who), limit + 1)
    both = [*of_proposals, *_read_other_rows(session, wanted, who, limit + 1)]
    newest = sorted(both, key=lambda row: -row["id"])
    if len(newest) <= limit:
        return [_make_plain(row) for row in newest], None
    last: int = newest[limit - 1]["id"]  # the smallest number on the page, which two rows may have
    shown = [_make_plain(row) for row in newest if row["id"] >= last]
    has_more = newest[-1]["id"] < last
    return shown, (last if has_more else None)


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
    who = _list_authors(session, wanted)
    of_proposals = _read_proposal_rows(session, _select_proposal_rows(wanted_part, who))
    both = [*of_proposals, *_read_other_rows(session, wanted_part, who)]
    return ExportPart([_make_plain(row) for row in sorted(both, key=lambda row: row["id"])], done, total)


def _list_authors(session: Session, wanted: AuditFilter) -> frozenset[str]:
    """Return the id and the accounts of the Person that the filter names; empty for everyone."""
    if not wanted.who:
        return frozenset()
    person = people.load_person(session, Actor.parse(wanted.who))
    return person.accounts | {person.id}


def _select_proposal_rows(wanted: AuditFilter, who: frozenset[str]) -> Any:
    """Return the statement that finds the matching rows about proposals, newest first.

    ``who``: the result of `_list_authors`.
    """
    statement = (
        select(  # type: ignore[call-overload]
            *(_AUDIT.c[name] for name in _AUDIT_COLUMNS),
            *(_PROPOSAL.c[name] for name in _REQUEST_COLUMNS),
            _REQUEST_OF_ROW.label("request"),
            (_PLACE.c.channel + ":" + _PLACE.c.key).label("place"),
        )
        .join(_PROPOSAL, _PROPOSAL.c.id == _AUDIT.c.proposal_id)
        .join(_PLACE, _PLACE.c.id == _PROPOSAL.c.conversation_id)
    )
    if who:
        statement = statement.where(_AUDIT.c.actor.in_(who) | _AUDIT.c.person.in_(who))
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
    newest = session.connection().execute(statement.limit(limit)).mappings()
    return [row | _read_request(row) for row in map(dict, newest)]


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


def _read_other_rows(
    session: Session, wanted: AuditFilter, who: frozenset[str], limit: int | None = None
) -> list[dict[str, Any]]:
    """Return the newest matching rows about changes other than of proposals, newest first."""
    statement = select(_LEDGER)
    if wanted.proposal:
        about = starts_with(_LEDGER.c.key, wanted.proposal)
        statement = statement.where(admin_changes.IS_CONTEXT_READ, about)
    if who:
        statement = statement.where(_LEDGER.c.actor.in_(who) | _LEDGER.c.person.in_(who))
    if wanted.since:
        statement = statement.where(_LEDGER.c.at >= wanted.since)
    if wanted.grant is not None:
        statement = statement.where(_LEDGER.c.thing == Thing.GRANT, _LEDGER.c.key == f"G-{wanted.grant}")
    if wanted.before is not None:
        statement = statement.where(_LEDGER.c.id < wanted.before)
    if wanted.after is not None:
        statement = statement.where(_LEDGER.c.id > wanted.after)
    newest = statement.order_by(_LEDGER.c.id.desc())
    with session.connection().execute(newest, execution_options={"yield_per": PART_ROWS}) as rows:
        matching = (row for row in rows.mappings() if not wanted.tool or _is_about_tool(row["tool"], wanted))
        return [dict(row) for row in islice(matching, limit)]


def _is_about_tool(pattern: str, wanted: AuditFilter) -> bool:
    """Return whether a row about the tools of this pattern is about the tool of the filter."""
    if wanted.matches_patterns:  # the filter has the full name of a tool, not a pattern
        return fnmatchcase(wanted.tool, pattern)
    return pattern == wanted.tool


def _make_plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with all columns of `EXPORTED` as JSON data, in which secrets are hidden."""
    full: dict[str, Any] = {name: row.get(name) for name in EXPORTED}
    full["at"] = full["at"].astimezone(UTC).isoformat()
    shown = {name: value if name in _HASHES else redact(value) for name, value in full.items()}
    hidden = [name for name in EXPORTED if shown[name] != full[name]]
    return {**shown, "hidden": hidden or None}


def format_jsonl(found: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as text with a line of JSON for each."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)


def format_csv(found: Iterable[Mapping[str, Any]], names: Sequence[str] = EXPORTED) -> str:
    """Return rows as CSV with a header of ``names``.

    A cell that a spreadsheet would run as a formula begins with an apostrophe. Each cell is in quotation
    marks, so that a spreadsheet with another separator splits none. A byte-order mark comes first: without
    it, Excel reads other letters than ASCII in the code page of its computer.
    """
    return format_csv_head(names) + format_csv_lines(found, names)


def format_csv_head(names: Sequence[str] = EXPORTED) -> str:
    """Return the byte-order mark and the header line."""
    out = io.StringIO()
    csv.DictWriter(out, fieldnames=names, quoting=csv.QUOTE_ALL).writeheader()
    return f"\ufeff{out.getvalue()}"


def format_csv_lines(found: Iterable[Mapping[str, Any]], names: Sequence[str] = EXPORTED) -> str:
    """Return the lines of the rows, without the header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=names, quoting=csv.QUOTE_ALL)
    for row in found:
        writer.writerow({name: _format_cell(value) for name, value in row.items()})
    return out.getvalue()


class ExportFormat(NamedTuple):
    """A format of exported files."""

    head: str  # the beginning of a file
    write_rows: Callable[[Iterable[Mapping[str, Any]]], str]  # returns rows as text


FORMATS: Mapping[str, ExportFormat] = {
    "jsonl": ExportFormat("", format_jsonl),
    "csv": ExportFormat(format_csv_head(), format_csv_lines),
}
"""The formats of exported files, by name."""


def _format_cell(value: Any) -> Any:
    """Return a value as a cell that no spreadsheet runs as a formula; objects and lists as JSON."""
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = value
    if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{text}"
    return text
