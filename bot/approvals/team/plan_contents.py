"""The contents of a plan, checked before it becomes a proposal: the tools and calls that its steps name.

An agent may plan only with tools that it gets once the plan is approved.
"""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from bot.approvals.tool_visibility import lacks_tool
from bot.domain.plans import Plan, list_plan_fields
from bot.domain.preview import PreviewField
from bot.domain.redaction import secrets_in
from bot.domain.risks import Level
from bot.domain.teams import Teammate
from bot.domain.text import one_line
from bot.errors import ToolError
from bot.tools.call import Arguments
from bot.tools.registry import AvailableTools


def describe_plan(
    available: AvailableTools, teammate: Teammate | None, arguments: Arguments
) -> tuple[str, tuple[PreviewField, ...]]:
    """Return the title and the fields of a plan's card, with the values of the version before as old values.

    ``available``: all tools. ``teammate``: the teammate that plans; None for the lead agent. Raises ToolError
    if a step names a tool that the agent does not get.
    """
    plan = Plan.of(arguments)
    unknown = [name for name in plan.tools if lacks_tool(available, teammate, name)]
    if unknown:
        raise ToolError(f"Your steps name tools that you do not have: {', '.join(unknown)}.")
    before = Plan.of(teammate.plan.arguments) if teammate and teammate.plan else None
    # ``rounds``: the number of plans that the teammate has submitted before
    version = f", version {teammate.rounds + 1}" if teammate and teammate.rounds else ""
    return one_line(f"Plan{version}: {plan.summary}"), list_plan_fields(plan, before)


async def complete_calls(
    available: AvailableTools, teammate: Teammate | None, arguments: Arguments, zone: tzinfo | None
) -> dict[str, Any]:
    """Return the arguments of a plan with the calls of its steps as they would run, each checked by its tool.

    ``zone``: as in `Tool.check_arguments`. Raises ToolError for a call that can't be made, or that holds
    a secret.
    """
    steps = []
    for step in arguments["steps"]:
        calls = [await _complete_call(available, teammate, call, zone) for call in step.get("calls") or ()]
        steps.append({**step, "calls": calls} if calls else step)
    return {**arguments, "steps": steps}


async def _complete_call(
    available: AvailableTools, teammate: Teammate | None, call: Mapping[str, Any], zone: tzinfo | None
) -> dict[str, Any]:
    """Return a call of a step with its arguments as they would run, and if people are asked even so."""
    name = call["tool"]
    if lacks_tool(available, teammate, name):
        raise ToolError(f"Your steps name tools that you do not have: {name}.")
    tool = available.get(name)
    if tool.reads or tool.kind.always_asks:
        raise ToolError(f"List only calls that change something: {name} needs no approval in advance.")
    arguments = await tool.check_arguments(dict(call["arguments"]), zone)
    if secrets_in(arguments, tool.parameters):
        raise ToolError(f"A call of {name} that holds a secret can't be listed in a plan.")
    is_destructive = tool.classify(arguments).level is Level.DESTRUCTIVE
    return {"tool": name, "version": tool.version, "arguments": arguments, "asks": is_destructive}
