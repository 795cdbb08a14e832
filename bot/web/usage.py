"""What the agent's work cost: turns, model calls and tokens."""

from datetime import timedelta
from typing import Annotated

from fastapi import Query

from bot.domain.usage import Parts
from bot.web.pages import Since
from bot.web.schemas.status import Spent, Usages
from bot.web.site import Caller, Here, api_routes

router = api_routes("status", prefix="/api")

_MONTH = timedelta(days=30)


@router.get("/usage", summary="Turns, model calls and tokens, by day or otherwise")
async def used(
    actor: Caller,
    site: Here,
    by: Parts = Parts.DAY,
    since: Annotated[Since | None, Query(description="30 days ago by default; UTC unless it says")] = None,
) -> Usages:
    """Of your own conversations; for admins of everyone's (``everyone``). At most 1,000 ``parts``."""
    begin = since or site.channel.clock() - _MONTH
    everyone, parts = await site.channel.admin.usage(actor, by, begin)
    total = {name: sum(getattr(part, name) for part in parts) for name in Spent.model_fields}
    return Usages.of(since=begin, everyone=everyone, total=total, parts=parts)
