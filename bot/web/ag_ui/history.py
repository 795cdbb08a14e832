"""A conversation's rows as AG-UI's messages, under the ids that a run gives them while it speaks. Pure.

An answer is called by its key, its calls by the key and the model's own id. A proposal's call carries the
proposal's id, which is unique, as models' own ids are not. What a front end sent keeps its id.
"""

import json
from collections.abc import Sequence
from typing import Any

from ag_ui.core import AssistantMessage, FunctionCall, Message, ToolCall, ToolMessage, UserMessage

from bot.domain.conversations import Line, LineRole, Transcript
from bot.domain.proposals import State
from bot.domain.redaction import redact_text
from bot.tools.registry import AvailableTools
from bot.web.schemas.proposals import ProposalView

_UNENDED = (State.PROPOSED, State.APPROVED, State.EXECUTING)


def history(
    transcript: Transcript, every: Sequence[ProposalView], available: AvailableTools, sent: str
) -> list[Message]:
    """Return the lines of a conversation in reading order.

    ``sent``: the prefix of the event ids of this front end's messages.
    """
    found = {(each.message_id, each.call_id): each for each in every if not each.teammate}
    told: list[Message] = []
    for line in transcript.lines:
        ident = _name(line, sent)
        text = line.text.lstrip("\n")
        if line.role is LineRole.USER:
            told.append(UserMessage(id=ident, content=line.text))
        elif line.role is not LineRole.NOTE and text:
            told.append(AssistantMessage(id=ident, content=text))
        results: list[Message] = []
        for call in line.calls:
            proposal = found.get((line.id, call.id))
            if proposal:
                told.append(_make_call_message(proposal))
                results += _make_result_messages(proposal)
            elif result := line.results.get(call.id):
                own = call_id(ident, call.id)
                told.append(make_call(own, call.tool_name, available.arguments_of(call))[0])
                results.append(tool_result(own, redact_text(result.text, available.secrets_of(call))))
        told += results
    of_team = [each for each in every if each.teammate]
    return [
        *told,
        *map(_make_call_message, of_team),
        *(result for each in of_team for result in _make_result_messages(each)),
    ]


def take_newest(messages: Sequence[Message], max_bytes: int) -> list[Message]:
    """Return the newest messages whose text is not longer in all, none of them a result without its call."""
    start = len(messages)
    while start and (max_bytes := max_bytes - _size(messages[start - 1])) >= 0:
        start -= 1
    while start and start < len(messages) and isinstance(messages[start], ToolMessage):
        start += 1
    return list(messages[start:])


def call_id(answer: str, model_id: str) -> str:
    """Return the id of a read that an answer asked for."""
    return f"{answer}:{model_id}"


def make_call(ident: str, name: str, arguments: Any) -> tuple[AssistantMessage, str]:
    """Return the message that a client makes of a call, and its arguments as JSON."""
    text = json.dumps(arguments, ensure_ascii=False)
    made = ToolCall(id=ident, function=FunctionCall(name=name, arguments=text))
    return AssistantMessage(id=ident, tool_calls=[made]), text


def tool_result(ident: str, text: str) -> ToolMessage:
    return ToolMessage(id=f"{ident}:result", tool_call_id=ident, content=text)


def result_of(proposal: ProposalView) -> str | None:
    """Return the result of a proposal's call, or its outcome; None before that."""
    if proposal.state in _UNENDED:
        return None
    told = proposal.result if proposal.state is State.SUCCEEDED else None
    return told or proposal.outcome


def _size(message: Message) -> int:
    calls = getattr(message, "tool_calls", None) or ()
    return sum(
        len(text.encode()) for text in (str(message.content or ""), *(c.function.arguments for c in calls))
    )


def _make_call_message(proposal: ProposalView) -> AssistantMessage:
    return make_call(proposal.id, proposal.tool_name, proposal.tool_arguments)[0]


def _make_result_messages(proposal: ProposalView) -> list[Message]:
    told = result_of(proposal)
    if told is None:
        return []
    return [tool_result(proposal.id, told)]


def _name(line: Line, sent: str) -> str:
    if line.event_id and line.role is LineRole.ASSISTANT:
        return line.event_id
    if line.event_id and line.event_id.startswith(sent):
        return line.event_id[len(sent) :]
    return f"line-{line.id}"
