"""``nod approve`` and the other decisions from the command line, handled like a press in any chat.

What a command needs that decides or runs something: the tools, the gate, presses from this shell.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import typer

from bot.app import hooks_of, make_parts, registry_of
from bot.approvals.gate import Gate
from bot.approvals.presses import Presses
from bot.cli.shared import (
    decode_object,
    existing,
    find,
    line,
    load_settings,
    log_at,
    looking,
    operator,
    plain,
    print_json,
)
from bot.core import policies_of
from bot.domain.cards import card_of
from bot.domain.chat import Answer, Press, Reply
from bot.domain.jobs import Process
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_arguments as shown_arguments
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.times import now
from bot.domain.verbs import Verb
from bot.errors import NodError, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.store.hooks import give_hooks
from bot.store.locks.process_lock import notify
from bot.telemetry import tracing
from bot.tools.mcp.base import SETTLE_SECONDS
from bot.tools.registry import AvailableTools, Registry

_ASKING = (Verb.UNDO, Verb.UNDO_ALL, Verb.FOR_REAL, Verb.RETRY)  # besides those that approve


def approve(
    proposal: str,
    similar: GrantScope | None,
    lasting: GrantDuration | None,
    seen: int | None,
    reach: GrantAudience,
    *,
    steps: bool,
    every: bool,
    real: bool,
) -> None:
    """Approve a proposal as it is now; the running nod executes it."""
    if (similar is None) != (lasting is None):
        raise SettingsError("--similar and --for go together, such as: --similar exact --for 1h")
    asked = {Verb.SIMILAR: similar, Verb.APPROVE_STEPS: steps, Verb.APPROVE_ALL: every, Verb.FOR_REAL: real}
    chosen = [verb for verb, given in asked.items() if given] or [Verb.APPROVE]
    if len(chosen) > 1:
        raise SettingsError("use only one of --similar, --steps, --all and --real")
    press(proposal, chosen[0], seen, rung=similar, lasting=lasting, reach=reach)


def list_similar(proposal: str, *, as_json: bool) -> None:
    """Say what approving calls like it may allow, narrowest first."""
    settings = load_settings()
    log_at("error")
    with looking(settings) as database:
        found = find(database, proposal)
        rungs, reaches = asyncio.run(_ladder(settings, database, found))
        if not rungs:
            raise NodError("you can't allow anything beyond this one call")
        if as_json:
            told_rungs = [{"similar": rung, "allows": words} for rung, words in rungs]
            told_reaches = [{"whose": reach, "allows": words} for reach, words in reaches]
            print_json({"similar": told_rungs, "whose": told_reaches, "for": list(GrantDuration)})
            return
        for rung, words in rungs:
            print(f"--similar {rung:<6} {line(words)}")
        for reach, words in reaches:
            print(f"--whose {reach:<10} {line(words)}")
        print(f"--for     {', '.join(GrantDuration)}")


def edit_proposal(proposal: str, arguments: str | None, seen: int | None) -> None:
    """Change the arguments; without any, print the current ones to start from."""
    if arguments is None:
        _print_arguments(proposal)
        return
    given = decode_object(arguments)
    press(proposal, Verb.EDIT, seen, arguments=given)


def _print_arguments(prefix: str) -> None:
    with looking(load_settings()) as database:
        found = find(database, prefix)
        shown = shown_arguments(found.arguments, database.read_now(AvailableTools({}).schema_of, found))
        print(json.dumps(shown, indent=2))


def press(prefix: str, verb: Verb, seen: int | None = None, **more: Any) -> None:
    """Press on the proposal with this id prefix; prints the answer, and fails unless the press counts.

    ``seen``: the round that was looked at. ``more``: what `Press` takes.
    """
    settings = load_settings()
    log_at("error")
    with existing(settings) as database:
        found = find(database, prefix)
        approving = verb in (Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.FOR_REAL)
        if (approving or verb in _ASKING) and not _sure(found, verb):
            raise typer.Exit(1)
        pressed = Press(operator(), verb, found.id, seen, **more)
        reply = asyncio.run(_take_press(settings, database, pressed))
        if approving and reply.answer is Answer.ACCEPTED:
            named = f"{line(found.description)}: "
        else:
            named = ""
        print(f"{named}{plain(reply.text)}")
        if reply.answer is Answer.STALE:
            print(f"See: nod show {found.id}")
        if reply.answer is Answer.INVALID and verb is Verb.SIMILAR:
            print(f"See: nod similar {found.id}")
        if reply.answer is Answer.REFUSED:
            raise NodError(f"you act as {pressed.actor} here; an admin can add it to NOD_ADMINS")
        if reply.answer is not Answer.ACCEPTED:
            raise typer.Exit(1)


def _sure(found: Proposal, verb: Verb) -> bool:
    """Ask a person at a terminal before a risky press, and tell if they agree; True without a terminal."""
    asked = card_of(found, {}).button(verb if verb in _ASKING else Verb.APPROVE).sure
    if asked is None or not sys.stdin.isatty():
        return True
    return typer.confirm(line(f"{asked.question} {asked.more}"))


async def _take_press(settings: Settings, database: Database, press: Press) -> Reply:
    async with presses_of(settings, database) as presses:
        return (await presses.take(press)).reply


async def _ladder(
    settings: Settings, database: Database, found: Proposal
) -> tuple[Sequence[tuple[GrantScope, str]], Sequence[tuple[GrantAudience, str]]]:
    async with presses_of(settings, database) as presses:
        return await presses.ladder(found.id, operator()), await presses.reaches(found.id, operator())


@contextlib.asynccontextmanager
async def tools_of(
    settings: Settings, database: Database, *, all_now: bool = False
) -> AsyncIterator[Registry]:
    """Yield every tool that the settings name; MCP servers start when tools are first asked for.

    ``all_now``: they all start immediately, and those that fail are reported.
    """
    parts = make_parts(settings, database, policies_of(settings))
    give_hooks(database, hooks_of(parts))
    registry, own, mcp = registry_of(parts)
    await own.start()
    try:
        if all_now:
            await mcp.settle(SETTLE_SECONDS)
            await mcp.tools()
        for server in await mcp.status():
            if server.trouble and all_now:
                why = f"the MCP server {server.name} is unavailable ({server.trouble})"
                said = f"; it said: {server.said}" if server.said else ""
                print(line(f"nod: {why}; without its tools{said}"), file=sys.stderr)
            elif server.left_out and all_now:
                print(line(f"nod: the MCP server {server.name}: {server.left_out}"), file=sys.stderr)
        yield registry
    finally:
        await mcp.stop()


@contextlib.asynccontextmanager
async def gate_of(settings: Settings, database: Database, *, all_now: bool = False) -> AsyncIterator[Gate]:
    """Yield the gate to every tool that the settings name; ``all_now`` as in `tools_of`."""
    async with tools_of(settings, database, all_now=all_now) as registry:
        yield Gate(registry, policies_of(settings), database, now, Process.this().id)
    notify(database.engine)


@contextlib.asynccontextmanager
async def presses_of(settings: Settings, database: Database) -> AsyncIterator[Presses]:
    """Yield the press service for this shell. The running nod finds the resulting jobs in the rows."""
    async with contextlib.AsyncExitStack() as stack:
        gate = await stack.enter_async_context(gate_of(settings, database))
        if settings.otlp_endpoint is not None:
            end = tracing.begin_tracing(settings.otlp_endpoint, settings.otlp_header_pairs, Process.this().id)
            stack.push_async_callback(asyncio.to_thread, end)
        yield Presses(database, gate, now)
