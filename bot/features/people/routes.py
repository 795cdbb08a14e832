"""People: which accounts are one person, their roles, and separating an account again."""

from typing import Annotated

from fastapi import Query

from bot.features.feature import Over
from bot.features.people import rows
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
    parts: Over,
) -> SaidBody:
    """Yours; for admins anyone's. Who stood in for them decides for them no longer."""
    found = await parts.database.read(rows.is_own_absence, parts.policies, actor, account)
    own = existing(found, "That account is not away.")
    return await say_for_person(site, actor, "back" if own else f"back {account}", "nod")


@router.delete("/people/links", summary="Separate a linked account again")
async def unlink(
    account: Annotated[str, Query(max_length=200, description="such as slack:T1/U7")],
    actor: Caller,
    site: Here,
    parts: Over,
) -> SaidBody:
    """One of yours; for admins anyone's. Grants that this person gave end with it."""
    found = await parts.database.read(rows.is_own_link, parts.policies, actor, account)
    own = existing(found, "That account is not linked with another one.")
    return await say_for_person(site, actor, f"unlink {account}", "nod" if own else "approvals")
