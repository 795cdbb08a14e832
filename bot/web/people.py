"""People: which accounts are one person, their roles, and separating an account again."""

from typing import Annotated

from fastapi import Query

from bot.web.answers import Missing
from bot.web.rules import say
from bot.web.schemas import SaidBody
from bot.web.schemas.rules import People
from bot.web.site import Caller, Here, api_routes

router = api_routes("people", prefix="/api")


@router.get("/people", summary="Who is who: linked accounts and roles")
async def known(actor: Caller, site: Here) -> People:
    """You; for admins (``everyone``) all who have linked accounts or a role. You are the first."""
    everyone, found = await site.channel.admin.people(actor)
    return People.of(everyone=everyone, people=found)


@router.delete("/people/absences", summary="Someone is back before their time")
async def back(
    account: Annotated[str, Query(max_length=200, description="who is away, such as slack:T1/U7")],
    actor: Caller,
    site: Here,
) -> SaidBody:
    """Yours; for admins anyone's. Who stood in for them decides for them no longer."""
    _, found = await site.channel.admin.people(actor)
    whose = next((p for p in found if p.away and str(p.away.who) == account), None)
    if whose is None:
        raise Missing("That account is not away.")
    reply = await say(site, actor, "back" if whose.you else f"back {account}", "nod")
    return SaidBody(text=reply.text)


@router.delete("/people/links", summary="Separate a linked account again")
async def unlink(
    account: Annotated[str, Query(max_length=200, description="such as slack:T1/U7")],
    actor: Caller,
    site: Here,
) -> SaidBody:
    """One of yours; for admins anyone's. Grants that this person gave end with it."""
    _, found = await site.channel.admin.people(actor)
    whose = next((p for p in found if any(each.account == account for each in p.accounts)), None)
    if whose is None or len(whose.accounts) == 1:
        raise Missing("That account is not linked with another one.")
    name = "nod" if whose.you else "approvals"
    reply = await say(site, actor, f"unlink {account}", name)
    return SaidBody(text=reply.text)
