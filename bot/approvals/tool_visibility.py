"""Which tools an agent can reach: the lead agent all but ``plan_submit``, a teammate only its own share.

A teammate that must plan first is locked until its plan is approved: it may only look around. The narrowed
selection is what the model is offered, and what `Gate.consider` judges its calls by.
"""

from bot.approvals.tools import outputs, schedules, team
from bot.domain.plans import MAX_ROUNDS, Plan, fields, stands
from bot.domain.proposals import Kind, PreviewField
from bot.domain.teams import Teammate
from bot.domain.text import one_line
from bot.errors import ToolError
from bot.tools.registry import AvailableTools
from bot.tools.tool import Arguments, Tool

FILES = "fs"
UNLOCKED_ONLY = frozenset({FILES, "runtime"})
"""Groups that a locked teammate has no part of, not even to read."""


def available_tools(
    available: AvailableTools, teammate: Teammate | None, *, scheduled: bool = False
) -> AvailableTools:
    """The tools that are in reach; the rest is withheld, each with the reason.

    ``scheduled``: in a run of a schedule.
    """
    locked = teammate is not None and teammate.locked
    withheld = {tool.name: why for tool in available if (why := _objection(tool, teammate, locked=locked))}
    if scheduled:
        alone = (tool.name for tool in available if tool.group in (team.GROUP, schedules.GROUP))
        withheld |= dict.fromkeys(alone, _ALONE)
    return available.without(withheld)


def check_unlocked(teammate: Teammate | None, tool: Tool) -> None:
    """Raises ToolError if a locked teammate would change data, whatever it was offered."""
    if teammate is not None and teammate.locked:
        raise ToolError(f"{tool.name} isn't read-only, and you are locked until your plan is approved.")


def plan_shown(
    available: AvailableTools, teammate: Teammate | None, arguments: Arguments
) -> tuple[str, tuple[PreviewField, ...]]:
    """The title and the fields of a plan's card, alongside those of the version before it.

    ``available`` holds all tools. Raises ToolError when a step names a tool that the teammate would not have.
    """
    if teammate is None:
        raise ToolError(_NOT_THE_LEADS)
    plan = Plan.of(arguments)
    unknown = [
        name
        for name in plan.tools
        if name not in available.tools or _withheld_for_good(available.tools[name], teammate)
    ]
    if unknown:
        raise ToolError(f"Your steps name tools that you do not have: {', '.join(unknown)}.")
    before = Plan.of(teammate.plan.arguments) if teammate.plan else None
    version = f", version {teammate.rounds + 1}" if teammate.rounds else ""
    title = f"Plan{version}: {plan.summary}"
    return one_line(title), fields(plan, before)


_ALONE = "A run of a schedule starts no teammates and changes no schedules."
_NOT_THE_LEADS = (
    "plan_submit is for teammates that must plan first. You propose changes with the tools themselves."
)


def _objection(tool: Tool, teammate: Teammate | None, *, locked: bool) -> str | None:
    if teammate is None:
        return _NOT_THE_LEADS if tool.kind is Kind.PLAN else None
    if tool.kind is Kind.PLAN:
        return _no_plan(teammate)
    if why := _withheld_for_good(tool, teammate):
        return why
    if locked and (not tool.reads or tool.group in UNLOCKED_ONLY):
        return f"{tool.name} is locked until your plan is approved. Look around, then use plan_submit."
    return None


def _withheld_for_good(tool: Tool, teammate: Teammate) -> str | None:
    if tool.group == team.GROUP:
        return f"{tool.name} is for the lead agent alone; you are a teammate."
    if teammate.tools is not None and tool.name not in teammate.tools and tool.group != outputs.GROUP:
        return f"You were not given {tool.name}."
    return None


def _no_plan(teammate: Teammate) -> str | None:
    """Why a teammate cannot submit a plan; None when it can."""
    if not teammate.needs_plan:
        return "No plan is asked of you. Use your tools; each change asks for approval by itself."
    if teammate.plan is not None and stands(teammate.plan):
        return "Your plan is approved already. Carry it out."
    if teammate.rounds >= MAX_ROUNDS:
        return f"You submitted {teammate.rounds} plans, and there is no round left. End with what you found."
    return None
