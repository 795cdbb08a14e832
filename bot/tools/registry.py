"""The registry of tools: all that are available now, by name."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlmodel import Session

from bot.domain.conversations import Call
from bot.domain.outcomes import REASON
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_arguments, secrets_in
from bot.domain.rules import Rulebook
from bot.domain.text import storable
from bot.errors import UnknownTool
from bot.store import proposals
from bot.telemetry.logs import logger
from bot.tools.tool import CallContext, Tool, Toolset, ToolSource

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class AvailableTools:
    """A snapshot of the tools; a turn keeps the one it started with. ``context``: for whom and where."""

    tools: Mapping[str, Tool]
    withheld: Mapping[str, str] = field(default_factory=dict)  # tools out of reach here, each with the reason
    context: CallContext | None = None

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    @property
    def offered(self) -> "AvailableTools":
        """The tools that a model may be told of and may call."""
        if all(tool.offered for tool in self):
            return self
        return replace(self, tools={tool.name: tool for tool in self if tool.offered}, withheld={})

    def without(self, withheld: Mapping[str, str]) -> "AvailableTools":
        """Return the tools without those in ``withheld``, which gives a reason for each name."""
        if not withheld:
            return self
        left = {name: tool for name, tool in self.tools.items() if name not in withheld}
        return replace(self, tools=left, withheld={**self.withheld, **withheld})

    def schema_of(self, session: Session, proposal: Proposal) -> Mapping[str, Any]:
        """Return the JSON schema of a proposal's arguments, as it was when it was proposed.

        It says what is secret, so it is kept for when the tool has changed or is gone; without a stored one
        it is the current tool's, or empty.
        """
        tool = self.tools.get(proposal.tool_name)
        if tool is not None and tool.version == proposal.tool_version:
            return tool.form
        kept = proposals.schema(session, proposal.tool_name, proposal.tool_version)
        if kept is not None:
            return kept
        return tool.form if tool is not None else {}

    def arguments_of(self, call: Call) -> Mapping[str, Any]:
        """Return a call's arguments as people may see them, without its reason.

        Empty for what is no object.
        """
        tool = self.tools.get(call.tool_name)
        given = _parse_arguments(call)
        if isinstance(given, dict):
            found = redact_arguments(given, tool.parameters if tool else None)
        else:
            found = {}
        return {name: value for name, value in found.items() if name != REASON}

    def secrets_of(self, call: Call) -> tuple[str, ...]:
        """Return the values in a call's arguments that are hidden, since its result may repeat them."""
        tool = self.tools.get(call.tool_name)
        try:
            return secrets_in(_parse_arguments(call), tool.form if tool else None)
        except RecursionError:
            return ()

    def get(self, name: str) -> Tool:
        """Return a tool as it looks in the context.

        Raises UnknownTool, naming what there is or why it is out of reach.
        """
        found = self.tools.get(name)
        if found is None and name in self.withheld:
            raise UnknownTool(self.withheld[name])
        if found is None:
            raise UnknownTool(
                f"There is no tool called {name!r}. There are: {', '.join(sorted(self.tools))}."
            )
        return found.in_context(self.context) if self.context else found


def _parse_arguments(call: Call) -> Any:
    """Parse the model's arguments, without unstorable characters.

    None where they are no JSON: nothing ran.
    """
    try:
        return storable(json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError):
        return None


class Registry:
    """Asks every toolset for its tools."""

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        self._sources = tuple(ToolSource(toolset) for toolset in toolsets)
        self._told: set[tuple[str, str]] = set()  # names and toolsets that the log knows to be left out

    async def available(self, context: CallContext | None = None) -> AvailableTools:
        """Return the tools there are, for whom and where ``context`` says, if that is known.

        Where two toolsets bring the same name, it is the first one's: a call is bound to its tool's version,
        so that it never reaches the other. The log says which one to rename.
        """
        found: dict[str, Tool] = {}
        for source in self._sources:
            for each in await source.list_tools(context):
                if each.name in found:
                    self._note_duplicate(each.name, source.toolset.name)
                else:
                    found[each.name] = each
        return AvailableTools(found, context=context)

    def _note_duplicate(self, tool_name: str, toolset: str) -> None:
        if (tool_name, toolset) not in self._told:
            self._told.add((tool_name, toolset))
            log.error("two tools have one name; rename the one left out", tool=tool_name, left_out_of=toolset)

    async def misfits(self, book: Rulebook) -> dict[int, str]:
        """Return the rules whose condition does not fit an available tool, by number, with the reasons."""
        if not book.conditional:
            return {}  # to ask for tools may start servers
        return book.misfits({tool.name: tool.form for tool in await self.available()}, every=True)
