"""Insights: the cost of asking, the rules that would spare some of it, and what is unusual about a call."""

from collections.abc import Sequence

from bot.approvals.commands.words import CommandSet
from bot.domain.hooks import Hooks
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.insights import routes, suggestions, unusual
from bot.features.insights.commands import InsightCommands
from bot.features.insights.suggestions import suggestion_tools
from bot.features.insights.sweep import SECONDS, SuggestionSweep
from bot.jobs.scheduler import Sweep


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    if not parts.settings.insights:
        return ()
    suggesting = SuggestionSweep(parts.database, parts.policies, parts.registry, parts.redraw)
    return (Sweep("suggest_rules", SECONDS, suggesting.run),)


def _make_hooks(parts: FeatureParts) -> Hooks:
    annotating = (unusual.annotate_unusual,) if parts.settings.insights else ()
    return Hooks(send_digest=(suggestions.tell_suggestion,), annotate_card=annotating)


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
