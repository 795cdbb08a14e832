"""Routes of schedules: what comes back by itself. The changes are those of ``/nod schedules``."""

from typing import Annotated, Literal

from fastapi import Path

from bot.domain.chat import Answer
from bot.web.answers import Missing
from bot.web.body import Body
from bot.web.rules import say
from bot.web.schemas import SaidBody
from bot.web.schemas.schedules import SchedulesBody
from bot.web.site import Caller, Here, api_routes

router = api_routes("schedules", prefix="/api")

Ident = Annotated[str, Path(pattern=r"^[0-9a-f]{8,16}$")]


@router.get("/schedules", summary="What comes back by itself")
async def listed(actor: Caller, site: Here) -> SchedulesBody:
    """Yours; for admins (``everyone``) all, at most 200. What is due next comes first."""
    everyone, found = await site.channel.admin.schedules(actor)
    return SchedulesBody.of(everyone=everyone, schedules=found)


class Doing(Body):
    """``run``: as soon as may be, in addition to its times."""

    do: Literal["pause", "resume", "run"]


@router.post("/schedules/{ident}", summary="Pause a schedule, resume it, or run it now")
async def change(ident: Ident, body: Doing, actor: Caller, site: Here) -> SaidBody:
    """Yours; for admins anyone's. 404 where there is no such schedule for you."""
    return await _do(site, actor, f"{body.do} {ident}")


@router.delete("/schedules/{ident}", summary="Delete a schedule")
async def delete(ident: Ident, actor: Caller, site: Here) -> SaidBody:
    """As above. What was allowed for its runs ends with it."""
    return await _do(site, actor, f"delete {ident}")


async def _do(site: Here, actor: Caller, words: str) -> SaidBody:
    reply = await say(site, actor, f"schedules {words}", "nod")
    if reply.answer is Answer.UNKNOWN:
        raise Missing(reply.text)
    return SaidBody(text=reply.text)
