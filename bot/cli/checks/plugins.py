"""The list of installed plugins that the settings do not name."""

from collections.abc import Sequence

from bot.domain.doctor_findings import Finding, ok
from bot.plugins import ENTRY, describe_package, list_unnamed


def list_unloaded(group: str, setting: str, names: Sequence[str]) -> list[Finding]:
    """List the entry points of installed packages that ``setting`` does not name; none is imported."""
    return [
        ok(
            f"{group} {point.name} of {describe_package(point)}",
            f"not loaded; {ENTRY}{point.name} in {setting} loads it",
        )
        for point in list_unnamed(group, names)
    ]
