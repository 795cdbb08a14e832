"""The fields of a request to the Responses API: the history as items, and the tools. Pure.

A history is a list of entries in an order that all servers accept (``arrangement.py``). Nothing is kept at
the server (``store`` is false), so each request brings the history. A model's reasoning goes back with its
calls if it came encrypted. The setting ``options`` of a model asks for that, with ``include =
["reasoning.encrypted_content"]``.
"""

from collections.abc import Iterator, Sequence

from bot.agent.openai.arrangement import Arranged, UserTexts
from bot.agent.openai.earlier_calls import (
    Json,
    find_fields_to_send_back,
    format_arguments,
    format_tool_result,
)
from bot.agent.openai.offers import ToolOffer
from bot.domain.model import AssistantText, SystemText, ToolResult
from bot.domain.named_models import NamedModel


def responses_body(
    model: NamedModel,
    history: Sequence[Arranged],
    offers: Sequence[ToolOffer],
    *,
    needs_signatures: bool = False,  # noqa: ARG001 - only the other interface has it
    needs_reasoning: bool = False,  # noqa: ARG001 - only the other interface has it
) -> Json:
    """Return the fields of a request that only this interface has."""
    items: list[Json] = []
    for entry in history:
        items += _write_items(entry, model.name)
    body: Json = {"input": items, "store": False}
    if offers:
        body["tools"] = [_write_tool(offer) for offer in offers]
    return body


def _write_items(entry: Arranged, model: str) -> Iterator[Json]:
    """Yield the items of an entry: an answer with calls has several."""
    match entry:
        case SystemText(text):
            yield {"role": "system", "content": text}
        case UserTexts():
            yield {"role": "user", "content": _write_content(entry) if entry.has_pictures else entry.as_sent}
        case AssistantText(text, calls):
            if calls:
                yield from find_fields_to_send_back(calls[0], model, "answer").get("items", ())
            if text.strip():
                yield {"role": "assistant", "content": text}
            for call in calls:
                yield {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": format_arguments(call.arguments),
                }
        case ToolResult(call_id):
            yield {"type": "function_call_output", "call_id": call_id, "output": format_tool_result(entry)}


def _write_content(entry: UserTexts) -> list[Json]:
    """Return texts and pictures as the parts of a message's content, each picture after its text."""
    content: list[Json] = []
    for text, message in zip(entry.texts, entry.messages, strict=True):
        content.append({"type": "input_text", "text": text})
        image = {"type": "input_image", "detail": "auto"}
        content += [image | {"image_url": picture.address} for picture in message.pictures]
    return content


def _write_tool(offer: ToolOffer) -> Json:
    return {
        "type": "function",
        "name": offer.name,
        "description": offer.description,
        "parameters": offer.parameters or {"type": "object", "properties": {}},
        "strict": offer.strict,  # this interface takes a missing ``strict`` for true
    }
