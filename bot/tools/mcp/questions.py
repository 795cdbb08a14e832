"""The questions of MCP servers, each asked of the person behind the call in which the server asks."""

import asyncio
from urllib.parse import urlsplit

from mcp import types

from bot.telemetry.logs import logger
from bot.tools.call import CallContext
from bot.tools.mcp.interface import Action, AskPerson, Question

log = logger(__name__)

_MAX_QUESTION_CHARS = 2000  # a server's question to a person


async def answer_question(
    server: str,
    ask: AskPerson,
    answer_seconds: float,
    call: CallContext | None,
    params: types.ElicitRequestParams,
) -> types.ElicitResult:
    """Ask the person behind ``call`` a server's question, and return the answer.

    They have ``answer_seconds``. The question is declined without asking if ``call`` is None, since it is not
    known whom to ask then. It is also declined if it names an address that is no web page.
    """
    url = params.url if isinstance(params, types.ElicitRequestURLParams) else None
    if call is None or (url is not None and urlsplit(url).scheme not in ("http", "https")):
        return types.ElicitResult(action="decline")
    question = Question(
        server=server,
        message=params.message[:_MAX_QUESTION_CHARS],
        conversation_id=call.conversation_id,
        requested_by=call.requested_by,
        schema={} if isinstance(params, types.ElicitRequestURLParams) else params.requested_schema,
        url=url,
        agent=call.agent,
    )
    try:
        answer = await asyncio.wait_for(ask(question), answer_seconds)
    except Exception as error:  # noqa: BLE001 - a channel's own code; the server is told no one answered
        log.warning("a server's question found no answer", server=server, why=type(error).__name__)
        return types.ElicitResult(action="cancel")
    if answer.action is not Action.ACCEPT:
        return types.ElicitResult(action="decline" if answer.action is Action.DECLINE else "cancel")
    faults = await asyncio.to_thread(question.find_faults, answer.content)
    if faults:
        log.warning("an answer does not fit a server's question", server=server, fields=list(faults))
        return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content=None if url else dict(answer.content))
