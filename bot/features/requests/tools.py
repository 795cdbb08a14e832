"""The tools whose proposals are the requests of scripts and other agents. No model is offered them.

They have no run: a request ends with its approval, and the requester acts on it. `request_approval` asks
about anything, `permit_tool_use` about a use of an agent's own tool. Requests come in over HTTP (`routes.py`)
and MCP.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from bot.domain import kinds
from bot.domain.preview import PreviewField
from bot.domain.text import as_text
from bot.tools.call import Arguments, ToolOutput
from bot.tools.decorator import tool
from bot.tools.signature import NOT_BLANK, Storable
from bot.tools.toolset import FixedToolset

REQUEST = "request_approval"
PERMISSION = "permit_tool_use"

Summary = Annotated[
    Storable, StringConstraints(strip_whitespace=True), Field(min_length=1, max_length=300), NOT_BLANK
]
Details = Annotated[Storable, Field(max_length=20_000)]
Name = Annotated[Storable, Field(min_length=1, max_length=200)]
Fields = Annotated[dict[Name, Details], Field(max_length=50)]
Input = Annotated[dict[str, Any], Field(max_length=100)]  # each field is a line of the card


def make_request_toolset() -> FixedToolset:
    """Return the tools `request_approval` and `permit_tool_use`."""

    async def preview_request(arguments: Mapping[str, Any]) -> Sequence[PreviewField]:
        fields = [PreviewField(name, None, value) for name, value in arguments.get("fields", {}).items()]
        if arguments.get("details"):
            fields.append(PreviewField("details", None, arguments["details"]))
        return fields

    @tool(summary="{summary}", preview=preview_request, idempotent=True, group="requests")
    async def request_approval(summary: Summary, details: Details = "", fields: Fields | None = None) -> None:
        """Ask people to approve what a script is about to do.

        Args:
            summary: what will be done, in one line
            details: more of it, as long as it must be
            fields: single facts, by name

        """

    async def preview_input(arguments: Mapping[str, Any]) -> Sequence[PreviewField]:
        fields = [
            PreviewField(name, None, as_text(value, indent=2)) for name, value in arguments["input"].items()
        ]
        if arguments.get("summary"):
            # the agent's own words are the heading then, so the tool's name must be below it
            fields.insert(0, PreviewField("tool", None, arguments["tool_name"]))
        return fields

    @tool(
        summary=_write_heading,
        preview=preview_input,
        idempotent=True,
        group="requests",
    )
    async def permit_tool_use(
        tool_name: Name,
        input: Input,  # noqa: A002 - as coding agents call it
        tool_use_id: Name | None = None,
        summary: Summary | None = None,
    ) -> None:
        """Ask people whether another agent may use one of its own tools.

        Args:
            tool_name: the agent's own name for the tool
            input: what it wants to give the tool
            tool_use_id: the agent's own id of the use
            summary: what that will do, in one line

        """

    without_run: dict[str, Any] = {"offered": False, "kind": kinds.REQUEST, "run": None}
    request_tool = replace(request_approval, conclude=_conclude_request, **without_run)
    permission_tool = replace(permit_tool_use, conclude=_conclude_permission, **without_run)
    return FixedToolset("requests", (request_tool, permission_tool))


def _conclude_request(_: Arguments) -> ToolOutput:
    """Return the result of an approved request, in place of a run."""
    return ToolOutput("approved")


def _conclude_permission(arguments: Arguments) -> ToolOutput:
    """Return the answer to an approved permission, in the form that coding agents read."""
    return ToolOutput({"behavior": "allow", "updatedInput": arguments["input"]})


def _write_heading(arguments: Mapping[str, Any]) -> str:
    """Return the agent's own summary of a use of its tool; without one, the tool and its input in words."""
    if arguments.get("summary"):
        return str(arguments["summary"])
    values = ", ".join(as_text(value) for value in arguments["input"].values())
    return f"{arguments['tool_name']}: {values}".removesuffix(": ")
