"""People: which accounts are one person, their roles, and separating an account again."""

from typing import Annotated

from fastapi import Query

from bot.approvals.accounts import linking
from bot.features.feature import PartsDep
from bot.features.people import absences
from bot.web.answers import require_or_404
from bot.web.schemas import SaidBody
from bot.web.schemas.rules import AwayView, People
from bot.web.site import Caller, SiteDep, api_routes

router = api_routes("people", prefix="/api")


@router.get("/people", summary="Who is who: linked accounts and roles")
async def known(actor: Caller, site: SiteDep) -> People:
    """You; for admins (``everyone``) all who have linked accounts or a role. You are the first."""
    everyone, found = await site.channel.admin.people(actor)
    return People.of(everyone=everyone, people=found)


class AbsencesEndedBody(SaidBody):
    """``ended``: the absences that have ended, each as it was."""

    ended: list[AwayView]


@router.delete("/people/absences", summary="Someone is back before their time")
async def back(
    account: Annotated[str, Query(max_length=200, description="who is away, such as slack:T1/U7")],
    actor: Caller,
    parts: PartsDep,
) -> AbsencesEndedBody:
    """Yours; for admins anyone's. Who stood in for them decides for them no longer."""
    done = await parts.database.write(absences.end_for, parts.policies, account, actor, parts.clock())
    ended, jobs = require_or_404(done, "That account is not away.")
    await parts.wake(*jobs)
    return AbsencesEndedBody.of(ended=ended, text=absences.ended_text(ended))


class UnlinkedBody(SaidBody):
    """``grants_ended``: how many grants of that person ended with the link."""

    account: str
    grants_ended: int


@router.delete("/people/links", summary="Separate a linked account again")
async def unlink(
    account: Annotated[str, Query(max_length=200, description="such as slack:T1/U7")],
    actor: Caller,
    parts: PartsDep,
) -> UnlinkedBody:
    """One of yours; for admins anyone's. Grants that this person gave end with it."""
    done = await parts.database.write(linking.unlink, parts.policies, account, actor, parts.clock())
    parted = require_or_404(done, "That account is not linked with another one.")
    await parts.wake(*parted.jobs)
    ended = parted.grants_ended
    return UnlinkedBody(account=account, grants_ended=ended, text=linking.describe_unlinking(account, ended))
