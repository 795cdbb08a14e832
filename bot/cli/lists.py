"""The commands that list what there is and change nothing: ``nod pending``, ``nod show`` and ``nod team``."""

import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from bot.cli.command import command
from bot.cli.shared import (
    Id,
    Json,
    colour_text,
    escape_for_terminal,
    find_proposal,
    fit_to_terminal,
    load_settings,
    open_readonly,
    print_json,
    redact_line,
)
from bot.domain.batch_groups import describe_others, group_by_card
from bot.domain.connections import Connection
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_arguments, redact_text
from bot.domain.risks import Level
from bot.domain.steps import DueStep
from bot.domain.times import format_expiry, format_relative, now
from bot.store import proposals
from bot.store.database import Database

app = typer.Typer()
_MAX_LISTED = 200  # the most proposals that ``nod pending`` prints as lines
_POLL_SECONDS = 1.0  # the time between two looks of ``nod pending --watch``


@command(app)
def pending(
    *,
    as_json: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Also print changes as they happen, until Ctrl+C.")
    ] = False,
) -> None:
    """List what is waiting for a decision, soonest to expire first."""
    with open_readonly(load_settings()) as database:
        if watch:
            _watch(database, as_json=as_json)
            return
        waiting, count = database.read_now(proposals.list_soonest, limit=None if as_json else _MAX_LISTED)
        if as_json:
            print_json([_proposal_to_json(proposal, database) for proposal in waiting])
            return
        # one group for each card: a single proposal, or the rows of a batch
        for proposal, *others_of_batch in group_by_card(waiting):
            print(_format_row(proposal, len(others_of_batch)))
        if count > len(waiting):
            print(f"…and {count - len(waiting)} more; nod pending --json lists all.")
        if not waiting:
            print("Nothing is waiting for a decision.")


def _format_row(proposal: Proposal, other_count: int = 0) -> str:
    """Return the line of a proposal, or of a batch by its first proposal.

    A batch is several calls of one answer of the model, which people decide on one card. ``other_count``: the
    number of the other proposals in it.
    """
    due = format_expiry(proposal.expires_at, now())
    asked = f"asked by {redact_line(proposal.requester.label)}, {format_relative(proposal.created_at, now())}"
    description = f"{redact_line(proposal.description)}{describe_others(other_count)}"
    row = fit_to_terminal(f"{proposal.id}  {proposal.risk.level:<11}  {due:<17}  {description}  ({asked})")
    return colour_text(row, "red" if proposal.risk.level is Level.DESTRUCTIVE else None)


def _watch(database: Database, *, as_json: bool) -> None:
    """Print the waiting proposals, then a line for each that is new, changed or decided, until Ctrl+C."""
    printed_rounds: dict[str, int] = {}  # the round in which each waiting proposal was printed, by id
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            waiting, _ = database.read_now(proposals.list_soonest, limit=None)
            new = [proposal for proposal in waiting if printed_rounds.get(proposal.id) != proposal.round]
            waiting_ids = {proposal.id for proposal in waiting}
            no_longer_waiting = _load_proposals(database, printed_rounds.keys() - waiting_ids)
            if as_json:
                changed = no_longer_waiting + new
                lines = [json.dumps(_proposal_to_json(proposal, database)) for proposal in changed]
            else:
                lines = [_format_outcome(proposal) for proposal in no_longer_waiting]
                for proposal, *others_of_batch in group_by_card(new):
                    lines.append(_format_row(proposal, len(others_of_batch)))
            if lines:
                print("\n".join(lines), flush=True)
            printed_rounds = {proposal.id: proposal.round for proposal in waiting}
            time.sleep(_POLL_SECONDS)


def _load_proposals(database: Database, ids: Iterable[str]) -> list[Proposal]:
    """Return the proposals with these ids, without those that no longer exist."""
    loaded = [database.read_now(proposals.get, proposal_id) for proposal_id in ids]
    return [proposal for proposal in loaded if proposal is not None]


def _format_outcome(proposal: Proposal) -> str:
    from bot.domain.card_rendering import render_card

    return fit_to_terminal(f"{proposal.id}  {redact_line(render_card(proposal, schema={}).outcome)}")


