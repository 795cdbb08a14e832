"""Insights: the cost of asking, the rules that would spare some of it, and what is unusual about a call."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals.commands.words import CommandSet
from bot.domain.active import ActiveLine
from bot.domain.hooks import Hooks
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.insights import routes, suggestions, unusual
from bot.features.insights.commands import InsightCommands
from bot.features.insights.suggestions import suggestion_tools
from bot.features.insights.sweep import SECONDS, SuggestionSweep
from bot.jobs.scheduler import Sweep

_COUNTED_TEXT = "what asking costs, suggested rules, what is unusual on cards"


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    if not parts.settings.insights:
        return ()
    suggesting = SuggestionSweep(parts.database, parts.policies, parts.registry, parts.redraw)
    return (Sweep("suggest_rules", SECONDS, suggesting.run),)


def _make_hooks(parts: FeatureParts) -> Hooks:
    telling = (suggestions.tell_suggestion,)
    if not parts.settings.insights:
        return Hooks(send_digest=telling)
    return Hooks(
        send_digest=telling, annotate_card=(unusual.annotate_unusual,), list_active=(_list_insights,)
    )


def _list_insights(_: Session, __: datetime) -> Sequence[ActiveLine]:
    return (ActiveLine("Insights", _COUNTED_TEXT, "NOD_INSIGHTS"),)


INSIGHTS = Feature(
    name="insights",
    api=(routes.router,),
    tags={"insights": "What asking costs."},
    is_on=lambda settings: settings.insights,
    make_toolsets=lambda parts: (suggestion_tools(parts.database, parts.policies, parts.clock),),
    make_commands=lambda settings, parts: CommandSet(approvals=InsightCommands(settings, parts).words),
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
)
