"""The tools of requests that scripts and other agents make to people. No model is offered them.

They have no run: their approval is the end, and the requester acts on it. Requests come in over HTTP
(``routes.py``) and MCP.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from bot.domain import kinds
from bot.domain.proposals import PreviewField
from bot.domain.text import as_text
from bot.tools.signature import SEEN, Storable
from bot.tools.tool import Arguments, FixedToolset, ToolOutput, tool

REQUEST = "request_approval"
PERMISSION = "permit_tool_use"

Summary = Annotated[
    Storable, StringConstraints(strip_whitespace=True), Field(min_length=1, max_length=300), SEEN
]
Details = Annotated[Storable, Field(max_length=20_000)]
Name = Annotated[Storable, Field(min_length=1, max_length=200)]
Fields = Annotated[dict[Name, Details], Field(max_length=50)]
Input = Annotated[dict[str, Any], Field(max_length=100)]  # each field is a line of the card


def request_tools() -> FixedToolset:
    """Return the tools `request_approval` and `permit_tool_use`."""

    async def asked(arguments: Mapping[str, Any]) -> Sequence[PreviewField]:
        fields = [PreviewField(name, None, value) for name, value in arguments.get("fields", {}).items()]
        details = arguments.get("details")
        return [*fields, *([PreviewField("details", None, details)] if details else [])]

    @tool(summary="{summary}", preview=asked, idempotent=True, group="requests")
    async def request_approval(summary: Summary, details: Details = "", fields: Fields | None = None) -> None:
        """Ask people to approve what a script is about to do.

        Args:
            summary: what will be done, in one line
            details: more of it, as long as it must be
            fields: single facts, by name

        """

    async def given(arguments: Mapping[str, Any]) -> Sequence[PreviewField]:
        # the agent's own words head the card, so the tool's name must be below them
        if arguments.get("summary"):
            named = [PreviewField("tool", None, arguments["tool_name"])]
        else:
            named = []
        values = arguments["input"].items()
        return [*named, *(PreviewField(name, None, as_text(value, indent=2)) for name, value in values)]

    @tool(
        summary=_write_heading,
        preview=given,
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
    asking = replace(request_approval, conclude=_approve, **without_run)
    permitting = replace(permit_tool_use, conclude=_permit, **without_run)
    return FixedToolset("requests", (asking, permitting))


def _approve(_: Arguments) -> ToolOutput:
    return ToolOutput("approved")


def _permit(arguments: Arguments) -> ToolOutput:
    return ToolOutput({"behavior": "allow", "updatedInput": arguments["input"]})


def _write_heading(arguments: Mapping[str, Any]) -> str:
    inputs = ", ".join(as_text(value) for value in arguments["input"].values())
    return str(arguments.get("summary") or f"{arguments['tool_name']}: {inputs}".removesuffix(": "))
