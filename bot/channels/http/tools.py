"""The tools there are right now."""

from starlette.responses import JSONResponse

from bot.channels.http.site import Caller, Here, api_routes, ok
from bot.channels.http.wire import Tools

router = api_routes("status", prefix="/api")


@router.get("/tools", summary="The tools there are right now", response_model=Tools)
async def listed(_: Caller, site: Here) -> JSONResponse:
    """``offered`` False: no model is told of it, only a person or a script may ask for it."""
    found = sorted(await site.channel.registry.shelf(), key=lambda tool: (tool.group, tool.name))
    return ok(
        tools=[
            {
                "name": tool.name,
                "group": tool.group,
                "description": tool.description,
                "risk": tool.harm,
                "offered": tool.offered,
                "parameters": tool.form,
            }
            for tool in found
        ]
    )
