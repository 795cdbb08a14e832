"""People: which accounts are one person, their roles, and separating an account again."""

from typing import Annotated

from fastapi import Query

from bot.web.answers import existing
from bot.web.rules import say_for_person
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
    away = next((p for p in found if p.away and str(p.away.who) == account), None)
    whose = existing(away, "That account is not away.")
    return await say_for_person(site, actor, "back" if whose.you else f"back {account}", "nod")


@router.delete("/people/links", summary="Separate a linked account again")
async def unlink(
    account: Annotated[str, Query(max_length=200, description="such as slack:T1/U7")],
    actor: Caller,
    site: Here,
) -> SaidBody:
    """One of yours; for admins anyone's. Grants that this person gave end with it."""
    _, found = await site.channel.admin.people(actor)
    linked = (p for p in found if len(p.accounts) > 1 and any(a.account == account for a in p.accounts))
    whose = existing(next(linked, None), "That account is not linked with another one.")
    return await say_for_person(site, actor, f"unlink {account}", "nod" if whose.you else "approvals")
