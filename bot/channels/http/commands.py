"""Slash commands over HTTP: the same words as in every chat."""

from typing import Annotated

from pydantic import Field
from starlette.responses import JSONResponse

from bot.channels.http.body import Body
from bot.channels.http.channel import NAME, key_of
from bot.channels.http.errors import problem
from bot.channels.http.site import Caller, Here, api_routes, ok
from bot.channels.http.wire import SaidBody
from bot.domain.chat import Address, Answer, Command

router = api_routes("rules", prefix="/api")

COMMAND_STATUS = {Answer.REFUSED: 403, Answer.INVALID: 422}


class Spoken(Body):
    """``name`` is ``nod`` or ``approvals``; ``text`` what follows it, such as ``policy test …``."""

    name: Annotated[str, Field(max_length=40)]
    text: Annotated[str, Field(max_length=4000)] = ""
    conversation_id: Annotated[str, Field(max_length=64)] = ""


@router.post(
    "/commands",
    summary="A slash command, such as /approvals list; the answer is for you alone",
    response_model=SaidBody,
)
async def command(body: Spoken, actor: Caller, site: Here) -> JSONResponse:
    address = Address(NAME, key_of(actor, body.conversation_id or "console"))
    reply = await site.take_in(Command(actor, body.name, body.text, address))
    if reply.answer in COMMAND_STATUS:
        return problem(COMMAND_STATUS[reply.answer], reply.text)
    return ok(text=reply.text)
