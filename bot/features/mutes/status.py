"""The current mutes of everyone, for an admin's list of active parts, and for ``nod doctor``."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.domain.active import ActiveLine
from bot.domain.doctor_findings import Finding, ok
from bot.domain.times import format_in_zone
from bot.features.feature import FeatureParts
from bot.features.mutes import rows
from bot.store.rules import Policies

_PART = "Mutes"


def list_all_mutes(policies: Policies, session: Session, now: datetime) -> Sequence[ActiveLine]:
    """Return a line for each current mute of anyone."""
    zone = policies.latest_policy.rulebook.zone
    return [
        ActiveLine(
            _PART, f"{each.tool_name} until {format_in_zone(each.until, zone)}", each.account, each.set_at
        )
        for each in rows.list_mutes(session)
        if each.until > now
    ]


async def examine_mutes(parts: FeatureParts) -> Sequence[Finding]:
    """Return the muted tools, and the number of accounts that muted any; nothing without mutes."""
    now = parts.clock()
    found = [each for each in await parts.database.read(rows.list_mutes) if each.until > now]
    if not found:
        return ()
    tools = ", ".join(sorted({each.tool_name for each in found}))
    return (ok("mutes", f"{tools}; accounts that are not told: {len({each.account for each in found})}"),)
