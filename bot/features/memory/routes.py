"""Routes of what Nod remembers: what the caller may see of it, other words for it, and forgetting it."""

from typing import Annotated

from fastapi import Path
from pydantic import Field

from bot.errors import ToolError
from bot.features.feature import PartsDep
from bot.features.memory import access
from bot.features.memory.facts import LONGEST, About
from bot.web.answers import Fault, require_or_404
from bot.web.body import Body
from bot.web.schemas import DoneBody, SaidBody, Time, View
from bot.web.site import Caller, api_routes

router = api_routes("memory", prefix="/api")

Number = Annotated[int, Path(ge=1, lt=10**9)]


class FactView(View):
    """A fact: ``whose`` says by name for whom it is, ``asked_by`` is the account that had it remembered.

    ``oldest``: there is little room, and this one was said longest ago: forget it first.
    """

    id: int
    fact: str
    about: About
    whose: str
    asked_by: str
    asked_name: str
    said_at: Time
    until: Time | None
    may_change: bool
    oldest: bool


class Facts(DoneBody):
    facts: list[FactView]


class FactBody(Body):
    fact: Annotated[str, Field(min_length=1, max_length=LONGEST)]


@router.get("/memory", summary="What Nod remembers")
async def listed(actor: Caller, parts: PartsDep) -> Facts:
    """What is for you, which no one else sees, for your teams, and for chats in which you wrote.

    Admins see what is for all chats and teams.
    """
    found = await parts.database.read(access.list_visible, parts.policies, actor, parts.clock())
    return Facts.of(facts=found)


class FactChangedBody(SaidBody):
    """``fact``: its words as they are now, in one line; of one that is forgotten as they were."""

    id: int
    fact: str


@router.patch("/memory/{number}", summary="Put other words in the place of a fact")
async def edit(number: Number, body: FactBody, actor: Caller, parts: PartsDep) -> FactChangedBody:
    try:
        fact = await parts.database.write(
            access.change_fact, parts.policies, actor, number, body.fact, parts.clock()
        )
    except (ValueError, ToolError) as error:
        raise Fault(422, str(error)) from None
    fact = require_or_404(fact, access.not_yours_text(number))
    return FactChangedBody(id=number, fact=fact, text=f"Remembered: {fact}")


@router.delete("/memory/{number}", summary="Forget a fact")
async def forget(number: Number, actor: Caller, parts: PartsDep) -> FactChangedBody:
    forgotten = await parts.database.write(access.forget_fact, parts.policies, actor, number, parts.clock())
    fact = require_or_404(forgotten, access.not_yours_text(number))
    return FactChangedBody(id=number, fact=fact, text=f"Forgotten: {fact}")
