"""The calls of one answer after judgement: each to be read, to be done, to be proposed, or answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.conversations import Call, CallResult
from bot.domain.model import ToolCall
from bot.domain.proposals import Kind, Proposal
from bot.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Considered:
    """One call after judgement: to be read now, to be done with the answer, to be proposed, or answered."""

    call: Call
    read: tuple[Tool, Mapping[str, Any]] | None = None
    effect: tuple[Tool, Mapping[str, Any]] | None = None
    proposal: Proposal | None = None
    key: Mapping[str, Any] | None = None  # the tool's own key of the call, for grants
    result: CallResult | None = None


def left_out(call: ToolCall, words: str, summary: str = "") -> Considered:
    """Answered without being looked at further."""
    kept = Call(call.id, call.name, call.arguments, summary or call.name)
    return Considered(kept, result=CallResult(f"ERROR: {words}", ok=False, outside=False))


def with_one_plan(considered: Sequence[Considered]) -> list[Considered]:
    """One answer submits one plan; of several the first counts."""
    kept: list[Considered] = []
    planned = False
    for each in considered:
        plans = each.proposal is not None and each.proposal.kind is Kind.PLAN
        if plans and planned:
            words = "ERROR: You already submitted a plan in this answer. One is enough."
            kept.append(Considered(each.call, result=CallResult(words, ok=False, outside=False)))
        else:
            kept.append(each)
        planned = planned or plans
    return kept
