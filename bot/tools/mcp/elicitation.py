"""Questions of an MCP server ("elicitation"): in the middle of a call it may ask the person who wanted it.

The port is `Ask`: a channel that can show a form answers a `Question` with an `Elicited`; `decline` is the
answer where none can. A question is no approval: it comes up inside a call that was let through already.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bot.errors import BadArguments
from bot.tools.mcp.schemas import Arguments


class Action(StrEnum):
    ACCEPT = "accept"  # the person filled it in, or went to the address
    DECLINE = "decline"  # the person said no
    CANCEL = "cancel"  # no one answered


@dataclass(frozen=True, slots=True)
class Question:
    """What a server wants to know, and from whom. Show ``server`` with ``message``: the words are its own.

    ``schema`` is a flat JSON schema of the fields (texts, numbers, choices); empty where ``url`` is set,
    which the person is to open instead.
    """

    server: str
    message: str
    conversation_id: str
    requested_by: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None

    def problems(self, content: Mapping[str, Any]) -> dict[str, str]:
        """What is wrong with a filled-in form, by field; empty when it fits. Blocks: call it in a thread."""
        try:
            Arguments(self.schema or {"type": "object"}).check(dict(content))
        except BadArguments as error:
            return error.fields
        except ValueError as error:
            return {"schema": str(error)}
        return {}


@dataclass(frozen=True, slots=True)
class Elicited:
    """The person's answer; ``content`` only with ACCEPT, fitting the question's schema."""

    action: Action
    content: Mapping[str, Any] = field(default_factory=dict)


Ask = Callable[[Question], Awaitable[Elicited]]
"""Ask the person and wait for the answer. May raise: the server is told that no one answered."""


async def decline(_: Question) -> Elicited:
    """Say no, politely, where no channel can ask."""
    return Elicited(Action.DECLINE)
