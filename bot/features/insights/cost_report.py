"""The report on the cost of asking: how often people were asked, how that ended, and how long it took.

The report counts the requests of the person who reads it; for an admin, those of everyone. The numbers are
divided by facets (`Facet`): by tool, for example, with a part for each tool. `past_proposals.count_insights`
counts. This module says what a person may see, and renders the report for chats and for spreadsheets.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.approvals import rights
from bot.domain.insights import DAYS, ENDS, Facet, Insights
from bot.domain.people import Actor
from bot.domain.times import format_relative, format_span
from bot.store import past_proposals
from bot.store.audit import export_formats
from bot.store.rules import Policies

MONTH = timedelta(days=30)  # the period of a report, unless the reader names another
OFF_TEXT = "Insights are turned off here (NOD_INSIGHTS)."
_MAX_LINES = 10  # of each list in a chat: the parts of a facet, and the deciders
_TALLY_COLUMNS = ("asked", *ENDS, "median_seconds", "slowest_seconds")  # fields of `Tally`


def count_visible_insights(session: Session, policies: Policies, actor: Actor, since: datetime) -> Insights:
    """Count the requests since a time: this person's, or everyone's for an admin of all of Nod."""
    return past_proposals.count_insights(
        session,
        since,
        rights.find_visible_accounts(session, policies, actor),
        policies.load(session).rulebook.zone,
    )


def format_insights(insights: Insights, facet: Facet, now: datetime) -> str:
    """Return the insights as text for a chat, with the numbers of one facet's parts."""
    whose = "Everyone's" if insights.everyone else "Your"
    heading = f"**{whose} approvals in the last {format_span(now - insights.since)}**"
    if not insights.total.asked:
        return f"{heading}: no one was asked anything."
    parts = insights.parts[facet]
    lines = [f"{heading}: {insights.total.description}", f"By {facet}:"]
    lines += [f"- {part.name}: {part.tally.description}" for part in parts[:_MAX_LINES]]
    if len(parts) > _MAX_LINES:
        lines.append(f"…and {len(parts) - _MAX_LINES} more")
    deciders = [
        f"{decider.name} {decider.approved + decider.declined}" for decider in insights.deciders[:_MAX_LINES]
    ]
    if deciders:
        lines.append(f"Decided by: {', '.join(deciders)}")
    oldest_counted = insights.back_to  # None if all since `insights.since` was counted
    if oldest_counted is not None:
        lines.append(f"Looked back only {format_relative(oldest_counted, now)}: there is too much.")
    return "\n".join(lines)


def format_as_csv(insights: Insights) -> str:
    """Return CSV with a row for each tool, place, person, connection, decider and hour of the week.

    The column ``part`` says what a row is about, for example::

        part,key,name,asked,approved,...
        tool,create_issue,create_issue,41,40,...
        hour,Monday 09,,7,,...
    """
    rows: list[dict[str, Any]] = []
    for facet, parts in insights.parts.items():
        for part in parts:
            numbers = {name: getattr(part.tally, name) for name in _TALLY_COLUMNS}
            rows.append({"part": facet, "key": part.key, "name": part.name, **numbers})
    rows += [{"part": "decider", **decider._asdict()} for decider in insights.deciders]
    for day, counts in zip(DAYS, insights.week, strict=True):
        rows += [
            {"part": "hour", "key": f"{day} {hour:02}", "asked": asked} for hour, asked in enumerate(counts)
        ]
    return export_formats.format_csv(rows, ("part", "key", "name", *_TALLY_COLUMNS))
