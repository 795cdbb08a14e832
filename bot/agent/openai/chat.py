"""Chat Completions: a history as messages. Pure."""

from collections.abc import Sequence

from bot.agent.openai.arrangement import Arranged, UserTexts
from bot.agent.openai.offers import ToolOffer
from bot.agent.openai.streams import Json, argument_object, find_part_to_send_back, format_tool_result
from bot.domain.model import AssistantText, SystemText, ToolCall, ToolResult
from bot.domain.named_models import NamedModel

_UNSIGNED: Json = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""For a call that Gemini did not make: https://ai.google.dev/gemini-api/docs/thought-signatures."""

_UNTHOUGHT: Json = {"reasoning_content": " "}
"""For an answer without reasoning; Kimi takes an empty text for a missing one.

https://platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model
"""


def chat_body(
    model: NamedModel,
    history: Sequence[Arranged],
    offers: Sequence[ToolOffer],
    *,
    signed: bool = False,
    reasoned: bool = False,
) -> Json:
    """Return the fields of a request that only this interface has.

    ``signed``: the first call of each answer needs a signature, which a call of another model lacks.
    ``reasoned``: each answer needs its reasoning, which an answer of another model lacks.
    """
    messages = [_message(entry, model.name, signed=signed) for entry in history]
    if reasoned:
        messages = [_UNTHOUGHT | each if each["role"] == "assistant" else each for each in messages]
    body: Json = {"messages": messages}
    if offers:
        body["tools"] = [_tool(each) for each in offers]
    return body | ({"stream_options": {"include_usage": True}} if model.stream_options else {})


def _write_parts(entry: UserTexts) -> list[Json]:
    """Return texts and pictures as parts, each picture after the text that it came with."""
    parts: list[Json] = []
    for text, said in zip(entry.texts, entry.parts, strict=True):
        parts.append({"type": "text", "text": text})
        parts += [{"type": "image_url", "image_url": {"url": each.address}} for each in said.pictures]
    return parts


def _message(entry: Arranged, model: str, *, signed: bool) -> Json:
    match entry:
        case SystemText(text):
            return {"role": "system", "content": text}
        case UserTexts():
            return {"role": "user", "content": _write_parts(entry) if entry.has_pictures else entry.spoken}
        case AssistantText(text, ()):
            return {"role": "assistant", "content": text}
        case AssistantText(text, calls):
            return {
                "role": "assistant",
                "content": text if text.strip() else "",  # null is refused by llama-cpp-python and LM Studio
                "tool_calls": [_call(call, model, signed=signed and not at) for at, call in enumerate(calls)],
                **find_part_to_send_back(calls[0], model, "answer"),
            }
        case ToolResult(call_id):
            return {"role": "tool", "tool_call_id": call_id, "content": format_tool_result(entry)}


def _call(call: ToolCall, model: str, *, signed: bool) -> Json:
    made = {
        **find_part_to_send_back(call, model, "call"),
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": argument_object(call.arguments)},
    }
    if signed:
        return {"extra_content": _UNSIGNED, **made}
    return made


def _tool(offer: ToolOffer) -> Json:
    function: Json = {"name": offer.name, "description": offer.description}
    if offer.parameters is not None:
        function["parameters"] = offer.parameters
    if offer.strict:
        function["strict"] = True
    return {"type": "function", "function": function}
