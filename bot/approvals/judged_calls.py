"""A call of the model as the gate has judged it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bot.domain.conversations import Call, CallResult
from bot.domain.model import ToolCall
from bot.domain.proposals import Proposal
from bot.domain.similarity import Likeness
from bot.tools.tool import Tool


class ToolUse(NamedTuple):
    """A tool, and the arguments for one call of it."""

    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A judged call of the model: exactly one of ``read``, ``effect``, ``proposal`` and ``result`` is set."""

    call: Call
    read: ToolUse | None = None  # a read that the rules allow, not run yet
    effect: ToolUse | None = None  # a change of Nod's own rows, applied when the answer is stored
    proposal: Proposal | None = None  # a proposal to be stored with the answer
    result: CallResult | None = None  # the reason why no call is run or proposed

    # the other fields belong to a proposal
    likeness: Likeness = field(default_factory=Likeness)  # by it, a grant for calls alike may approve it
    batch: str = ""  # the name of the table in which calls of the answer are shown; empty: it is shown alone
    tool_to_try: Tool | None = None  # the call's tool if the call is to be tried before people see it
    undo_seconds: float = 0.0  # the time for which the changes of a trial may be undone; 0 for none


def answer_call(call: ToolCall, summary: str, text: str, *, may_be_foreign: bool = False) -> JudgedCall:
    """Return a judged call with ``text`` as its result; ``may_be_foreign``: a tool may have written it."""
    recorded = Call(call.id, call.name, call.arguments, summary)
    return JudgedCall(recorded, result=CallResult(text, ok=False, is_from_tool=may_be_foreign))
