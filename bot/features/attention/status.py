"""The rules of attention, for an admin's list of active parts, and the held cards, for ``nod doctor``.

A rule of attention limits how many cards an hour reach a person; further cards are held back for a while.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.approvals.lookup import active
from bot.domain.active import ActiveLine
from bot.domain.doctor_findings import Finding, ok, warn
from bot.domain.rule_values import Subject
from bot.features.attention import rows
from bot.features.feature import FeatureParts
from bot.store.rules import Policies

_PART = "Attention"
_NAME = "attention"
_LATE = timedelta(minutes=5)  # a card that is held so long after its time is late: then no Nod is running


def list_limits(policies: Policies, session: Session, _: datetime) -> Sequence[ActiveLine]:
    """Return the rules that say how many cards an hour reach people."""
    return active.make_rule_lines(session, _PART, policies.latest_policy.rulebook.zone, Subject.ATTENTION)


async def examine_attention(parts: FeatureParts) -> Sequence[Finding]:
    """Return how many cards are held back now, and a warning where some of them are late; else nothing."""
    rulebook = (await parts.database.read(parts.policies.load)).rulebook
    rules = len(rulebook.list_about(Subject.ATTENTION))
    counts = await parts.database.read(rows.count_held, parts.clock() - _LATE)
    if counts.late:
        return (warn(_NAME, f"cards held past their time: {counts.late}. Is Nod running? Start it: nod run"),)
    if not rules:
        return ()
    return (ok(_NAME, f"rules: {rules}, cards held back now: {counts.held}"),)
