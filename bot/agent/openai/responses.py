"""The Responses API: a history as items, and the stream of an answer. Pure.

Nothing is kept at the server (``store`` is false): each request brings the history. What a model reasoned
goes back with its calls where it came encrypted, which its ``options`` ask for
(``include = ["reasoning.encrypted_content"]``). Events:
https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Iterator, Sequence
from typing import Any

from bot.agent.openai.errors import error_in, too_long
from bot.agent.openai.streams import (
    Json,
    StreamedAnswer,
    argument_object,
    cached,
    counted,
    joined,
    plain_name,
    said_by_tool,
    sent_back,
)
from bot.domain.model import (
    AssistantText,
    Entry,
    Finished,
    Part,
    Stop,
    SystemText,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.domain.named_models import NamedModel
from bot.errors import ModelCut, ModelTooLong

_STOPS = {"max_output_tokens": Stop.LENGTH, "content_filter": Stop.FILTERED}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_WORDS = frozenset({"response.output_text.delta", "response.refusal.delta"})


def responses_body(model: NamedModel, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> Json:
    """The request's fields that are of this interface alone."""
    items = [item for entry in transcript for item in _items(entry, model.name)]
    body: Json = {"input": items, "store": False}
    return body | ({"tools": [_tool(spec, strict=model.strict) for spec in tools]} if tools else {})


class ResponsesAnswer(StreamedAnswer):
    """An answer of the Responses API."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._items: list[Json] = []  # those that are complete
        self._response: Json = {}

    def take(self, event: Any) -> Sequence[Part]:
        self._events += 1
        if not isinstance(event, dict):
            return ()
        kind = event.get("type")
        if kind == "error" or error_in(event) is not None:
            self._refuse(error_in(event) or event)
        if event.get("object") == "response":  # a complete answer instead of a stream
            kind, event = f"response.{event.get('status')}", {"response": event}
        delta = event.get("delta")
        delta = delta if isinstance(delta, str) else ""
        if kind in _WORDS:
            return self._add(delta, "")
        if kind in _THOUGHTS:
            return self._add("", delta)
        if kind == "response.function_call_arguments.delta":
            self.spoke = True
            self._called += len(delta)
        elif kind == "response.output_item.done" and isinstance(item := event.get("item"), dict):
            self._items.append(item)
            self._called += len(str(item.get("arguments") or item.get("encrypted_content") or ""))
        elif kind in _ENDS:
            return self._end(event.get("response"))
        return ()

    def _end(self, response: Any) -> Sequence[Part]:
        """The last event, which has all that came before once more."""
        self._response = response if isinstance(response, dict) else {}
        if self._response.get("status") == "failed":
            self._refuse(self._response.get("error"))
        self.ended = True
        output = [each for each in self._response.get("output") or () if isinstance(each, dict)]
        self._items = self._items or output
        said = "" if self._size else "".join(_texts(output))
        return self._add(said, "")

    def _refuse(self, error: Any) -> None:
        """Raises ModelTooLong, or ModelCut for what may pass."""
        error = error if isinstance(error, dict) else {}
        raise ModelTooLong if too_long(error.get("code"), error.get("message")) else ModelCut

    def finished(self) -> Finished:
        details, usage = self._response.get("incomplete_details"), self._response.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        reason = details.get("reason") if isinstance(details, dict) else ""
        stop = Stop.LENGTH if self.is_full else _STOPS.get(reason or "", Stop.FINISHED)
        return Finished(
            stop=stop,
            calls=self._calls() if stop is Stop.FINISHED else (),
            prompt_tokens=counted(usage.get("input_tokens")),
            completion_tokens=counted(usage.get("output_tokens")),
            cached_tokens=cached(usage.get("input_tokens_details")),
        )

    def _calls(self) -> tuple[ToolCall, ...]:
        """The calls; what was reasoned before them goes with the first."""
        thoughts = [item for item in self._items if item.get("type") == "reasoning"]
        kept = {"items": [_sent_back(each) for each in thoughts if each.get("encrypted_content")]}
        extra = {"model": self._model, "answer": kept} if kept["items"] else {}
        found = [item for item in self._items if item.get("type") == "function_call" and item.get("name")]
        return tuple(
            ToolCall(
                str(item.get("call_id") or item.get("id")),
                joined(str(item["name"])),
                joined(str(item.get("arguments") or "{}")),
                {} if at else extra,
            )
            for at, item in enumerate(found)
        )


def _sent_back(item: Json) -> Json:
    """An item as the server takes it again: its status is the server's own."""
    return {name: value for name, value in item.items() if name != "status"}


def _texts(output: Sequence[Json]) -> Iterator[str]:
    for item in output:
        for part in item.get("content") or () if item.get("type") == "message" else ():
            yield str(part.get("text") or part.get("refusal") or "")


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
