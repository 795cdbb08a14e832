"""Insights: the cost of asking people for approval, rules that would save approvals, and unusual calls.

`INSIGHTS` names the feature's parts. NOD_INSIGHTS turns them on. Its value ``people`` also allows notes on
how people read their cards (`reading_notes.py`); with any other value such notes are deleted.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from sqlmodel import Session

from bot.approvals.commands.subcommands import CommandSet
from bot.domain.active import ActiveLine
from bot.domain.hooks import Hooks
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.insights import reading_notes, routes, suggestions, unusual
from bot.features.insights.commands import InsightCommands
from bot.features.insights.reading_signs import BY_PEOPLE
from bot.features.insights.suggestions import make_suggestion_toolset
from bot.features.insights.sweep import SECONDS, SuggestionSweep
from bot.jobs.scheduler import Sweep

_INSIGHTS_TEXT = "what asking costs, suggested rules, what is unusual on cards"


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    forget_sweep = Sweep("forget_reading", reading_notes.NOTES_PURGE_SECONDS, _make_forget_function(parts))
    if not parts.settings.insights:
        return (forget_sweep,)
    suggestions_sweep = SuggestionSweep(parts.database, parts.policies, parts.registry, parts.redraw)
    return (forget_sweep, Sweep("suggest_rules", SECONDS, suggestions_sweep.run))


def _make_forget_function(parts: FeatureParts) -> Callable[[datetime], Awaitable[None]]:
    """Return the function that deletes old notes; if no notes are allowed, it deletes notes of any age."""
    retention = reading_notes.RETENTION if parts.settings.insights == BY_PEOPLE else timedelta(0)

    async def forget(now: datetime) -> None:
        await parts.database.write(reading_notes.purge_notes, now - retention)

    return forget


def _make_hooks(parts: FeatureParts) -> Hooks:
    digest_hooks = (suggestions.tell_suggestion,)
    if not parts.settings.insights:
        return Hooks(send_digest=digest_hooks)
    has_notes = parts.settings.insights == BY_PEOPLE
    hooks = Hooks(
        send_digest=digest_hooks,
        annotate_card=(unusual.annotate_unusual,),
        list_active=(partial(_list_active, has_notes=has_notes),),
    )
    if not has_notes:
        return hooks
    notes = reading_notes.ReadingNotes(parts.clock)
    reading_hooks = Hooks(
        note_copy=(notes.note_copy,), note_opened=(notes.note_opened,), note_decision=(notes.note_decision,)
    )
    return Hooks.join([hooks, reading_hooks])


def _list_active(_: Session, __: datetime, *, has_notes: bool) -> Sequence[ActiveLine]:
    text = f"{_INSIGHTS_TEXT}, how people decide" if has_notes else _INSIGHTS_TEXT
    return (ActiveLine("Insights", text, "NOD_INSIGHTS"),)


INSIGHTS = Feature(
    name="insights",
    api=(routes.router,),
    tags={"insights": "What asking costs."},
    is_on=lambda settings: bool(settings.insights),
    make_toolsets=lambda parts: (make_suggestion_toolset(parts.database, parts.policies, parts.clock),),
    make_commands=lambda settings, parts: CommandSet(approvals=InsightCommands(settings, parts).words),
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
)
