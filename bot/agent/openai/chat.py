"""Chat Completions: a history as messages. Pure."""

from collections.abc import Sequence

from bot.agent.openai.streams import Json, argument_object, plain_name, said_by_tool, sent_back
from bot.domain.model import AssistantText, Entry, SystemText, ToolCall, ToolResult, ToolSpec, UserText
from bot.domain.named_models import NamedModel


def chat_body(model: NamedModel, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> Json:
    """The request's fields that are of this interface alone."""
    body: Json = {"messages": [_message(entry, model.name) for entry in transcript]}
    if tools:
        body["tools"] = [_tool(spec, strict=model.strict) for spec in tools]
    return body | ({"stream_options": {"include_usage": True}} if model.stream_options else {})


def _seen(entry: UserText) -> list[Json]:
    """Words and pictures, in parts."""
    pictures = [{"type": "image_url", "image_url": {"url": each.address}} for each in entry.pictures]
    return [{"type": "text", "text": entry.spoken}, *pictures]


def _message(entry: Entry, model: str) -> Json:
    match entry:
        case SystemText(text):
            return {"role": "system", "content": text}
        case UserText():
            return {"role": "user", "content": _seen(entry) if entry.pictures else entry.spoken}
        case AssistantText(text, ()):
            return {"role": "assistant", "content": text}
        case AssistantText(text, calls):
            return {
                "role": "assistant",
                "content": text if text.strip() else "",  # null is refused by llama-cpp-python and LM Studio
                "tool_calls": [_call(call, model) for call in calls],
                **sent_back(calls[0], model, "answer"),
            }
        case ToolResult(call_id):
            return {"role": "tool", "tool_call_id": call_id, "content": said_by_tool(entry)}


def _call(call: ToolCall, model: str) -> Json:
    return {
        **sent_back(call, model, "call"),
        "id": call.id,
        "type": "function",
        "function": {"name": plain_name(call.name), "arguments": argument_object(call.arguments)},
    }


def _tool(spec: ToolSpec, *, strict: bool) -> Json:
    function: Json = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    if strict and spec.strict:
        function["strict"] = True
    return {"type": "function", "function": function}
