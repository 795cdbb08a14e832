"""``nod approve`` and what else is pressed from the shell, taken in as a press from any chat is."""

import asyncio
import json
from dataclasses import replace
from typing import Annotated

import typer

from bot import telemetry
from bot.domain.chat import Answer, Press, Reply, Verb
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact
from bot.domain.similarity import Lasting, Rung
from bot.errors import NodError, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.terminal import decoded, existing, find, line, operator, plain, presses_of, told
from bot.tools.registry import Shelf

commands = typer.Typer()

Id = Annotated[str, typer.Argument(help="the proposal's ID, or its first characters")]
Seen = Annotated[
    int | None,
    typer.Option("--round", help="the round you looked at, as nod show says it; refused if it changed since"),
]

Every = Annotated[bool, typer.Option("--all", help="and every other open one of the same answer")]


@commands.command()
def approve(
    proposal: Id,
    similar: Annotated[
        Rung | None, typer.Option(help="allow calls like it from now on, as nod similar says them")
    ] = None,
    lasting: Annotated[Lasting | None, typer.Option("--for", help="how long --similar holds")] = None,
    seen: Seen = None,
    *,
    steps: Annotated[bool, typer.Option("--steps", help="a plan: allow the tools it names, too")] = False,
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
            raise SettingsError("--similar, --steps and --all: one of them, please")
    verb = chosen[0] if chosen else Verb.APPROVE
    _press(proposal, Press(operator(), verb, "", seen, rung=similar, lasting=lasting))


@commands.command()
def similar(proposal: Id) -> None:
    """Say what approving calls like it may allow, narrowest first."""
    with told():
        settings = Settings.load()
        telemetry.configure("error")
        with existing(settings) as database:
            found = find(database, proposal)
            rungs = asyncio.run(_ladder(settings, database, found))
            if not rungs:
                raise NodError("nothing beyond this very call can be allowed here, or not by you")
            for rung, words in rungs:
                print(f"--similar {rung:<6} {line(words)}")
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
def edit(
    proposal: Id,
    arguments: Annotated[
        str | None, typer.Argument(help="all arguments, as a JSON object", metavar="JSON")
    ] = None,
    seen: Seen = None,
) -> None:
    """Change a proposal's arguments; it waits for approval anew. Without JSON: print them, to begin from."""
    if arguments is None:
        _print_arguments(proposal)
        return
    with told():
        given = decoded(arguments)
    _press(proposal, Press(operator(), Verb.EDIT, "", seen, arguments=given))


@commands.command()
def cancel(proposal: Id) -> None:
    """Take back a proposal you asked for (an admin: anybody's)."""
    _press(proposal, Press(operator(), Verb.CANCEL, ""))


@commands.command()
def extend(proposal: Id) -> None:
    """Let a proposal wait its whole time again."""
    _press(proposal, Press(operator(), Verb.EXTEND, ""))


@commands.command()
def retry(proposal: Id) -> None:
    """Run again what failed."""
    _press(proposal, Press(operator(), Verb.RETRY, ""))


def _print_arguments(prefix: str) -> None:
    with told(), existing(Settings.load()) as database:
        found = find(database, prefix)
        shown = redact(found.arguments, database.read_now(Shelf({}).schema_of, found))
        print(json.dumps(shown, indent=2))


def _press(prefix: str, press: Press) -> None:
    """Press on the proposal whose id begins so; says how it was taken, and fails unless it counts."""
    with told():
        settings = Settings.load()
        telemetry.configure("error")
        with existing(settings) as database:
            found = find(database, prefix)
            reply = asyncio.run(_taken(settings, database, replace(press, proposal_id=found.id)))
            print(plain(reply.text))
            if reply.answer is Answer.STALE:
                print(f"See: nod show {found.id}")
            if reply.answer is Answer.INVALID and press.verb is Verb.SIMILAR:
                print(f"See: nod similar {found.id}")
            if reply.answer is Answer.REFUSED:
                raise NodError(f"you act as {press.actor} here; an admin can add it to NOD_ADMINS")
            if reply.answer is not Answer.ACCEPTED:
                raise typer.Exit(1)


async def _taken(settings: Settings, database: Database, press: Press) -> Reply:
    async with presses_of(settings, database) as presses:
        return (await presses.take(press)).reply


async def _ladder(settings: Settings, database: Database, found: Proposal) -> list[tuple[Rung, str]]:
    async with presses_of(settings, database) as presses:
        return list(await presses.ladder(found.id, operator()))
