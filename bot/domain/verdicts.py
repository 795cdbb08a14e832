"""The policy's verdict on a call: whether it runs, asks or is refused, and on which terms it asks.

``bot/domain/policy.py`` makes it. `make_terms` turns it into the fields of a proposal.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from bot.domain.deciders import Deciders
from bot.domain.preview import Inverse
from bot.domain.proposals import start_timers, time_steps
from bot.domain.risks import Risk
from bot.domain.steps import TimedStep, start_steps
from bot.domain.times import format_length

UNASKED_WARNING = " (warning: nothing here asks before it changes things)"
"""The end of the words of a rule that lets changes run without asking."""


class Judgement(StrEnum):
    """The policy's decision on a call."""

    RUN = "run"  # it runs immediately
    ASK = "ask"  # it becomes a proposal that people decide
    REFUSE = "refuse"  # it can't even be proposed


@dataclass(frozen=True, slots=True)
class Verdict:
    """The policy's judgement on a call, and the rule behind it."""

    judgement: Judgement
    risk: Risk  # under the rules, which may change what the tool says
    rule_text: str  # the rule in words; for a refusal the reason
    deciders: Deciders
    quorum: int = 1  # the number of approvals that are needed
    declines: int = 1  # the number of declines that end it
    ttl: timedelta = timedelta(hours=24)  # the time that it waits
    remind_every: timedelta | None = None
    escalate_after: timedelta | None = None  # the time after which further people are asked
    escalate_to: str | None = None  # the address or the group of those people
    steps: tuple[TimedStep, ...] = ()  # the targets that are notified while it waits
    undo: timedelta | None = None  # the time in which the call can be undone; None: its kind has no Undo
    no_undo: str = ""  # the reason why the call can't be undone


def make_terms(verdict: Verdict, now: datetime) -> dict[str, Any]:
    """Return the fields that a verdict sets on a proposal that begins to wait now, by their names."""
    steps = verdict.steps
    if steps and verdict.escalate_to and verdict.escalate_after:
        steps = (*steps, TimedStep(verdict.escalate_to, verdict.escalate_after))
    field_values = {
        "risk": verdict.risk,
        "deciders": verdict.deciders,
        "quorum": verdict.quorum,
        "declines": verdict.declines,
        "rule_text": verdict.rule_text,
        "ttl": verdict.ttl,
        "remind_every": verdict.remind_every,
        "escalate_at": now + verdict.escalate_after if verdict.escalate_after else None,
        "escalate_to": verdict.escalate_to,
        "steps": (),
        "notify_at": None,
        "undo_seconds": None if verdict.undo is None else verdict.undo.total_seconds(),
        "inverse": Inverse(verdict.no_undo) if verdict.no_undo else None,
    }
    due_steps = start_steps(steps, now)
    if due_steps:
        # also ``escalate_at``: the time of the first step that escalates
        field_values |= time_steps(due_steps)
    return field_values | start_timers(verdict.ttl, verdict.remind_every, now)


def explain(verdict: Verdict, requester: str) -> str:
    """Describe a call's treatment and the reason, for ``/approvals policy test``."""
    level = str(verdict.risk.level)
    if verdict.risk.reason:
        level += f" ({verdict.risk.reason})"
    match verdict.judgement:
        case Judgement.RUN:
            return f"It would run immediately. Risk: {level}. Because: {verdict.rule_text}."
        case Judgement.REFUSE:
            return f"It would be refused: {verdict.rule_text}. Risk: {level}."
        case Judgement.ASK:
            who = verdict.deciders.describe(requester)
            need = f"{verdict.quorum} approvals" if verdict.quorum > 1 else "one approval"
            wait = format_length(verdict.ttl.total_seconds())
            return (
                f"It would ask for {need}. Who may decide: {who}. It would wait {wait}. "
                f"Risk: {level}. Because: {verdict.rule_text}."
            )
