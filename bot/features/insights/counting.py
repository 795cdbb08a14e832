"""The cost of asking, as one person may see it: of what they asked for, for an admin of everything."""

from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.approvals import rights
from bot.domain.insights import DAYS, ENDS, Facet, Insights
from bot.domain.people import Actor
from bot.domain.times import format_relative, format_span
from bot.store import record
from bot.store.audit import verification
from bot.store.rules import Policies

MONTH = timedelta(days=30)
OFF = "Insights are turned off here (NOD_INSIGHTS)."
_TOLD = 10  # parts in a chat
_NUMBERS = ("asked", *ENDS, "median_seconds", "slowest_seconds")


def find_insights(session: Session, policies: Policies, actor: Actor, since: datetime) -> Insights:
    """Return the insights since then: of this person's requests, or of everyone's for an admin."""
    return record.count_insights(
        session,
        since,
        rights.find_visible_accounts(session, policies, actor),
        policies.load(session).book.zone,
    )


def format_insights(found: Insights, facet: Facet, now: datetime) -> str:
    """Render the insights as text for a chat."""
    whose = "Everyone's" if found.everyone else "Your"
    lines = [f"**{whose} approvals in the last {format_span(now - found.since)}**: {found.total.words}"]
    if not found.total.asked:
        return f"{lines[0].partition(':')[0]}: no one was asked anything."
    lines += [f"By {facet}:", *(f"- {part.name}: {part.tally.words}" for part in found.parts[facet][:_TOLD])]
    more = len(found.parts[facet]) - _TOLD
    lines += [f"…and {more} more"] if more > 0 else []
    decided = (f"{each.name} {each.approved + each.declined}" for each in found.deciders[:_TOLD])
    lines += [f"Decided by: {', '.join(decided)}"] if found.deciders else []
    lines += (
        [f"Looked back only {format_relative(found.back_to, now)}: there is too much."]
        if found.back_to
        else []
    )
    return "\n".join(lines)


def as_csv(found: Insights) -> str:
    """Return a row for each tool, place, person, account, decider and hour of the week."""
    rows: list[dict[str, Any]] = [
        {"part": facet, "key": part.key, "name": part.name, **{n: getattr(part.tally, n) for n in _NUMBERS}}
        for facet, parts in found.parts.items()
        for part in parts
    ]
    rows += [{"part": "decider", **each._asdict()} for each in found.deciders]
    rows += [
        {"part": "hour", "key": f"{day} {hour:02}", "asked": many}
        for day, hours in zip(DAYS, found.week, strict=True)
        for hour, many in enumerate(hours)
    ]
    return verification.as_csv(rows, ("part", "key", "name", *_NUMBERS))
