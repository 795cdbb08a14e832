"""A conversation's rows as AG-UI's messages, with the same ids as in the events of its runs. Pure.

A line is one stored message of a conversation. The ids are:

- of an answer of the model: its key
- of a call of a tool that reads: the answer's id and the model's own id of the call, such as ``KEY:call_1``
- of a call that became a proposal: the proposal's id, which is unique, as models' own ids are not
- of a message from a front end: the front end's own

A result is a message of its own. ``stream.py`` writes the events, ``routes.py`` calls `list_messages`.
"""

import json
from collections.abc import Sequence
from typing import Any

from ag_ui.core import AssistantMessage, FunctionCall, Message, ToolCall, ToolMessage, UserMessage

from bot.domain.conversations import Line, LineRole, Transcript
from bot.domain.proposal_states import State
from bot.domain.redaction import redact_text
from bot.tools.registry import AvailableTools
from bot.web.schemas.proposals import ProposalView

_ONGOING_STATES = (State.PROPOSED, State.APPROVED, State.EXECUTING)


def list_messages(
    transcript: Transcript, proposals: Sequence[ProposalView], available: AvailableTools, event_prefix: str
) -> list[Message]:
    """Return the messages of a conversation in reading order, with their calls and results.

    Notes of Nod's are left out. The proposals of teammates come last. ``event_prefix`` begins the stored
    event ids of the messages that came from this front end.
    """
    of_teammates = [view for view in proposals if view.teammate]
    by_call = {(view.message_id, view.call_id): view for view in proposals if not view.teammate}
    messages: list[Message] = []
    for line in transcript.lines:
        message_id = _name_message(line, event_prefix)
        text = line.text.lstrip("\n")
        if line.role is LineRole.USER:
            messages.append(UserMessage(id=message_id, content=line.text))
        elif line.role is not LineRole.NOTE and text:
            messages.append(AssistantMessage(id=message_id, content=text))
        results: list[Message] = []
        for call in line.calls:
            proposal = by_call.get((line.id, call.id))
            result = line.results.get(call.id)
            if proposal:
                messages.append(_make_call_message(proposal))
                results += _make_result_messages(proposal)
            elif result:
                reading_call_id = make_call_id(message_id, call.id)
                call_message, _ = make_call(reading_call_id, call.tool_name, available.arguments_of(call))
                messages.append(call_message)
                result_text = redact_text(result.text, available.secrets_of(call))
                results.append(make_result_message(reading_call_id, result_text))
        messages += results
    messages += map(_make_call_message, of_teammates)
    for view in of_teammates:
        messages += _make_result_messages(view)
    return messages


def take_newest(messages: Sequence[Message], max_bytes: int) -> list[Message]:
    """Return the newest messages with at most ``max_bytes`` of text together.

    Results at the beginning are left out if their calls are. The list is empty if already the newest message
    is too large.
    """
    start = len(messages)
    bytes_left = max_bytes
    while start:
        bytes_left -= _measure_text(messages[start - 1])
        if bytes_left < 0:
            break
        start -= 1
    # skip results whose calls are left out; if ``start`` is 0, none are
    while start and start < len(messages) and isinstance(messages[start], ToolMessage):
        start += 1
    return list(messages[start:])


def make_call_id(answer_id: str, model_id: str) -> str:
    """Return the id of a call that reads: the id of its answer, and the model's own id of the call."""
    return f"{answer_id}:{model_id}"


def make_call(ident: str, name: str, arguments: Any) -> tuple[AssistantMessage, str]:
    """Return the message that a front end makes of a call's events, and the arguments as JSON."""
    text = json.dumps(arguments, ensure_ascii=False)
    call = ToolCall(id=ident, function=FunctionCall(name=name, arguments=text))
    return AssistantMessage(id=ident, tool_calls=[call]), text


def make_result_message(ident: str, text: str) -> ToolMessage:
    """Return the message with the result of the call ``ident``."""
    return ToolMessage(id=f"{ident}:result", tool_call_id=ident, content=text)


def find_result(proposal: ProposalView) -> str | None:
    """Return the result of a proposal's call, or its outcome; None while there is neither."""
    if proposal.state in _ONGOING_STATES:
        return None
    result = proposal.result if proposal.state is State.SUCCEEDED else None
    return result or proposal.outcome


def _measure_text(message: Message) -> int:
    size = len(str(message.content or "").encode())
    for call in getattr(message, "tool_calls", None) or ():
        size += len(call.function.arguments.encode())
    return size


def _make_call_message(proposal: ProposalView) -> AssistantMessage:
    message, _ = make_call(proposal.id, proposal.tool_name, proposal.tool_arguments)
    return message


def _make_result_messages(proposal: ProposalView) -> list[Message]:
    result = find_result(proposal)
    if result is None:
        return []
    return [make_result_message(proposal.id, result)]


def _name_message(line: Line, event_prefix: str) -> str:
    """Return the id of a line's message: an answer's key, the front end's id, or an id like ``line-7``."""
    if line.event_id and line.role is LineRole.ASSISTANT:
        return line.event_id
    if line.event_id and line.event_id.startswith(event_prefix):
        return line.event_id.removeprefix(event_prefix)
    return f"line-{line.id}"
