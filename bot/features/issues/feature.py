"""Issues: the built-in issue tracker, for the demo and for teams that have none."""

from bot.features.feature import Feature, FeatureParts
from bot.features.issues.tools import make_issue_toolset
from bot.tools.toolset import FixedToolset


def _make_toolsets(parts: FeatureParts) -> tuple[FixedToolset, ...]:
    if parts.settings.issues:
        return (make_issue_toolset(parts.database, parts.clock),)
    return ()


ISSUES = Feature(name="issues", has_named_tools=True, make_toolsets=_make_toolsets)
