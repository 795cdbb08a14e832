"""Slash commands over HTTP: the same words as in every chat."""

from typing import Annotated

from pydantic import Field

from bot.domain.chat import Address, Answer, Command, Reply
from bot.domain.people import Actor
from bot.web.body import Body
from bot.web.channel import NAME, key_of
from bot.web.errors import Fault
from bot.web.schemas.base import SaidBody
from bot.web.site import Caller, Here, Site, api_routes

router = api_routes("rules", prefix="/api")

_STATUS = {Answer.REFUSED: 403, Answer.INVALID: 422}


class Spoken(Body):
    """``name`` is ``nod`` or ``approvals``; ``text`` what follows it, such as ``policy test …``."""

    name: Annotated[str, Field(max_length=40)]
    text: Annotated[str, Field(max_length=4000)] = ""
    conversation_id: Annotated[str, Field(max_length=64)] = ""


@router.post(
    "/commands",
    summary="A slash command, such as /approvals list; the answer is for you alone",
)
async def command(body: Spoken, actor: Caller, site: Here) -> SaidBody:
    reply = await say(site, actor, body.text, body.name, body.conversation_id or "console")
    return SaidBody(text=reply.text)


async def say(
    site: Site, actor: Actor, words: str, name: str = "approvals", conversation_id: str = "console"
) -> Reply:
    """Say the words after a slash command, an admin's by default. Raises Fault where they do not fit."""
    address = Address(NAME, key_of(actor, conversation_id))
    reply = await site.take_in(Command(actor, name, words, address))
    if reply.answer in _STATUS:
        raise Fault(_STATUS[reply.answer], reply.text)
    return reply
