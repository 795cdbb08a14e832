"""What an answer changes of Nod's own rows, in the transaction that stores it (`bot.tools.tool.Effect`)."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals.judged_calls import Considered
from bot.approvals.tools import team
from bot.domain.conversations import CallResult, Turn
from bot.domain.jobs import Job
from bot.errors import ToolError
from bot.store import messages
from bot.tools.registry import Shelf
from bot.tools.tool import Moment


def take_effect(
    session: Session,
    turn: Turn,
    shelf: Shelf,
    message_id: int,
    considered: Sequence[Considered],
    results: dict[str, CallResult],
    now: datetime,
) -> list[Job]:
    """Do what changes Nod's own rows, in the order it was asked for, and store what came of it."""
    transcript = turn.transcript
    reach = frozenset(t.name for t in shelf if t.group != team.GROUP)
    jobs: list[Job] = []
    for call, (tool, arguments) in ((c.call, c.effect) for c in considered if c.effect):
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
