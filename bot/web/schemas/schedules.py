"""Schedules."""

from typing import Annotated

from pydantic import AliasPath, BeforeValidator, Field

from bot.domain.redaction import redact_text
from bot.domain.schedules import ScheduleState
from bot.web.schemas import DoneBody, Time, View


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
