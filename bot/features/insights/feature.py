"""Insights: the cost of asking, the rules that would spare some of it, and what is unusual about a call."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from sqlmodel import Session

from bot.approvals.commands.words import CommandSet
from bot.domain.active import ActiveLine
from bot.domain.hooks import Hooks
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.insights import reading, routes, suggestions, unusual
from bot.features.insights.commands import InsightCommands
from bot.features.insights.reading import BY_PEOPLE
from bot.features.insights.suggestions import suggestion_tools
from bot.features.insights.sweep import SECONDS, SuggestionSweep
from bot.jobs.scheduler import Sweep

_COUNTED_TEXT = "what asking costs, suggested rules, what is unusual on cards"


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    forgetting = Sweep("forget_reading", reading.SECONDS, _make_forgetting(parts))
    if not parts.settings.insights:
        return (forgetting,)
    suggesting = SuggestionSweep(parts.database, parts.policies, parts.registry, parts.redraw)
    return (forgetting, Sweep("suggest_rules", SECONDS, suggesting.run))


def _make_forgetting(parts: FeatureParts) -> Callable[[datetime], Awaitable[None]]:
    """Return the sweep that forgets how people read: what is old, and all of it once that is turned off."""
    kept = reading.RETENTION if parts.settings.insights == BY_PEOPLE else timedelta()

    async def forget(now: datetime) -> None:
        await parts.database.write(reading.purge, now - kept)

    return forget


def _make_hooks(parts: FeatureParts) -> Hooks:
    telling = (suggestions.tell_suggestion,)
    if not parts.settings.insights:
        return Hooks(send_digest=telling)
    by_people = parts.settings.insights == BY_PEOPLE
    hooks = Hooks(
        send_digest=telling,
        annotate_card=(unusual.annotate_unusual,),
        list_active=(partial(_list_insights, by_people=by_people),),
    )
    if not by_people:
        return hooks
    notes = reading.ReadingNotes(parts.clock)
    noting = Hooks(
        note_copy=(notes.note_copy,), note_opened=(notes.note_opened,), note_decision=(notes.note_decision,)
    )
    return Hooks.join([hooks, noting])


def _list_insights(_: Session, __: datetime, *, by_people: bool) -> Sequence[ActiveLine]:
    words = f"{_COUNTED_TEXT}, how people decide" if by_people else _COUNTED_TEXT
    return (ActiveLine("Insights", words, "NOD_INSIGHTS"),)


INSIGHTS = Feature(
    name="insights",
    api=(routes.router,),
    tags={"insights": "What asking costs."},
    is_on=lambda settings: bool(settings.insights),
    make_toolsets=lambda parts: (suggestion_tools(parts.database, parts.policies, parts.clock),),
    make_commands=lambda settings, parts: CommandSet(approvals=InsightCommands(settings, parts).words),
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
)
