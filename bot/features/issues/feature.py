"""Issues: the built-in issue tracker, for the demo and for teams that have none."""

from bot.features.feature import Feature, FeatureParts
from bot.features.issues.tools import issue_tools
from bot.tools.tool import FixedToolset


def _make_toolsets(parts: FeatureParts) -> tuple[FixedToolset, ...]:
    if parts.settings.issues:
        return (issue_tools(parts.database, parts.clock),)
    return ()


ISSUES = Feature(name="issues", has_named_tools=True, make_toolsets=_make_toolsets)
