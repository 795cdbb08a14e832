"""``nod tools``: list tools, show one, and call one; a call that writes asks first, as from any chat."""

import asyncio
import json
import sys
from typing import Annotated, Any

import typer

from bot.agent.openai.offers import list_omissions
from bot.approvals.requests import RequestGate
from bot.cli.command import command, shared_options
from bot.cli.gate import open_gate, open_tools
from bot.cli.shared import (
    Json,
    decode_object,
    escape_for_terminal,
    fit_to_terminal,
    get_shell_actor,
    load_settings,
    log_at,
    open_existing,
    print_json,
    redact_line,
)
from bot.domain.card_rendering import render_card
from bot.domain.chat import Address, Request
from bot.domain.people import SHELL
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.errors import NodError
from bot.settings import Settings
from bot.store import proposals
from bot.store.database import Database
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool

app = typer.Typer(callback=shared_options, no_args_is_help=True, help="List tools and call one manually.")
_POLL_SECONDS = 0.5  # between two reads of the proposal that another process executes


def complete_tool(incomplete: str) -> list[tuple[str, str]]:
    """Complete a tool's name in the shell. MCP servers are not started for a press of Tab."""
    try:
        tools = asyncio.run(_list_tools(load_settings(NOD_MCP_CONFIG=None)))
    except (NodError, ImportError):
        return []
    matching = [tool for tool in tools if tool.name.startswith(incomplete)]
    return [(tool.name, _first_line(tool)) for tool in matching]


ToolName = Annotated[
    str,
    typer.Argument(
        metavar="TOOL", help="The tool's name, as in: nod tools list", autocompletion=complete_tool
    ),
]


@command(app, "list")
def list_(*, as_json: Json = False) -> None:
    """List every tool: name, group, what it does to the world, one line."""
    tools = asyncio.run(_list_tools(load_settings()))
    tools.sort(key=lambda tool: (tool.group, tool.name))
    if as_json:
        print_json([_tool_to_json(tool) for tool in tools])
        return
    for tool in tools:
        row = f"{tool.name:<24} {tool.group:<12} {tool.risk_label:<12} {_first_line(tool)}"
        print(fit_to_terminal(row))
    for tool in tools:
        omissions = ", ".join(list_omissions(tool.spec))  # parts of its schema that models are not sent
        if omissions:
            print(redact_line(f"nod: models are not told all of {tool.name}: {omissions}"), file=sys.stderr)


def _first_line(tool: Tool) -> str:
    return redact_line(tool.description.partition("\n")[0])


def _tool_to_json(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "group": tool.group,
        "risk": tool.risk_label,  # in all that people and programs see, a tool's harm is called its risk
        "description": tool.description,
        "parameters": tool.parameters,
        "untold": list_omissions(tool.spec),
    }


@command(app, "show")
def show_tool(name: ToolName, *, as_json: Json = False) -> None:
    """Show one tool in full: what it does, its risk, and the JSON schema of its arguments."""
    tool = _find_tool(asyncio.run(_list_tools(load_settings())), name)
    if as_json:
        print_json(_tool_to_json(tool))
        return
    treatment = "runs immediately" if tool.reads else "asks first, if the rules say so"
    lines = [f"{tool.name} ({tool.group})", tool.description, "", f"risk: {tool.risk_label}, {treatment}"]
    omissions = ", ".join(list_omissions(tool.spec))
    if omissions:
        lines.append(f"models are not told: {omissions}")
    lines.append(json.dumps(tool.parameters, indent=2, ensure_ascii=False))
    print(escape_for_terminal("\n".join(lines)))


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
    with open_existing(settings) as database:
        asyncio.run(_call(settings, database, name, given, wait=wait))


async def _call(
    settings: Settings, database: Database, name: str, given: dict[str, Any], *, wait: bool
) -> None:
    """Run a call that reads, and print its result. For any other open a proposal, and print who may decide.

    ``wait``: wait until the proposal has ended, and print how.
    """
    async with open_gate(settings, database, all_now=True) as gate:
        tool = _find_tool(_list_callable(await gate.registry.load_tools()), name)
        person = get_shell_actor()
        request = Request(
            actor=person,
            tool_name=tool.name,
            arguments=given,
            address=Address(SHELL, person.key),
            text=f"{person.label} calls {tool.name} from the command line.",
        )
        # the gate runs a call that reads; for a call that writes there is no result
        result = await RequestGate(gate).run_if_read(tool, await tool.check_arguments(given), request)
        if result is not None:
            print(escape_for_terminal(result.text))
            if not result.ok:
                raise typer.Exit(1)
            return
        proposal = (await RequestGate(gate).open(request)).proposal
    print(escape_for_terminal(f"{proposal.id}: {redact_line(proposal.description)}"))
    if proposal.state is State.PROPOSED:
        deciders = redact_line(proposal.deciders.describe(person.label))
        print(f"It waits for {deciders}: nod approve {proposal.id}")
    if wait:
        _print_end(await _wait_for_end(database, proposal))


async def _wait_for_end(database: Database, proposal: Proposal) -> Proposal:
    """Return the proposal once it has ended; the running Nod expires and executes it."""
    while not proposal.settled:
        await asyncio.sleep(_POLL_SECONDS)
        found = await database.read(proposals.get, proposal.id)
        if found is None:
            raise NodError(f"proposal {proposal.id} is gone")
        proposal = found
    return proposal


def _print_end(proposal: Proposal) -> None:
    """Print how a proposal ended. Exits with 1 unless it succeeded."""
    card = render_card(proposal, schema={})
    print(escape_for_terminal(card.outcome))
    if card.result:
        print(escape_for_terminal(redact_text(card.result)))
    if proposal.state is not State.SUCCEEDED:
        raise typer.Exit(1)


async def _list_tools(settings: Settings) -> list[Tool]:
    log_at("error")
    database = Database(settings.database_url)  # it is never read, so its file is not created either
    try:
        async with open_tools(settings, database, all_now=True) as registry:
            return _list_callable(await registry.load_tools())
    finally:
        database.close()


def _list_callable(available: AvailableTools) -> list[Tool]:
    """Return the tools that work outside a conversation.

    Left out are tools with an ``effect``, such as those of a team of agents: they only change Nod's own rows,
    when an agent's answer is stored. So are the tools that ask people whatever the rules say.
    """
    return [tool for tool in available.model_tools if tool.effect is None and not tool.kind.always_asks]


def _find_tool(tools: list[Tool], name: str) -> Tool:
    for tool in tools:
        if tool.name == name:
            return tool
    raise NodError(f"there is no tool {name}; see: nod tools list")
