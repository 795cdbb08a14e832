"""Questions of an MCP server ("elicitation"): in the middle of a call it may ask the person who wanted it.

The port is `Ask`: a channel that can show a form answers a `Question` with an `Elicited`; `decline` is the
answer where none can. A question is no approval: it comes up inside a call that was let through already.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from mcp import types

from bot.errors import BadArguments
from bot.telemetry.logs import logger
from bot.tools.mcp.schemas import Arguments
from bot.tools.tool import CallContext


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


log = logger(__name__)

_MOST = 2000  # characters of a server's question that a person is shown


async def answered(
    server: str, ask: Ask, patience: float, call: CallContext | None, params: types.ElicitRequestParams
) -> types.ElicitResult:
    """What ``server`` is told where it asks within ``call``; a person has ``patience`` seconds.

    Where it can't be known for whose call it asks, no one is bothered.
    """
    url = params.url if isinstance(params, types.ElicitRequestURLParams) else None
    if call is None or (url is not None and urlsplit(url).scheme not in ("http", "https")):
        return types.ElicitResult(action="decline")
    question = Question(
        server=server,
        message=params.message[:_MOST],
        conversation_id=call.conversation_id,
        requested_by=call.requested_by,
        schema={} if isinstance(params, types.ElicitRequestURLParams) else params.requested_schema,
        url=url,
    )
    try:
        said = await asyncio.wait_for(ask(question), patience)
    except Exception as error:  # noqa: BLE001 - a channel's own code; the server is told no one answered
        log.warning("a server's question found no answer", server=server, why=type(error).__name__)
        return types.ElicitResult(action="cancel")
    if said.action is not Action.ACCEPT:
        return types.ElicitResult(action="decline" if said.action is Action.DECLINE else "cancel")
    if problems := await asyncio.to_thread(question.problems, said.content):
        log.warning("an answer does not fit a server's question", server=server, fields=list(problems))
        return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content=None if url else dict(said.content))
