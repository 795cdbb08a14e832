"""The model's history, derived from rows each time: never stored, never patched."""

import json
from collections.abc import Sequence

from bot.agent.model import AssistantText, Entry, SystemText, ToolCall, ToolResult, UserText
from bot.domain.conversations import Call, Line, LineRole, Transcript
from bot.domain.outcomes import for_model
from bot.domain.proposals import Proposal, canonical

CHARACTERS_PER_TOKEN = 4  # a rough but steady measure, on the safe side for English and for JSON
NOTE = "[Nod]"
"""How Nod's notes start; a person whose message starts with it is named, so that it can't pass for one."""

REASON = "approval_reason"
"""The parameter every write tool gets in addition: the agent's stated reason, shown to who decides."""


def entries(transcript: Transcript, prompt: str, budget: int) -> list[Entry]:
    """The transcript as the model reads it, at most about ``budget`` tokens.

    What does not fit is dropped from the oldest end in whole exchanges (from one person's message to the
    next), so a call is never without its result. The last exchange always stays.
    """
    exchanges: list[list[Entry]] = []
    for line in transcript.lines:
        if line.role is LineRole.NOTICE:
            continue
        if line.role is LineRole.USER or not exchanges:
            exchanges.append([])
        exchanges[-1] += _line(line, transcript)
    room = budget * CHARACTERS_PER_TOKEN - len(prompt)
    kept: list[list[Entry]] = []
    for exchange in reversed(exchanges):
        room -= sum(_size(entry) for entry in exchange)
        if kept and room < 0:
            break
        kept.append(exchange)
    return [SystemText(prompt), *(entry for exchange in reversed(kept) for entry in exchange)]


def _line(line: Line, transcript: Transcript) -> Sequence[Entry]:
    if line.role is not LineRole.ASSISTANT:
        told = not transcript.conversation.private or line.text.lstrip().startswith(NOTE)
        # a note may follow someone's request, but it is not in their words
        named = line.actor if told and line.role is LineRole.USER else None
        return [UserText(line.text, named.label if named else "")]
    if not line.calls and not line.text.strip():
        return []  # servers refuse a history with an answer that is empty
    proposals = {call.id: transcript.proposals.get((line.id, call.id)) for call in line.calls}
    calls = tuple(ToolCall(c.id, c.tool_name, _arguments(c, proposals[c.id])) for c in line.calls)
    results = [_result(c, line, proposals[c.id]) for c in line.calls]
    return [AssistantText(line.text, calls), *results]


def _arguments(call: Call, proposal: Proposal | None) -> str:
    """As the model wrote them, or as a person edited them."""
    if proposal is not None and proposal.edited_by:
        return canonical({**proposal.arguments, REASON: proposal.reason})
    try:
        decoded = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return "{}"  # servers refuse a history with broken JSON; the result says what was wrong
    return call.arguments if isinstance(decoded, dict) and call.arguments else "{}"


def _result(call: Call, line: Line, proposal: Proposal | None) -> ToolResult:
    if proposal is not None:
        return ToolResult(call.id, for_model(proposal))
    found = line.results.get(call.id)
    if found is None:
        return ToolResult(call.id, "ERROR: no result was kept for this call.")
    return ToolResult(call.id, found.text, outside=True)


def _size(entry: Entry) -> int:
    match entry:
        case AssistantText(text, calls):
            return len(text) + sum(len(c.name) + len(c.arguments) for c in calls)
        case SystemText(text) | UserText(text, _) | ToolResult(_, text, _):
            return len(text)
