"""The registry of tools: it asks every toolset for its tools, and gives a snapshot of them by name.

A toolset is a source of tools, such as all MCP servers. A turn of the model keeps the snapshot
(`AvailableTools`) with which it started. Some tools may be *withheld* in a snapshot: they exist, but rules or
the place forbid them to this person.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlmodel import Session

from bot.domain.conversations import Call
from bot.domain.outcomes import REASON_PARAMETER
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_arguments, secrets_in
from bot.domain.rulebook import Rulebook
from bot.domain.text import replace_unstorable
from bot.errors import UnknownTool
from bot.store import proposals
from bot.telemetry.logs import logger
from bot.tools.call import CallContext
from bot.tools.tool import Tool
from bot.tools.toolset import Toolset, ToolSource

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class AvailableTools:
    """A snapshot of the tools; a turn keeps the snapshot with which it started."""

    tools: Mapping[str, Tool]
    withheld: Mapping[str, str] = field(default_factory=dict)
    """The names of tools that can't be used here, each with the reason."""
    context: CallContext | None = None
    """The person and the place for which the tools were listed."""

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    @property
    def model_tools(self) -> "AvailableTools":
        """The tools that are offered to a model and that it may call."""
        if all(tool.offered for tool in self):
            return self
        offered_tools = {tool.name: tool for tool in self if tool.offered}
        return replace(self, tools=offered_tools, withheld={})  # a model is not told of withheld tools

    def without(self, withheld: Mapping[str, str]) -> "AvailableTools":
        """Return the tools without the tools named in ``withheld``, which gives a reason for each name."""
        if not withheld:
            return self
        remaining = {name: tool for name, tool in self.tools.items() if name not in withheld}
        return replace(self, tools=remaining, withheld={**self.withheld, **withheld})

    def schema_of(self, session: Session, proposal: Proposal) -> Mapping[str, Any]:
        """Return the JSON schema of a proposal's arguments, as it was when the call was proposed.

        The schema says which values are secret, so it is stored for when the tool has changed or is gone.
        Without a stored schema return that of the current tool, or an empty one.
        """
        tool = self.tools.get(proposal.tool_name)
        if tool is not None and tool.version == proposal.tool_version:
            return tool.form_schema
        stored = proposals.load_schema(session, proposal.tool_name, proposal.tool_version)
        if stored is not None:
            return stored
        return tool.form_schema if tool is not None else {}

    def arguments_of(self, call: Call) -> Mapping[str, Any]:
        """Return a call's arguments as people may see them, without the agent's reason; empty if not JSON."""
        tool = self.tools.get(call.tool_name)
        arguments = _parse_arguments(call)
        if not isinstance(arguments, dict):
            return {}
        redacted = redact_arguments(arguments, tool.parameters if tool else None)
        return {name: value for name, value in redacted.items() if name != REASON_PARAMETER}

    def secrets_of(self, call: Call) -> tuple[str, ...]:
        """Return the values in a call's arguments that are hidden, since its result may repeat them."""
        tool = self.tools.get(call.tool_name)
        try:
            return secrets_in(_parse_arguments(call), tool.form_schema if tool else None)
        except RecursionError:
            return ()

    def get(self, name: str) -> Tool:
        """Return a tool, bound to the context. Raises UnknownTool.

        The error names all tools, or says why this one is withheld.
        """
        tool = self.tools.get(name)
        if tool is None and name in self.withheld:
            raise UnknownTool(self.withheld[name])
        if tool is None:
            names = ", ".join(sorted(self.tools))
            raise UnknownTool(f"There is no tool called {name!r}. There are: {names}.")
        return tool.in_context(self.context) if self.context else tool


def _parse_arguments(call: Call) -> Any:
    """Return the model's arguments without unstorable characters; None if they are not JSON."""
    try:
        return replace_unstorable(json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError):
        return None


class Registry:
    """A registry of toolsets, which are asked for their tools each time."""

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        self._sources = tuple(ToolSource(toolset) for toolset in toolsets)
        self._logged_duplicates: set[tuple[str, str]] = set()  # names of tools, and their toolsets

    async def load_tools(self, context: CallContext | None = None) -> AvailableTools:
        """Return the tools of all toolsets, for the person and the place in ``context``.

        Of two tools with the same name, the tool of the first toolset is taken, and the log says which to
        rename. A call is bound to its tool's version, so it never reaches the other.
        """
        tools: dict[str, Tool] = {}
        for source in self._sources:
            for tool in await source.list_tools(context):
                if tool.name in tools:
                    self._log_duplicate(tool.name, source.toolset.name)
                else:
                    tools[tool.name] = tool
        return AvailableTools(tools, context=context)

    def _log_duplicate(self, tool_name: str, toolset: str) -> None:
        """Log that a tool is left out, once."""
        if (tool_name, toolset) not in self._logged_duplicates:
            self._logged_duplicates.add((tool_name, toolset))
            log.error("two tools have one name; rename the one left out", tool=tool_name, left_out_of=toolset)

    async def find_misfits(self, rulebook: Rulebook) -> dict[int, str]:
        """Return why the conditions of rules do not fit the available tools, by the rules' numbers."""
        if not rulebook.has_conditions:
            return {}  # no rule has a condition; to ask for the tools may start servers
        forms = {tool.name: tool.form_schema for tool in await self.load_tools()}
        return rulebook.explain_misfits(forms, all_tools=True)
