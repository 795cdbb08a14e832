"""``nod audit``: shows, verifies, seals and exports the audit log.

Each row of the log has the hash of the row before it, so a row that was changed or removed is found. The
hashes of *sealed* rows are made with NOD_AUDIT_KEY: no one without the key can make a row with a valid hash.
An *anchor* is the number and hash of the newest row, kept outside the database. If the end of the log is
replaced, it no longer fits the anchor.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from bot.approvals.commands.operands import parse_account
from bot.cli.command import command, with_shared_options
from bot.cli.progress import show_progress
from bot.cli.shared import (
    Id,
    Json,
    find_proposal,
    get_shell_actor,
    load_settings,
    open_existing,
    open_readonly,
    print_json,
    redact_line,
)
from bot.domain.audit import AuditFilter
from bot.domain.times import now
from bot.errors import NodError, SettingsError
from bot.store.audit import admin_changes, chain, export_formats, log, search, verification
from bot.store.audit.search import ExportPart
from bot.store.database import Database
from bot.store.locks.process_lock import is_at_work
from bot.store.tables.audit import AuditRow

app = typer.Typer()
_MAX_LISTED = 50  # the most rows that ``nod audit`` shows


@app.callback(invoke_without_command=True)
@with_shared_options
def audit(context: typer.Context, *, as_json: Json = False) -> None:
    """Show and verify the audit log."""
    if context.invoked_subcommand is not None:
        return
    with open_readonly(load_settings()) as database:
        newest = database.read_now(log.list_newest, _MAX_LISTED)
        _print_rows(list(reversed(newest)), as_json=as_json)
        _verify_and_print(database, as_json=as_json)


@command(app, "show")
def show_history(proposal: Id, *, as_json: Json = False) -> None:
    """Show everything that happened to one proposal, and whether the audit log is intact."""
    with open_readonly(load_settings()) as database:
        found = find_proposal(database, proposal)
        _print_rows(database.read_now(log.list_rows_of_proposal, found.id), as_json=as_json)
        _verify_and_print(database, as_json=as_json)


@command(app)
def verify(
    anchor: Annotated[
        list[str] | None, typer.Option(help="What `nod audit anchor` printed earlier; may be repeated.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Check every row; names what was changed, removed or inserted."""
    with open_readonly(load_settings()) as database:
        faults = _find_faults(database, anchor or (), as_json=as_json)
        if as_json:
            print_json({"intact": not faults, "faults": faults})
        _print_verdict(database, faults, as_json=as_json)


@command(app)
def seal() -> None:
    """Seal an audit log that has no seal yet with NOD_AUDIT_KEY, once. Stop nod first."""
    settings = load_settings()
    if is_at_work(settings.database_url):
        raise SettingsError("NOD_DATABASE_URL: Nod is running on this database. Stop it first.")
    with open_existing(settings) as database:
        first = database.write_now(admin_changes.begin_to_seal, get_shell_actor(), now())
        print(f"The audit log is sealed from row {first} on. Older rows carry no seal.")
        _verify_and_print(database)


@command(app)
def anchor() -> None:
    """Print the number and hash of the newest row, to keep outside the database."""
    with open_readonly(load_settings()) as database:
        print(database.read_now(chain.make_anchor) or "Nothing is recorded yet.")


@command(app, "export")
def export_log(
    file_format: Annotated[str, typer.Option("--format", help="One of jsonl, csv.")] = "jsonl",
    who: Annotated[str, typer.Option(help="One account, and those linked with it.")] = "",
    tool: Annotated[str, typer.Option(help="One tool, and the rules about it.")] = "",
    proposal: Annotated[str, typer.Option("--id", help="One proposal, by the beginning of its ID.")] = "",
    since: Annotated[datetime | None, typer.Option(help="Only rows from this time on, in UTC.")] = None,
) -> None:
    """Print the full audit log, oldest first, without secrets: proposals, rules, grants, linked accounts."""
    with open_readonly(load_settings()) as database:
        if who:
            parse_account(who)  # only to raise for a text that is not an account
        if file_format not in export_formats.FORMATS:
            raise SettingsError(f"--format: {file_format} is neither jsonl nor csv")
        row_filter = AuditFilter(who, tool, proposal, since.replace(tzinfo=UTC) if since else None)
        header, format_rows = export_formats.FORMATS[file_format]
        print(header, end="")
        # a progress bar would get in between the rows on the same terminal
        with show_progress("Exporting rows", wanted=not sys.stdout.isatty()) as progress:
            for part in _read_parts(database, row_filter):
                print(format_rows(part.rows), end="")
                progress(part.done, part.total)


def _read_parts(database: Database, row_filter: AuditFilter) -> Iterator[ExportPart]:
    """Yield the rows that pass a filter, in parts. A short transaction reads each part."""
    part = database.read_now(search.load_export_part, row_filter)
    yield part
    while part.done < part.total:
        part = database.read_now(search.load_export_part, row_filter, part.done, part.total)
        yield part


def _print_rows(rows: list[AuditRow], *, as_json: bool) -> None:
    if as_json:
        print_json([_row_to_json(row) for row in rows])
        return
    zone = load_settings().timezone
    for row in rows:
        at = f"{row.at.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"
        action = redact_line(f"{row.verb} by {row.actor}")
        why = f" ({redact_line(row.reason)})" if row.reason else ""
        print(f"{at}  {row.proposal_id}  v{row.version}  {action}{why} → {row.state}")
        if row.about:
            asked = f"{row.about['summary']} {json.dumps(row.about['arguments'], ensure_ascii=False)}"
            print(redact_line(f"    asked by {row.about['requester']} in {row.about['place']}: {asked}"))


def _row_to_json(row: AuditRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "at": row.at.isoformat(),
        "proposal_id": row.proposal_id,
        "version": row.version,
        "verb": row.verb,
        "actor": row.actor,
        "reason": row.reason,
        "state": row.state,
        "about": row.about,
    }


def _verify_and_print(database: Database, *, as_json: bool = False) -> None:
    _print_verdict(database, _find_faults(database, as_json=as_json), as_json=as_json)


def _find_faults(database: Database, anchors: Sequence[str] = (), *, as_json: bool) -> list[str]:
    with show_progress("Verifying rows", wanted=not as_json) as progress:
        return verification.find_faults(database.read_now, anchors, progress)


def _print_verdict(database: Database, faults: list[str], *, as_json: bool) -> None:
    """Print that the log is intact, unless that was printed as JSON. Raises NodError with the faults."""
    if faults:
        raise NodError(f"the audit log does not verify: {'; '.join(faults)}")
    if not as_json:
        print(database.read_now(verification.describe_intact))
