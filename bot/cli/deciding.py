"""``nod approve`` and the other decisions from the command line, handled like a press in any chat."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from bot.cli.command import ShellCommands
from bot.cli.gates import presses_of
from bot.cli.shared import (
    Id,
    Json,
    decoded,
    existing,
    find,
    line,
    load,
    log_at,
    looking,
    operator,
    plain,
    print_json,
    told,
)
from bot.domain.chat import Answer, Press, Reply
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.redaction import shown as shown_arguments
from bot.domain.similarity import Lasting, Rung, Whose
from bot.domain.verbs import Verb, button
from bot.errors import NodError, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.tools.registry import Shelf

commands = ShellCommands()

Seen = Annotated[
    int | None,
    typer.Option(
        "--round", help="the round you looked at, as nod show says it; refused if it has changed since"
    ),
]

Every = Annotated[bool, typer.Option("--all", help="also all other open ones of the same answer")]


@commands.command()
def approve(
    proposal: Id,
    similar: Annotated[
        Rung | None, typer.Option(help="allow calls like it from now on, as nod similar says them")
    ] = None,
    lasting: Annotated[Lasting | None, typer.Option("--for", help="how long --similar holds")] = None,
    seen: Seen = None,
    *,
    reach: Annotated[
        Whose, typer.Option("--whose", help="whose calls --similar lets run, and where")
    ] = Whose.HERE,
    steps: Annotated[bool, typer.Option("--steps", help="a plan: also allow the tools it names")] = False,
    every: Every = False,
) -> None:
    """Approve a proposal as it is now; the running nod executes it."""
    with told():
        if (similar is None) != (lasting is None):
            raise SettingsError("--similar and --for go together, such as: --similar exact --for 1h")
        chosen = [
            verb
            for verb, given in (
                (Verb.SIMILAR, similar),
                (Verb.APPROVE_STEPS, steps),
                (Verb.APPROVE_ALL, every),
            )
            if given
        ]
        if len(chosen) > 1:
            raise SettingsError("use only one of --similar, --steps and --all")
    verb = chosen[0] if chosen else Verb.APPROVE
    _press(proposal, Press(operator(), verb, "", seen, rung=similar, lasting=lasting, reach=reach))


@commands.command()
def similar(proposal: Id, *, as_json: Json = False) -> None:
    """Say what approving calls like it may allow, narrowest first."""
    with told():
        settings = load()
        log_at("error")
        with looking(settings) as database:
            found = find(database, proposal)
            rungs, reaches = asyncio.run(_ladder(settings, database, found))
            if not rungs:
                raise NodError("you can't allow anything beyond this one call")
            if as_json:
                told_rungs = [{"similar": rung, "allows": words} for rung, words in rungs]
                told_reaches = [{"whose": reach, "allows": words} for reach, words in reaches]
                print_json({"similar": told_rungs, "whose": told_reaches, "for": list(Lasting)})
                return
            for rung, words in rungs:
                print(f"--similar {rung:<6} {line(words)}")
            for reach, words in reaches:
                print(f"--whose {reach:<10} {line(words)}")
            print(f"--for     {', '.join(Lasting)}")


@commands.command()
def decline(
    proposal: Id,
    reason: Annotated[str | None, typer.Argument()] = None,
    seen: Seen = None,
    *,
    every: Every = False,
) -> None:
    """Decline a proposal."""
    verb = Verb.DECLINE_ALL if every else Verb.DECLINE
    _press(proposal, Press(operator(), verb, "", seen, reason=reason))


@commands.command()
def revise(
    proposal: Id, changes: Annotated[str, typer.Argument(help="what should change")], seen: Seen = None
) -> None:
    """Send a teammate's plan back for changes."""
    _press(proposal, Press(operator(), Verb.REVISE, "", seen, reason=changes))


@commands.command()
def ask(
    proposal: Id, question: Annotated[str, typer.Argument(help="what you want to know")], seen: Seen = None
) -> None:
    """Ask the agent about an open proposal; this decides nothing.

    It answers in its conversation.
    """
    _press(proposal, Press(operator(), Verb.ASK, "", seen, reason=question))


@commands.command()
def edit(
    proposal: Id,
    arguments: Annotated[
        str | None, typer.Argument(help="all arguments, as a JSON object", metavar="JSON")
    ] = None,
    seen: Seen = None,
) -> None:
    """Change a proposal's arguments; it needs approval again.

    Without JSON, print the current ones to start from.
    """
    if arguments is None:
        _print_arguments(proposal)
        return
    with told():
        given = decoded(arguments)
    _press(proposal, Press(operator(), Verb.EDIT, "", seen, arguments=given))


@commands.command()
def cancel(proposal: Id) -> None:
    """Withdraw a proposal you asked for (an admin: anyone's)."""
    _press(proposal, Press(operator(), Verb.CANCEL, ""))


@commands.command()
def extend(proposal: Id) -> None:
    """Restart a proposal's expiry timer."""
    _press(proposal, Press(operator(), Verb.EXTEND, ""))


@commands.command()
def stop(proposal: Id) -> None:
    """Stop a proposal's tool while it runs.

    The running nod does so within a second. What the tool did until then stays done.
    """
    _press(proposal, Press(operator(), Verb.STOP, ""))


@commands.command()
def retry(proposal: Id) -> None:
    """Run a failed proposal again."""
    _press(proposal, Press(operator(), Verb.RETRY, ""))


def _print_arguments(prefix: str) -> None:
    with told(), looking(load()) as database:
        found = find(database, prefix)
        shown = shown_arguments(found.arguments, database.read_now(Shelf({}).schema_of, found))
        print(json.dumps(shown, indent=2))


def _press(prefix: str, press: Press) -> None:
    """Press on the proposal with this id prefix; prints the answer, and fails unless the press counts."""
    with told():
        settings = load()
        log_at("error")
        with existing(settings) as database:
            found = find(database, prefix)
            approving = press.verb in (Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR)
            if approving and not _sure(found):
                raise typer.Exit(1)
            reply = asyncio.run(_taken(settings, database, replace(press, proposal_id=found.id)))
            named = f"{line(found.description)}: " if approving and reply.answer is Answer.ACCEPTED else ""
            print(f"{named}{plain(reply.text)}")
            if reply.answer is Answer.STALE:
                print(f"See: nod show {found.id}")
            if reply.answer is Answer.INVALID and press.verb is Verb.SIMILAR:
                print(f"See: nod similar {found.id}")
            if reply.answer is Answer.REFUSED:
                raise NodError(f"you act as {press.actor} here; an admin can add it to NOD_ADMINS")
            if reply.answer is not Answer.ACCEPTED:
                raise typer.Exit(1)


def _sure(found: Proposal) -> bool:
    """Ask a person at a terminal before what can't be undone."""
    title = redact_text(found.description)
    asked = button(Verb.APPROVE, kind=found.kind, level=found.risk.level, title=title).sure
    if asked is None or not sys.stdin.isatty():
        return True
    return typer.confirm(f"{line(asked.question)} This can't be undone.")


async def _taken(settings: Settings, database: Database, press: Press) -> Reply:
    async with presses_of(settings, database) as presses:
        return (await presses.take(press)).reply


async def _ladder(
    settings: Settings, database: Database, found: Proposal
) -> tuple[Sequence[tuple[Rung, str]], Sequence[tuple[Whose, str]]]:
    async with presses_of(settings, database) as presses:
        return await presses.ladder(found.id, operator()), await presses.reaches(found.id, operator())
