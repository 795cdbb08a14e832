"""The routes of people: the accounts and roles of persons, the end of an absence, and the end of a link."""

from typing import Annotated

from fastapi import Query

from bot.approvals.accounts import linking
from bot.features.feature import PartsDep
from bot.features.people import absences
from bot.web.answers import require_or_404
from bot.web.schemas import SaidBody
from bot.web.schemas.people import AwayView, People
from bot.web.site import Caller, SiteDep, make_router

router = make_router("people", prefix="/api")


@router.get("/people", summary="Who is who: linked accounts and roles")
async def known(actor: Caller, site: SiteDep) -> People:
    """Return yourself; to admins (``everyone``) all who have linked accounts or a role, yourself first."""
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
    """End your absence; admins end anyone's. The stand-in no longer decides for that person."""
    found = await parts.database.write(absences.end_if_allowed, parts.policies, account, actor, parts.clock())
    ended = require_or_404(found, "That account is not away.")
    await parts.wake(*ended.jobs)
    return AbsencesEndedBody.of(ended=ended.absences, text=absences.describe_ended(ended.absences))


class UnlinkedBody(SaidBody):
    """``grants_ended``: the number of grants of that person that ended with the link."""

    account: str
    grants_ended: int


@router.delete("/people/links", summary="Separate a linked account again")
async def unlink(
    account: Annotated[str, Query(max_length=200, description="such as slack:T1/U7")],
    actor: Caller,
    parts: PartsDep,
) -> UnlinkedBody:
    """Separate an account of yours; admins separate anyone's.

    The grants that the person gave end with the link.
    """
    found = await parts.database.write(
        linking.unlink_if_allowed, parts.policies, account, actor, parts.clock()
    )
    unlinking = require_or_404(found, "That account is not linked with another one.")
    await parts.wake(*unlinking.jobs)
    grants_ended = unlinking.grants_ended
    return UnlinkedBody(
        account=account, grants_ended=grants_ended, text=linking.describe_unlinking(account, grants_ended)
    )
