"""The calls of one answer after judgement: each to be read, to be done, to be proposed, or answered.

What an answer changes of Nod's own rows, in the transaction that stores it (`bot.tools.tool.Effect`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.approvals.tools import team
from bot.domain.conversations import Call, CallResult, Turn
from bot.domain.jobs import Job
from bot.domain.model import ToolCall
from bot.domain.proposals import Kind, Proposal
from bot.errors import ToolError
from bot.store import messages
from bot.tools.registry import AvailableTools
from bot.tools.tool import Moment, Tool


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """One call after judgement: to be read now, to be done with the answer, to be proposed, or answered."""

    call: Call
    read: tuple[Tool, Mapping[str, Any]] | None = None
    effect: tuple[Tool, Mapping[str, Any]] | None = None
    proposal: Proposal | None = None
    key: Mapping[str, Any] | None = None  # the tool's own key of the call, for grants
    result: CallResult | None = None


def left_out(call: ToolCall, words: str, summary: str = "") -> JudgedCall:
    """Answered without being looked at further."""
    kept = Call(call.id, call.name, call.arguments, summary or call.name)
    return JudgedCall(kept, result=CallResult(f"ERROR: {words}", ok=False, outside=False))


def with_one_plan(judged: Sequence[JudgedCall]) -> list[JudgedCall]:
    """One answer submits one plan; of several the first counts."""
    kept: list[JudgedCall] = []
    planned = False
    for each in judged:
        plans = each.proposal is not None and each.proposal.kind is Kind.PLAN
        if plans and planned:
            words = "ERROR: You already submitted a plan in this answer. One is enough."
            kept.append(JudgedCall(each.call, result=CallResult(words, ok=False, outside=False)))
        else:
            kept.append(each)
        planned = planned or plans
    return kept


def take_effect(
    session: Session,
    turn: Turn,
    available: AvailableTools,
    message_id: int,
    judged: Sequence[JudgedCall],
    results: dict[str, CallResult],
    now: datetime,
) -> list[Job]:
    """Do what changes Nod's own rows, in the order it was asked for, and store what came of it."""
    transcript = turn.transcript
    reach = frozenset(t.name for t in available if t.group != team.GROUP)
    jobs: list[Job] = []
    for call, (tool, arguments) in ((c.call, c.effect) for c in judged if c.effect):
        moment = Moment(transcript.conversation, transcript.asker, f"{message_id}:{call.id}", reach, now)
        try:
            if tool.effect is None:
                raise ToolError(f"{tool.name} has no effect.")
            done = tool.effect(session, moment, arguments)
        except ToolError as error:
            results[call.id] = CallResult(f"ERROR: {error.message}", ok=False)
        else:
            results[call.id] = CallResult(done.text, ok=True)
            jobs += done.jobs
    messages.add_results(session, message_id, results)
    return jobs
