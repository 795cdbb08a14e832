"""``nod pending``, ``nod show`` and ``nod team``: look at what there is, and change nothing."""

import contextlib
import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from bot.cli.command import command
from bot.cli.shared import (
    Id,
    Json,
    colour_text,
    find,
    fit_to_terminal,
    line,
    load_settings,
    looking,
    plain,
    print_json,
)
from bot.domain.connections import Connection
from bot.domain.proposals import Level, Proposal, others, together
from bot.domain.redaction import redact_arguments as shown_arguments
from bot.domain.redaction import redact_text
from bot.domain.times import format_expiry, format_relative, now
from bot.store import proposals
from bot.store.database import Database

app = typer.Typer()
_LISTED = 200
_LOOK_SECONDS = 1.0


@command(app)
def pending(
    *,
    as_json: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Also print changes as they happen, until Ctrl+C.")
    ] = False,
) -> None:
    """List what is waiting for a decision, soonest to expire first."""
    with looking(load_settings()) as database:
        if watch:
            _watch(database, as_json=as_json)
            return
        waiting, many = database.read_now(proposals.soonest, limit=None if as_json else _LISTED)
        if as_json:
            print_json([_proposal_to_json(p, database) for p in waiting])
            return
        for p, *rest in together(waiting):
            print(_row(p, len(rest)))
        if many > len(waiting):
            print(f"…and {many - len(waiting)} more; nod pending --json lists all.")
        if not waiting:
            print("Nothing is waiting for a decision.")


def _row(p: Proposal, more: int = 0) -> str:
    """``more``: how many of its batch it stands for as well."""
    due, asked = format_expiry(p.expires_at, now()), format_relative(p.created_at, now())
    by = f"asked by {line(p.requester.label)}, {asked}"
    row = fit_to_terminal(
        f"{p.id}  {p.risk.level:<11}  {due:<17}  {line(p.description)}{others(more)}  ({by})"
    )
    return colour_text(row, "red" if p.risk.level is Level.DESTRUCTIVE else None)


def _watch(database: Database, *, as_json: bool) -> None:
    """Print what waits, then each one that comes or was decided, as one line, until Ctrl+C."""
    from bot.domain.cards import card_of

    known: dict[str, int] = {}  # what was printed, with its round
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            waiting, _ = database.read_now(proposals.soonest, limit=None)
            left = known.keys() - {p.id for p in waiting}
            gone = [database.read_now(proposals.get, ident) for ident in left]
            new = [p for p in waiting if known.get(p.id) != p.round]
            ended = [each for each in gone if each is not None]
            if as_json:
                lines = [json.dumps(_proposal_to_json(p, database)) for p in ended + new]
            else:
                lines = [fit_to_terminal(f"{p.id}  {line(card_of(p, {}).outcome)}") for p in ended]
                lines += [_row(p, len(rest)) for p, *rest in together(new)]
            if lines:
                print("\n".join(lines), flush=True)
            known = {p.id: p.round for p in waiting}
            time.sleep(_LOOK_SECONDS)


def _schema(p: Proposal, database: Database) -> Mapping[str, Any]:
    return database.read_now(proposals.schema, p.tool_name, p.tool_version) or {}


def _proposal_to_json(p: Proposal, database: Database) -> dict[str, Any]:
    """Return a proposal as JSON, its names as over HTTP."""
    schema = _schema(p, database)
    return {
        "id": p.id,
        "state": p.state,
        "description": redact_text(p.description),
        "tool_name": p.tool_name,
        "tool_arguments": shown_arguments(p.arguments, schema),
        "risk": p.risk.level,
        "requester": p.requester.label,
        "deciders": p.deciders.in_words(p.requester.label),
        "round": p.round,
        "connection": _connection_to_json(p.connection),
        "record": [redact_text(each) for each in p.record],
        "annotations": [
            {"name": redact_text(each.name), "text": redact_text(each.text), "late": each.is_late}
            for each in p.annotations
        ],
        "created_at": p.created_at.isoformat(),
        "expires_at": p.expires_at.isoformat(),
    }


def _connection_to_json(connection: Connection | None) -> dict[str, str] | None:
    if connection is None:
        return None
    return {name: str(getattr(connection, name)) for name in ("server", "owner", "name", "subject")}


@command(app, "show")
def show_proposal(proposal: Id, *, as_json: Json = False) -> None:
    """Show one proposal in full."""
    from bot.domain.cards import card_of, whole_text

    with looking(load_settings()) as database:
        found = find(database, proposal)
        if as_json:
            print_json(_proposal_to_json(found, database))
            return
        card = card_of(found, _schema(found, database))
        result = f"\n\nResult\n{card.result}" if card.result else ""
        asked = f"{card.asked}, {format_relative(found.created_at, now())}"
        head = [f"{found.id}: {card.outcome}", asked, f"Round: {card.round}"]
        if card.pending:
            head += [f"May decide: {card.deciders}", format_expiry(card.expires_at, now()).capitalize()]
            head += [card.undo_note] if card.undo_note else []
        head += [card.again] if card.again else []
        if card.undoing:
            head += [f"Undo ends {format_relative(found.undo_until or now(), now())}: nod undo {found.id}"]
        head += [*card.votes, *card.notes]
        print(plain("\n".join([*head, "", whole_text(card)]) + result))


@command(app, "team")
def list_team(*, as_json: Json = False) -> None:
    """List the teammates of all conversations with their plans."""
    from bot.approvals.commands.everyone import format_team
    from bot.store import teams

    with looking(load_settings()) as database:
        found = database.read_now(teams.at, None)
    if not as_json:
        print(plain(format_team(found).replace("**", "").replace("`", "")))
        return
    print_json(
        [
            {
                "id": each.id,
                "conversation_id": each.lead_id,
                "name": each.name,
                "role": each.role,
                "state": each.state,
                "plan_state": each.plan_state,
                "about": redact_text(each.about),
                "waits_for": [p.id for p in each.waits_for],
                "created_at": each.created_at.isoformat(),
            }
            for each in found
        ]
    )
