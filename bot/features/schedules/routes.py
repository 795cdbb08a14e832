"""The routes of schedules, which are tasks that the agent does at set times: list, change and delete them."""

from typing import Annotated, Literal

from fastapi import Path
from pydantic import AliasPath, BeforeValidator, Field
from sqlmodel import Session

from bot.approvals import rights
from bot.domain.people import Actor
from bot.domain.redaction import redact_text
from bot.features.feature import PartsDep, RouteParts
from bot.features.schedules import runs
from bot.features.schedules.runs import ScheduleAction
from bot.features.schedules.schedule import Schedule, ScheduleState
from bot.web.answers import require_or_404
from bot.web.body import Body
from bot.web.schemas import DoneBody, SaidBody, Time, View
from bot.web.site import Caller, make_router

router = make_router("schedules", prefix="/api")

Ident = Annotated[str, Path(pattern=r"^[0-9a-f]{8,16}$")]


class ScheduleView(View):
    """A schedule. ``id``: the id of the proposal that made it.

    ``words``: its times in words. ``person``: the person in whose name it runs. ``due_at`` and ``next``: its
    next run, as a time and in words; null and empty without a next run. ``last_at``: its last run. ``runs``:
    the number of its runs so far. ``why``: the reason why Nod ended it; empty unless Nod did.
    """

    id: str
    task: Annotated[str, BeforeValidator(redact_text)]
    words: Annotated[str, Field(validation_alias="times_text")]
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
    """Return your schedules; to admins (``everyone``) all. At most 200, and those due next come first."""

    def read_visible(session: Session) -> tuple[bool, list[Schedule]]:
        everyone = rights.is_global_admin(session, parts.policies, actor)
        return everyone, runs.list_visible(session, parts.policies, actor)

    everyone, visible = await parts.database.read(read_visible)
    return SchedulesBody.of(everyone=everyone, schedules=visible)


class Doing(Body):
    """``do``: with ``run``, the schedule runs as soon as possible, in addition to its times."""

    do: Literal["pause", "resume", "run"]


class ScheduleChangedBody(SaidBody):
    """``schedule``: the schedule as it is now. ``changed``: false if it was like that already."""

    changed: bool
    schedule: ScheduleView


@router.post("/schedules/{ident}", summary="Pause a schedule, resume it, or run it now")
async def change(ident: Ident, body: Doing, actor: Caller, parts: PartsDep) -> ScheduleChangedBody:
    """Change a schedule of yours; admins change anyone's. 404 if you have no such schedule."""
    return await _change(parts, actor, ident, ScheduleAction(body.do))


@router.delete("/schedules/{ident}", summary="Delete a schedule")
async def delete(ident: Ident, actor: Caller, parts: PartsDep) -> ScheduleChangedBody:
    """Delete a schedule of yours; admins delete anyone's. The grants for its runs end with it."""
    return await _change(parts, actor, ident, ScheduleAction.DELETE)


async def _change(parts: RouteParts, actor: Actor, ident: str, action: ScheduleAction) -> ScheduleChangedBody:
    result = await parts.database.write(
        runs.apply_action, parts.policies, ident, action, actor, parts.clock()
    )
    return ScheduleChangedBody.model_validate(require_or_404(result, runs.no_schedule_text(ident)))