def _load_schema(proposal: Proposal, database: Database) -> Mapping[str, Any]:
    return database.read_now(proposals.load_schema, proposal.tool_name, proposal.tool_version) or {}


def _proposal_to_json(proposal: Proposal, database: Database) -> dict[str, Any]:
    """Return a proposal as JSON, with the field names of the HTTP API."""
    schema = _load_schema(proposal, database)
    return {
        "id": proposal.id,
        "state": proposal.state,
        "description": redact_text(proposal.description),
        "tool_name": proposal.tool_name,
        "tool_arguments": redact_arguments(proposal.arguments, schema),
        "risk": proposal.risk.level,
        "requester": proposal.requester.label,
        "deciders": proposal.deciders.describe(proposal.requester.label),
        "round": proposal.round,
        "connection": _connection_to_json(proposal.connection),
        "record": [redact_text(sentence) for sentence in proposal.unusual_facts],
        "annotations": [
            {
                "name": redact_text(annotation.name),
                "text": redact_text(annotation.text),
                "late": annotation.is_late,
            }
            for annotation in proposal.annotations
        ],
        "created_at": proposal.created_at.isoformat(),
        "expires_at": proposal.expires_at.isoformat(),
        "steps": [_step_to_json(step) for step in proposal.all_steps],
    }


def _step_to_json(step: DueStep) -> dict[str, Any]:
    """Return a step, by which a target is notified of the waiting proposal, as JSON."""
    return {"to": step.target, "at": step.due_at.isoformat(), "is_over": step.is_over}


def _connection_to_json(connection: Connection | None) -> dict[str, str] | None:
    if connection is None:
        return None
    return {name: str(getattr(connection, name)) for name in ("server", "owner", "name", "subject")}


@command(app, "show")
def show_proposal(proposal: Id, *, as_json: Json = False) -> None:
    """Show one proposal in full."""
    from bot.domain.call_text import format_call
    from bot.domain.card_rendering import render_card

    with open_readonly(load_settings()) as database:
        found = find_proposal(database, proposal)
        if as_json:
            print_json(_proposal_to_json(found, database))
            return
        card = render_card(found, _load_schema(found, database))
        asked = f"{card.requester_line}, {format_relative(found.created_at, now())}"
        lines = [f"{found.id}: {card.outcome}", asked, f"Round: {card.round}"]
        if card.pending:
            lines.append(f"May decide: {card.deciders}")
            lines.append(format_expiry(card.expires_at, now()).capitalize())
            open_steps = [step for step in found.all_steps if not step.is_over]
            lines += [f"Next: {step.target}, {format_relative(step.due_at, now())}" for step in open_steps]
            if card.undo_note:
                lines.append(card.undo_note)
        if card.check_text:  # "Checked: …"
            lines.append(card.check_text)
        if card.undo_effect:  # then ``undo_until`` is set, too
            undo_end = format_relative(found.undo_until or now(), now())
            lines.append(f"Undo ends {undo_end}: nod undo {found.id}")
        lines += [*card.votes, *card.notes, "", format_call(card)]
        if card.result:
            lines += ["", "Result", card.result]
        print(escape_for_terminal("\n".join(lines)))


@command(app, "team")
def list_team(*, as_json: Json = False) -> None:
    """List the teammates of all conversations with their plans."""
    from bot.approvals.commands.everyone import format_team
    from bot.store import teams

    with open_readonly(load_settings()) as database:
        teammates = database.read_now(teams.list_at, None)
    if not as_json:
        print(escape_for_terminal(format_team(teammates).replace("**", "").replace("`", "")))
        return
    print_json(
        [
            {
                "id": teammate.id,
                "conversation_id": teammate.lead_id,
                "name": teammate.name,
                "role": teammate.role,
                "state": teammate.state,
                "plan_state": teammate.plan_state,
                "about": redact_text(teammate.status_text),
                "waits_for": [proposal.id for proposal in teammate.waits_for],
                "created_at": teammate.created_at.isoformat(),
            }
            for teammate in teammates
        ]
    )
