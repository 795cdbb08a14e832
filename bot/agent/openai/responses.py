"""The Responses API: a history as items. Pure.

Nothing is kept at the server (``store`` is false): each request brings the history. What a model reasoned
goes back with its calls where it came encrypted, which its ``options`` ask for
(``include = ["reasoning.encrypted_content"]``).
"""

from collections.abc import Iterator, Sequence

from bot.agent.openai.streams import Json, argument_object, plain_name, said_by_tool, sent_back
from bot.domain.model import AssistantText, Entry, SystemText, ToolResult, ToolSpec, UserText
from bot.domain.named_models import NamedModel


def responses_body(model: NamedModel, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> Json:
    """The request's fields that are of this interface alone."""
    items = [item for entry in transcript for item in _items(entry, model.name)]
    body: Json = {"input": items, "store": False}
    return body | ({"tools": [_tool(spec, strict=model.strict) for spec in tools]} if tools else {})


def _items(entry: Entry, model: str) -> Iterator[Json]:
    match entry:
        case SystemText(text):
            yield {"role": "system", "content": text}
        case UserText():
            image = {"type": "input_image", "detail": "auto"}
            pictures = [image | {"image_url": each.address} for each in entry.pictures]
            words = [{"type": "input_text", "text": entry.spoken}, *pictures]
            yield {"role": "user", "content": words if pictures else entry.spoken}
        case AssistantText(text, calls):
            if calls:
                yield from sent_back(calls[0], model, "answer").get("items", ())
            if text.strip():
                yield {"role": "assistant", "content": text}
            for call in calls:
                yield {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": plain_name(call.name),
                    "arguments": argument_object(call.arguments),
                }
        case ToolResult(call_id):
            yield {"type": "function_call_output", "call_id": call_id, "output": said_by_tool(entry)}


def _tool(spec: ToolSpec, *, strict: bool) -> Json:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "strict": strict and spec.strict,  # this interface takes what is not said for true
    }
