"""What the agent's work cost: turns, model calls and tokens."""

from datetime import timedelta
from typing import Annotated

from fastapi import Query
from starlette.responses import JSONResponse

from bot.channels.http.pages import Since
from bot.channels.http.site import Caller, Here, api_routes, ok
from bot.channels.http.wire import Usages
from bot.domain.usage import Parts, Used

router = api_routes("status", prefix="/api")

_MONTH = timedelta(days=30)


@router.get("/usage", summary="Turns, model calls and tokens, by day or otherwise", response_model=Usages)
async def used(
    actor: Caller,
    site: Here,
    by: Parts = Parts.DAY,
    since: Annotated[Since | None, Query(description="30 days ago by default; UTC unless it says")] = None,
) -> JSONResponse:
    """Of your own conversations; for admins of everyone's (``everyone``). At most 1,000 ``parts``."""
    begin = since or site.channel.clock() - _MONTH
    everyone, parts = await site.channel.admin.usage(actor, by, begin)
    names = Used._fields[2:]
    total = {name: sum(getattr(part, name) for part in parts) for name in names}
    return ok(
        since=begin.isoformat(), everyone=everyone, total=total, parts=[part._asdict() for part in parts]
    )
