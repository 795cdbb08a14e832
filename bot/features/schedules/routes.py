"""Routes of schedules: what comes back by itself."""

from typing import Annotated, Literal

from fastapi import Path
from pydantic import AliasPath, BeforeValidator, Field
from sqlmodel import Session

from bot.approvals import rights
from bot.domain.people import Actor
from bot.domain.redaction import redact_text
from bot.features.feature import PartsDep
from bot.features.schedules import runs
from bot.features.schedules.runs import ScheduleAction
from bot.features.schedules.schedule import Schedule, ScheduleState
from bot.web.answers import require_or_404
from bot.web.body import Body
from bot.web.schemas import DoneBody, SaidBody, Time, View
from bot.web.site import Caller, api_routes

router = api_routes("schedules", prefix="/api")

Ident = Annotated[str, Path(pattern=r"^[0-9a-f]{8,16}$")]


class ScheduleView(View):
    """``id`` is that of the proposal that made it. ``words``: when it runs; ``person``: in whose name.

    ``due_at`` and ``next``: when it runs next, null and empty where it has no more times.
    ``why``: why Nod ended it.
    """

    id: str
    task: Annotated[str, BeforeValidator(redact_text)]
    words: str
    person: Annotated[str, Field(validation_alias=AliasPath("person", "label"))]
    conversation_id: str
    state: ScheduleState
    due_at: Time | None
    next: str
    last_at: Time | None
    runs: int
    why: str


class SchedulesBody(DoneBody):
    everyone: bool
    schedules: list[ScheduleView]


@router.get("/schedules", summary="List schedules")
async def listed(actor: Caller, parts: PartsDep) -> SchedulesBody:
    """Yours; for admins (``everyone``) all, at most 200. What is due next comes first."""

    def read(session: Session) -> tuple[bool, list[Schedule]]:
        everyone = rights.is_global_admin(session, parts.policies, actor)
        return everyone, runs.list_visible(session, parts.policies, actor)

    everyone, found = await parts.database.read(read)
    return SchedulesBody.of(everyone=everyone, schedules=found)


class Doing(Body):
    """``run``: as soon as may be, in addition to its times."""

    do: Literal["pause", "resume", "run"]


class ScheduleChangedBody(SaidBody):
    """``schedule`` is as it is now. ``changed``: false where it was so already."""

    changed: bool
    schedule: ScheduleView


@router.post("/schedules/{ident}", summary="Pause a schedule, resume it, or run it now")
async def change(ident: Ident, body: Doing, actor: Caller, parts: PartsDep) -> ScheduleChangedBody:
    """Yours; for admins anyone's. 404 where there is no such schedule for you."""
    return await _change(parts, actor, ident, ScheduleAction(body.do))


@router.delete("/schedules/{ident}", summary="Delete a schedule")
async def delete(ident: Ident, actor: Caller, parts: PartsDep) -> ScheduleChangedBody:
    """Yours; for admins anyone's. What was allowed for its runs ends with it."""
    return await _change(parts, actor, ident, ScheduleAction.DELETE)


async def _change(parts: PartsDep, actor: Actor, ident: str, action: ScheduleAction) -> ScheduleChangedBody:
    done = await parts.database.write(runs.apply_action, parts.policies, ident, action, actor, parts.clock())
    return ScheduleChangedBody.model_validate(require_or_404(done, runs.no_schedule_text(ident)))
