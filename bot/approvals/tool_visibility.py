"""The choice of the tools that an agent may call: the lead agent all, a teammate only its share.

The lead agent of a conversation starts teammates for parts of its work, and says which tools each gets. A
teammate that must plan first is locked until its plan is approved: it may only look around. The model is
offered the chosen tools, and `Gate.consider` judges only calls of these.
"""

from bot.approvals.tools import outputs, team
from bot.domain.conversations import Transcript
from bot.domain.plans import MAX_SUBMITTED_PLANS, is_approved
from bot.domain.teams import Teammate
from bot.errors import ToolError
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool

FILES = "fs"
"""The group of the tools for files."""
_GROUPS_FOR_ALL = (outputs.GROUP, team.PLANNING)
"""The groups of tools that every teammate has."""
_RUNTIME = "runtime"
"""The group of the tools for commands and containers."""
_UNLOCKED_ONLY = frozenset({FILES, _RUNTIME})
"""The groups of tools that a locked teammate does not have, not even to read."""

_SCHEDULE_TEXT = "A run of a schedule starts no teammates and changes no schedules."


def choose_available(available: AvailableTools, transcript: Transcript) -> AvailableTools:
    """Return the tools that a conversation's agent may call; others are left out, each with the reason."""
    teammate = transcript.teammate
    withheld = {}
    for tool in available:
        why = _find_objection(tool, teammate)
        if transcript.schedule is not None and (tool.group == team.GROUP or not tool.unattended):
            why = _SCHEDULE_TEXT
        if why:
            withheld[tool.name] = why
    return available.without(withheld)


def check_unlocked(teammate: Teammate | None, tool: Tool) -> None:
    """Raise ToolError if the teammate is locked, since a call of this tool would change data."""
    if teammate is not None and teammate.locked:
        raise ToolError(f"{tool.name} isn't read-only, and you are locked until your plan is approved.")


def lacks_tool(available: AvailableTools, teammate: Teammate | None, name: str) -> bool:
    """Tell if an agent does not get a tool, not even once its plan is approved."""
    if name not in available.tools:
        return True
    return teammate is not None and _find_lasting_objection(available.tools[name], teammate) is not None


def _find_objection(tool: Tool, teammate: Teammate | None) -> str | None:
    """Return why a teammate may not call a tool now; None if it may, and for the lead agent."""
    if teammate is None:
        return None
    if tool.kind.has_steps:
        return _find_plan_objection(teammate)
    why = _find_lasting_objection(tool, teammate)
    if why:
        return why
    if teammate.locked and (not tool.reads or tool.group in _UNLOCKED_ONLY):
        return f"{tool.name} is locked until your plan is approved. Look around, then use plan_submit."
    return None


def _find_lasting_objection(tool: Tool, teammate: Teammate) -> str | None:
    """Return why a teammate may never call a tool; None if it may, perhaps after its plan is approved."""
    if tool.group == team.GROUP:
        return f"{tool.name} is for the lead agent alone; you are a teammate."
    if teammate.tools is not None and tool.name not in teammate.tools and tool.group not in _GROUPS_FOR_ALL:
        return f"You were not given {tool.name}."
    return None


def _find_plan_objection(teammate: Teammate) -> str | None:
    """Return why a teammate can't submit a plan; None if it can."""
    if not teammate.needs_plan:
        return "No plan is asked of you. Use your tools; each change asks for approval by itself."
    if teammate.plan is not None and is_approved(teammate.plan):
        return "Your plan is approved already. Carry it out."
    if teammate.rounds >= MAX_SUBMITTED_PLANS:
        return f"You submitted {teammate.rounds} plans, and there is no round left. End with what you found."
    return None
