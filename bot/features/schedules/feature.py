"""Schedules: tasks that the agent does at set times, in the name of the person who asked for them.

`SCHEDULES` names the feature's parts: the tools by which the agent asks for a schedule, the sweep that begins
due runs, and the hooks that limit what a run may spend.
"""

from collections.abc import Sequence

from bot.approvals.commands.subcommands import CommandSet
from bot.domain.hooks import Hooks
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.schedules import limits, routes, runs
from bot.features.schedules.commands import ScheduleCommands
from bot.features.schedules.sweep import CORRECTION_SECONDS, RUN_DUE_SECONDS, Schedules
from bot.features.schedules.tools import make_schedule_toolset
from bot.jobs.scheduler import Sweep
from bot.tools.toolset import FixedToolset


def _make_toolsets(parts: FeatureParts) -> Sequence[FixedToolset]:
    return (make_schedule_toolset(parts.database, parts.policies, parts.clock, parts.settings.max_schedules),)


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    schedules = Schedules(parts.database, parts.policies, parts.wake, parts.clock, parts.standing)
    return (
        Sweep("run_due", RUN_DUE_SECONDS, schedules.run_due),
        Sweep("put_right", CORRECTION_SECONDS, schedules.correct_due_times),
    )


def _make_hooks(parts: FeatureParts) -> Hooks:
    return Hooks(
        stop_model_call=(limits.TokenLimit(parts.database, parts.settings.schedule_tokens).check,),
        count_answer=(limits.count_tokens,),
        refuse_grant=(limits.refuse_grant,),
        forget_conversations=(runs.end_in_conversations,),
    )


SCHEDULES = Feature(
    name="schedules",
    api=(routes.router,),
    tags={"schedules": "Tasks that repeat at set times."},
    make_toolsets=_make_toolsets,
    make_commands=lambda _, parts: CommandSet(nod=ScheduleCommands(parts).words),
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
)
