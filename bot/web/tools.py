"""The tools there are right now."""

from bot.web.schemas.status import Tools
from bot.web.site import Caller, Here, api_routes

router = api_routes("status", prefix="/api")


@router.get("/tools", summary="The tools there are right now")
async def listed(_: Caller, site: Here) -> Tools:
    """``offered`` False: no model is told of it, only a person or a script may ask for it."""
    shelf = await site.channel.registry.shelf()
    return Tools.of(tools=sorted(shelf, key=lambda tool: (tool.group, tool.name)))
