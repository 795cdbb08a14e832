"""Grants: what is allowed without asking, seen and revoked."""

from typing import Annotated

from fastapi import Path
from starlette.responses import JSONResponse

from bot.channels.http.errors import problem
from bot.channels.http.rules import say
from bot.channels.http.site import Caller, Here, api_routes, ok
from bot.channels.http.views import grant_view
from bot.channels.http.wire import Grants, SaidBody
from bot.domain.chat import Answer

router = api_routes("rules", prefix="/api")


@router.get("/grants", summary="What is allowed without asking", response_model=Grants)
async def live(actor: Caller, site: Here) -> JSONResponse:
    """Those that you gave; for admins all."""
    return ok(grants=[grant_view(each) for each in await site.channel.admin.grants(actor)])


@router.delete("/grants/{label}", summary="For admins: end a grant", response_model=SaidBody)
async def revoke(
    label: Annotated[str, Path(pattern=r"^G-[0-9]{1,9}$")], actor: Caller, site: Here
) -> JSONResponse:
    """``label`` is as listed, such as ``G-7``. What ran by it stays; from now on such calls ask again."""
    reply = await say(site, actor, f"revoke {label}")
    if isinstance(reply, JSONResponse):
        return reply
    return ok(text=reply.text) if reply.answer is Answer.ACCEPTED else problem(404, reply.text)
