"""The routes of remembered facts: list those that the caller may see, change their words, forget them."""

from typing import Annotated

from fastapi import Path
from pydantic import Field

from bot.errors import ToolError
from bot.features.feature import PartsDep
from bot.features.memory import access
from bot.features.memory.facts import MAX_FACT_CHARS, About
from bot.web.answers import HttpError, require_or_404
from bot.web.body import Body
from bot.web.schemas import DoneBody, SaidBody, Time, View
from bot.web.site import Caller, make_router

router = make_router("memory", prefix="/api")

Number = Annotated[int, Path(ge=1, lt=10**9)]


class FactView(View):
    """A fact.

    ``about`` says if it is about a person, a place or a team, and ``whose`` has the name, or "you".
    ``asked_by``: the account that had it remembered. ``oldest``: little room is left for facts about the same
    subject, and this one is the oldest; forget it first.
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
    fact: Annotated[str, Field(min_length=1, max_length=MAX_FACT_CHARS)]


@router.get("/memory", summary="What Nod remembers")
async def listed(actor: Caller, parts: PartsDep) -> Facts:
    """Return the facts about you, about your teams, and about the chats in which you wrote.

    No one else sees those about you. Admins get the facts about all chats and teams as well.
    """
    facts = await parts.database.read(access.list_visible, parts.policies, actor, parts.clock())
    return Facts.of(facts=facts)


class FactChangedBody(SaidBody):
    """``fact``: the words of the fact as they are now, on one line; of a forgotten fact, as they were."""

    id: int
    fact: str


@router.patch("/memory/{number}", summary="Put other words in the place of a fact")
async def edit(number: Number, body: FactBody, actor: Caller, parts: PartsDep) -> FactChangedBody:
    try:
        fact = await parts.database.write(
            access.change_fact, parts.policies, actor, number, body.fact, parts.clock()
        )
    except (ValueError, ToolError) as error:
        raise HttpError(422, str(error)) from None
    fact = require_or_404(fact, access.no_such_fact_text(number))
    return FactChangedBody(id=number, fact=fact, text=f"Remembered: {fact}")


@router.delete("/memory/{number}", summary="Forget a fact")
async def forget(number: Number, actor: Caller, parts: PartsDep) -> FactChangedBody:
    forgotten = await parts.database.write(access.forget_fact, parts.policies, actor, number, parts.clock())
    fact = require_or_404(forgotten, access.no_such_fact_text(number))
    return FactChangedBody(id=number, fact=fact, text=f"Forgotten: {fact}")
