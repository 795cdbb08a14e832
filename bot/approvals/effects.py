"""Effects: changes of Nod's own rows alone, in the transaction that stores the model's answer."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals.judged_calls import JudgedCall
from bot.approvals.tools import team
from bot.domain.conversations import CallResult, Turn
from bot.domain.jobs import Job
from bot.errors import ToolError
from bot.store import messages
from bot.tools.effect import EffectContext
from bot.tools.registry import AvailableTools


def apply_effects(
    session: Session,
    turn: Turn,
    available: AvailableTools,
    message_id: int,
    judged_calls: Sequence[JudgedCall],
    results: dict[str, CallResult],
    now: datetime,
) -> list[Job]:
    """Apply the effects among an answer's calls, in their order, and store all results of the answer.

    ``message_id``: of the stored answer. ``results``: the results so far, by the calls' ids; those of the
    effects are added. Returns the jobs.
    """
    transcript = turn.transcript
    tool_names = frozenset(tool.name for tool in available if tool.group != team.GROUP)
    jobs: list[Job] = []
    for judged in judged_calls:
        if judged.effect is None:
            continue
        call = judged.call
        tool, arguments = judged.effect
        call_id = f"{message_id}:{call.id}"
        context = EffectContext(transcript.conversation, transcript.asker, call_id, tool_names, now)
        try:
            if tool.effect is None:
                raise ToolError(f"{tool.name} has no effect.")
            done = tool.effect(session, context, arguments)
        except ToolError as error:
            results[call.id] = CallResult(f"ERROR: {error.message}", ok=False)
        else:
            results[call.id] = CallResult(done.text, ok=True)
            jobs += done.jobs
    messages.add_results(session, message_id, results)
    return jobs
