"""What a client answers when its MCP server asks in the middle of a call: what the person said, or no."""

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

from mcp import types
from mcp.client.session import ClientRequestContext, ElicitationFnT

from bot.telemetry.logs import logger
from bot.tools.mcp.elicitation import Action, Ask, Question
from bot.tools.tool import CallContext

log = logger(__name__)

_MOST = 2000  # characters of a server's question that a person is shown


def responder(
    server: str, ask: Ask, patience: float, asker: Callable[[], CallContext | None]
) -> ElicitationFnT:
    """What the client calls when ``server`` asks. ``patience`` is how long a person has, in seconds.

    ``asker`` tells for whose call it asks; where that cannot be known no one is bothered.
    """

    async def answer(
        context: ClientRequestContext,  # noqa: ARG001 - the SDK gives it by this name
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        call = asker()
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

    return answer
