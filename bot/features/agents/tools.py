"""The tool `allow_agent`: a person's consent that an agent, which is a program, calls tools in their name.

The kernel opens a proposal to call this tool in two cases: someone makes a token for an agent of another
person, or an agent gets tools at further servers. Only the person of the agent sees the card and decides it.
No model is offered the tool. Its run confirms the token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from bot.approvals.agent_tokens import ALLOW
from bot.domain import kinds
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.errors import ToolError
from bot.store import tokens
from bot.store.database import Database
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.tools.signature import Storable
from bot.tools.toolset import FixedToolset

GROUP = "agents"
_GONE_TEXT = "This token has ended, or it is not for you. Nothing was allowed."
_MAX_NAMED = 40  # the most names of tools on a card

Name = Annotated[Storable, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=500)]


def make_agent_toolset(database: Database, clock: Clock) -> FixedToolset:
    """Return a toolset with only the tool `allow_agent`."""

    async def preview_consent(arguments: Mapping[str, Any]) -> Sequence[PreviewField]:
        fields = [
            PreviewField("token", None, arguments["label"]),
            PreviewField("made by", None, arguments["made_by"]),
            PreviewField("may call", None, ", ".join(arguments["patterns"])),
            PreviewField("that is now", None, _list_names(arguments["tools"])),
        ]
        if arguments.get("servers"):
            fields.append(PreviewField("acts as you at", None, ", ".join(arguments["servers"])))
        fields.append(PreviewField("until", None, arguments.get("until") or "it is ended"))
        return fields

    @tool(
        summary="Let the program {agent} call tools for you",
        preview=preview_consent,
        idempotent=True,
        group=GROUP,
        touches="token {label}",
        open_world=False,
    )
    async def allow_agent(
        label: Name,
        agent: Name,  # noqa: ARG001 - people read it
        patterns: Names,
        tools: Names,  # noqa: ARG001 - people read it
        made_by: Name,  # noqa: ARG001 - people read it
        context: CallContext,
        servers: Names | None = None,
        until: Name | None = None,  # noqa: ARG001 - people read it
    ) -> str:
        """Let a program call tools for the person who says yes.

        Args:
            label: the label of its token
            agent: the program's name
            patterns: patterns of the names of the tools that it may call
            tools: the tools that these are now
            made_by: who made the token
            servers: where it acts as that person
            until: the end of the token

        """
        person = Actor.parse(context.requested_by)
        token = await database.write(tokens.confirm_agent, label, person, servers or [], clock())
        if token is None or list(token.tools) != patterns:
            raise ToolError(_GONE_TEXT)
        return f"{token.name} may call tools for you. What it would change still asks."

    consent_tool = replace(allow_agent, offered=False, kind=kinds.AGENT)  # ``offered``: to models
    if consent_tool.name != ALLOW:
        raise TypeError("the tool has another name than the kernel asks for")
    return FixedToolset(GROUP, (consent_tool,))


def _list_names(names: Sequence[str]) -> str:
    """Return the first names for a card, and the number of the others."""
    if not names:
        return "none yet"
    others = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + others
