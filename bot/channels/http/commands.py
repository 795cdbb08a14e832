"""Slash commands over HTTP: the same words as in every chat."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from bot.channels.http.channel import NAME, key_of
from bot.channels.http.errors import problem
from bot.channels.http.site import Caller, Here, ok
from bot.domain.chat import Address, Answer, Command

router = APIRouter(prefix="/api")

_STATUS = {Answer.REFUSED: 403, Answer.INVALID: 422}


class Spoken(BaseModel):
    """``name`` is ``nod`` or ``approvals``; ``text`` what follows it, such as ``policy test …``."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=40)]
    text: Annotated[str, Field(max_length=4000)] = ""
    conversation_id: Annotated[str, Field(max_length=64)] = ""


@router.post("/commands", summary="A slash command, such as /approvals list; the answer is for you alone")
async def command(body: Spoken, actor: Caller, site: Here) -> JSONResponse:
    address = Address(NAME, key_of(actor, body.conversation_id or "console"))
    reply = await site.take_in(Command(actor, body.name, body.text, address))
    if reply.answer in _STATUS:
        return problem(_STATUS[reply.answer], reply.text)
    return ok(text=reply.text)
