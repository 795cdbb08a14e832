"""Grants: what is allowed without asking, seen and revoked."""

from typing import Annotated

from fastapi import Path

from bot.domain.chat import Answer
from bot.web.commands import say
from bot.web.errors import Missing
from bot.web.schemas.base import SaidBody
from bot.web.schemas.rules import Grants
from bot.web.site import Caller, Here, api_routes

router = api_routes("rules", prefix="/api")


@router.get("/grants", summary="What is allowed without asking")
async def live(actor: Caller, site: Here) -> Grants:
    """Those that you gave; for admins all."""
    return Grants.of(grants=await site.channel.admin.grants(actor))


@router.delete("/grants/{label}", summary="For admins: end a grant")
async def revoke(
    label: Annotated[str, Path(pattern=r"^G-[0-9]{1,9}$")], actor: Caller, site: Here
) -> SaidBody:
    """``label`` is as listed, such as ``G-7``. What ran by it stays; from now on such calls ask again."""
    reply = await say(site, actor, f"revoke {label}")
    if reply.answer is not Answer.ACCEPTED:
        raise Missing(reply.text)
    return SaidBody(text=reply.text)
