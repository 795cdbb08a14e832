"""``nod tools``: what tools there are, and one called manually; what writes asks first, as from any chat."""

import asyncio
import contextlib
import json
import sys
from typing import Annotated, Any

import typer

from bot.agent.openai.offers import list_omissions
from bot.cli.command import command, shared_options
from bot.cli.gate import gate_of, tools_of
from bot.cli.shared import (
    Json,
    decode_object,
    existing,
    fit_to_terminal,
    line,
    load_settings,
    log_at,
    operator,
    plain,
    print_json,
)
from bot.domain.cards import card_of
from bot.domain.chat import Address, Request
from bot.domain.people import SHELL
from bot.domain.proposals import Proposal, State
from bot.domain.redaction import redact_text
from bot.errors import NodError
from bot.settings import Settings
from bot.store import proposals
from bot.store.database import Database
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool

app = typer.Typer(callback=shared_options, no_args_is_help=True, help="List tools and call one manually.")
_LOOK_SECONDS = 0.5  # how often another process's work is looked for


def complete_tool(incomplete: str) -> list[tuple[str, str]]:
    """Complete a tool's name in the shell. MCP servers are not started for a press of Tab."""
    with contextlib.suppress(NodError, ImportError):
        offered = asyncio.run(_list_tools(load_settings(NOD_MCP_CONFIG=None)))
        found = [tool for tool in offered if tool.name.startswith(incomplete)]
        return [(tool.name, line(tool.description.partition("\n")[0])) for tool in found]
    return []


ToolName = Annotated[
    str,
    typer.Argument(
        metavar="TOOL", help="The tool's name, as in: nod tools list", autocompletion=complete_tool
    ),
]


@command(app, "list")
def list_(*, as_json: Json = False) -> None:
    """List every tool: name, group, what it does to the world, one line."""
    found = asyncio.run(_list_tools(load_settings()))
    found = sorted(found, key=lambda t: (t.group, t.name))
    if as_json:
        print_json([_tool_to_json(tool) for tool in found])
        return
    for tool in found:
        says = line(tool.description.partition("\n")[0])
        print(fit_to_terminal(f"{tool.name:<24} {tool.group:<12} {tool.harm:<12} {says}"))
    for tool in found:
        untold = list_omissions(tool.spec)
        if untold:
            print(line(f"nod: models are not told all of {tool.name}: {', '.join(untold)}"), file=sys.stderr)


def _tool_to_json(tool: Tool) -> dict[str, Any]:
    about = {"name": tool.name, "group": tool.group, "risk": tool.harm, "description": tool.description}
    return about | {"parameters": tool.parameters, "untold": list_omissions(tool.spec)}


@command(app, "show")
def show_tool(name: ToolName, *, as_json: Json = False) -> None:
    """Show one tool in full: what it does, its risk, and the JSON schema of its arguments."""
    tool = _find_tool(asyncio.run(_list_tools(load_settings())), name)
    if as_json:
        print_json(_tool_to_json(tool))
        return
    how = "runs immediately" if tool.reads else "asks first, if the rules say so"
    schema = json.dumps(tool.parameters, indent=2, ensure_ascii=False)
    untold = ", ".join(list_omissions(tool.spec))
    lacks = f"models are not told: {untold}\n" if untold else ""
    print(
        plain(f"{tool.name} ({tool.group})\n{tool.description}\n\nrisk: {tool.harm}, {how}\n{lacks}{schema}")
    )


@command(app, "call")
def call_tool(
    name: ToolName,
    arguments: Annotated[str, typer.Argument(help="A JSON object.", metavar="JSON")] = "{}",
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it was decided and has run.")] = False,
) -> None:
    """Call a tool: what reads runs here and now; what writes becomes a proposal for people to decide."""
    settings = load_settings()
    log_at("error")
    given = decode_object(arguments)
    with existing(settings) as database:
        asyncio.run(_call(settings, database, name, given, wait=wait))


async def _call(
    settings: Settings, database: Database, name: str, given: dict[str, Any], *, wait: bool
) -> None:
    async with gate_of(settings, database, all_now=True) as gate:
        tool = _find_tool(_callable(await gate.registry.available()), name)
        who = operator()
        words = f"{who.label} calls {tool.name} from the command line."
        request = Request(who, tool.name, given, Address(SHELL, who.key), words)
        result = await gate.look(tool, await tool.check_arguments(given), request)
        if result is not None:
            print(plain(result.text))
            if not result.ok:
                raise typer.Exit(1)
            return
        proposal = (await gate.open(request)).proposal
    print(plain(f"{proposal.id}: {line(proposal.description)}"))
    if proposal.state is State.PROPOSED:
        who_may = line(proposal.deciders.in_words(who.label))
        print(f"It waits for {who_may}: nod approve {proposal.id}")
    if wait:
        _end(await _wait_for_end(database, proposal))


async def _wait_for_end(database: Database, proposal: Proposal) -> Proposal:
    """Return the proposal once it ended; the running nod expires and executes it."""
    while not proposal.settled:
        await asyncio.sleep(_LOOK_SECONDS)
        found = await database.read(proposals.get, proposal.id)
        if found is None:
            raise NodError(f"proposal {proposal.id} is gone")
        proposal = found
    return proposal


def _end(proposal: Proposal) -> None:
    card = card_of(proposal, {})
    print(plain(card.outcome))
    if card.result:
        print(plain(redact_text(card.result)))
    if proposal.state is not State.SUCCEEDED:
        raise typer.Exit(1)


async def _list_tools(settings: Settings) -> list[Tool]:
    log_at("error")
    database = Database(settings.database_url)  # nothing is read: it is not even made here
    try:
        async with tools_of(settings, database, all_now=True) as registry:
            return _callable(await registry.available())
    finally:
        database.close()


def _callable(available: AvailableTools) -> list[Tool]:
    """Return the tools that work outside a conversation, unlike those of teams."""
    return [tool for tool in available.offered if tool.effect is None and not tool.kind.always_asks]


def _find_tool(tools: list[Tool], name: str) -> Tool:
    found = {tool.name: tool for tool in tools}.get(name)
    if found is None:
        raise NodError(f"there is no tool {name}; see: nod tools list")
    return found
