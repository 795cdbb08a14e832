"""The fields of a request to Chat Completions: the history as messages, and the tools. Pure.

A history is a list of entries in an order that all servers accept (``arrangement.py``). `chat_body` writes
each as a message of this interface. Some models refuse an earlier answer that lacks the signature or the
reasoning of their own answers, even if another model gave that answer. `chat_body` puts a placeholder there.
"""

from collections.abc import Sequence

from bot.agent.openai.arrangement import Arranged, UserTexts
from bot.agent.openai.earlier_calls import (
    Json,
    find_fields_to_send_back,
    format_arguments,
    format_tool_result,
)
from bot.agent.openai.offers import ToolOffer
from bot.domain.model import AssistantText, SystemText, ToolCall, ToolResult
from bot.domain.named_models import NamedModel

_PLACEHOLDER_SIGNATURE: Json = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Sent in place of the signature, in a call that Gemini did not make.

https://ai.google.dev/gemini-api/docs/thought-signatures
"""

_PLACEHOLDER_REASONING: Json = {"reasoning_content": " "}
"""Sent in place of the reasoning, in an answer without any. Kimi counts an empty text as missing.

https://platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model
"""


def chat_body(
    model: NamedModel,
    history: Sequence[Arranged],
    offers: Sequence[ToolOffer],
    *,
    needs_signatures: bool = False,
    needs_reasoning: bool = False,
) -> Json:
    """Return the fields of a request that only this interface has.

    ``needs_signatures``: the first call of each answer needs a signature, so one without it gets a
    placeholder. ``needs_reasoning``: each answer needs its reasoning, so one without it gets a placeholder.
    """
    messages = [_write_message(entry, model.name, needs_signatures=needs_signatures) for entry in history]
    if needs_reasoning:
        messages = [_with_reasoning(message) for message in messages]
    body: Json = {"messages": messages}
    if offers:
        body["tools"] = [_write_tool(offer) for offer in offers]
    if model.stream_options:
        body["stream_options"] = {"include_usage": True}
    return body


def _with_reasoning(message: Json) -> Json:
    if message["role"] == "assistant":
        return _PLACEHOLDER_REASONING | message
    return message


def _write_message(entry: Arranged, model: str, *, needs_signatures: bool) -> Json:
    match entry:
        case SystemText(text):
            return {"role": "system", "content": text}
        case UserTexts():
            return {"role": "user", "content": _write_content(entry) if entry.has_pictures else entry.as_sent}
        case AssistantText(text, ()):
            return {"role": "assistant", "content": text}
        case AssistantText(text, calls):
            return {
                "role": "assistant",
                # white space counts as empty; null is refused by llama-cpp-python and LM Studio
                "content": text if text.strip() else "",
                "tool_calls": [
                    _write_call(call, model, needs_signature=needs_signatures and position == 0)
                    for position, call in enumerate(calls)
                ],
                **find_fields_to_send_back(calls[0], model, "answer"),  # stored with its first call
            }
        case ToolResult(call_id):
            return {"role": "tool", "tool_call_id": call_id, "content": format_tool_result(entry)}


def _write_content(entry: UserTexts) -> list[Json]:
    """Return texts and pictures as the parts of a message's content, each picture after its text."""
    content: list[Json] = []
    for text, message in zip(entry.texts, entry.messages, strict=True):
        content.append({"type": "text", "text": text})
        urls = [{"url": picture.address} for picture in message.pictures]
        content += [{"type": "image_url", "image_url": url} for url in urls]
    return content


def _write_call(call: ToolCall, model: str, *, needs_signature: bool) -> Json:
    written = {
        **find_fields_to_send_back(call, model, "call"),
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": format_arguments(call.arguments)},
    }
    if needs_signature:
        return {"extra_content": _PLACEHOLDER_SIGNATURE, **written}  # a real signature takes its place
    return written


def _write_tool(offer: ToolOffer) -> Json:
    function: Json = {"name": offer.name, "description": offer.description}
    if offer.parameters is not None:
        function["parameters"] = offer.parameters
    if offer.strict:
        function["strict"] = True
    return {"type": "function", "function": function}
