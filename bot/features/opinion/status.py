"""The rules that ask for second opinions, for an admin's list of active parts, and for ``nod doctor``."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals.lookup import active
from bot.domain.active import ActiveLine
from bot.domain.doctor_findings import Finding, fail, ok
from bot.domain.rule_values import Opinion, Subject
from bot.errors import SettingsError
from bot.features.feature import FeatureParts
from bot.store.rules import Policies

_PART = "Second opinions"


def list_opinions(policies: Policies, session: Session, _: datetime) -> Sequence[ActiveLine]:
    """Return the rules that ask for an opinion."""
    return active.make_rule_lines(session, _PART, policies.latest_policy.rulebook.zone, Subject.OPINION)


async def examine_opinions(parts: FeatureParts) -> Sequence[Finding]:
    """Return a finding for each rule whose model is not configured; else one finding that all is well.

    Nothing is returned without such rules, or if the models themselves can't be read.
    """
    rulebook = (await parts.database.read(parts.policies.load)).rulebook
    wanted = {
        rule.id: rule.value.model
        for rule in rulebook.list_about(Subject.OPINION)
        if isinstance(rule.value, Opinion)
    }
    if not wanted:
        return ()
    try:
        names = {each.name for each in parts.settings.list_answering_models()}
    except SettingsError:  # reported with the models
        return ()
    missing = [
        fail(f"rule {number}", f"no model is called {name}. Its cards get no second opinion")
        for number, name in wanted.items()
        if name not in names
    ]
    return missing or (ok("second opinions", f"asked of {', '.join(sorted(set(wanted.values())))}"),)
