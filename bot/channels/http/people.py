"""People: which accounts are one person, their roles, and separating an account again."""

from typing import Annotated

from fastapi import Query
from starlette.responses import JSONResponse

from bot.channels.http.errors import problem
from bot.channels.http.rules import say
from bot.channels.http.site import Caller, Here, api_routes, ok
from bot.channels.http.wire import People, PersonView, SaidBody
from bot.lookup.people import KnownPerson

router = api_routes("people", prefix="/api")


@router.get("/people", summary="Who is who: linked accounts and roles", response_model=People)
async def known(actor: Caller, site: Here) -> JSONResponse:
    """You; for admins (``everyone``) all who have linked accounts or a role. You are the first."""
    everyone, found = await site.channel.admin.people(actor)
    return ok(everyone=everyone, people=[_view(each) for each in found])


@router.delete("/people/links", summary="Separate a linked account again", response_model=SaidBody)
async def unlink(
    account: Annotated[str, Query(max_length=200, description="such as slack:T1/U7")],
    actor: Caller,
    site: Here,
) -> JSONResponse:
    """One of yours; for admins anyone's. Grants that this person gave end with it."""
    _, found = await site.channel.admin.people(actor)
    whose = next((p for p in found if any(each.account == account for each in p.accounts)), None)
    if whose is None or len(whose.accounts) == 1:
        return problem(404, "That account is not linked with another one.")
    name = "nod" if whose.you else "approvals"
    reply = await say(site, actor, f"unlink {account}", name)
    return reply if isinstance(reply, JSONResponse) else ok(text=reply.text)


def _view(person: KnownPerson) -> PersonView:
    return {
        "id": person.id,
        "you": person.you,
        "accounts": [
            {
                "account": each.account,
                "name": each.name,
                "linked_at": each.linked_at.isoformat() if each.linked_at else None,
                "roles": [
                    {"role": held.role, "since": held.since.isoformat() if held.since else None}
                    for held in each.roles
                ],
            }
            for each in person.accounts
        ],
    }
