"""Chat Completions: a history as messages, and the stream of an answer. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.agent.openai.errors import error_in, too_long
from bot.agent.openai.streams import (
    Calls,
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

_KNOWN = {"role", "content", "tool_calls", "refusal", "function_call", "audio", "annotations"}
_STOPS = {"length": Stop.LENGTH, "content_filter": Stop.FILTERED}


def chat_body(model: NamedModel, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> Json:
    """The request's fields that are of this interface alone."""
    body: Json = {"messages": [_message(entry, model.name) for entry in transcript]}
    if tools:
        body["tools"] = [_tool(spec, strict=model.strict) for spec in tools]
    return body | ({"stream_options": {"include_usage": True}} if model.stream_options else {})


class ChatAnswer(StreamedAnswer):
    """An answer of Chat Completions."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._extra: dict[str, Any] = {}
        self._texts: set[str] = set()  # names of those that come in pieces of text
        self._reason: str | None = None
        self._calls = Calls()
        self._usage: Json = {}

    @property
    def complete(self) -> bool:
        return super().complete or self._reason is not None

    def take(self, event: Any) -> Sequence[Part]:
        self._events += 1
        if (error := error_in(event)) is not None:
            if too_long(error.get("code"), error.get("message")):
                raise ModelTooLong
            raise ModelCut
        if not isinstance(event, dict):
            return ()
        self._usage = said if isinstance(said := event.get("usage"), dict) else self._usage
        choices = event.get("choices")
        if not choices:
            return ()
        self._reason = choices[0].get("finish_reason") or self._reason
        delta = choices[0].get("delta")
        if delta is None and not self.spoke:  # a complete message instead of a part of one
            delta = choices[0].get("message")
        if not isinstance(delta, dict):
            return ()
        if fragments := delta.get("tool_calls"):
            self._calls.add(fragments)
            self._called, self.spoke = self._calls.size, True
        self._keep(delta)
        return self._add(_text(delta.get("content")) or _text(delta.get("refusal")), _thought(delta))

    def _keep(self, delta: Json) -> None:
        """Keep the fields that are the server's own: some want them back with the calls of an answer."""
        for name, value in delta.items():
            before = self._extra.get(name)
            if name in _KNOWN or not value:
                continue
            if isinstance(value, str) and isinstance(before, list):
                before.append(value)
            elif isinstance(value, list) and isinstance(before, list):
                before.extend(value)
            else:
                self._extra[name] = [value] if isinstance(value, str) else value
                if isinstance(value, str):
                    self._texts.add(name)

    def finished(self) -> Finished:
        stop = Stop.LENGTH if self.is_full else _STOPS.get(str(self._reason), Stop.FINISHED)
        return Finished(
            stop=stop,
            calls=self._done() if stop is Stop.FINISHED else (),
            prompt_tokens=counted(self._usage.get("prompt_tokens")),
            completion_tokens=counted(self._usage.get("completion_tokens")),
            cached_tokens=cached(self._usage.get("prompt_tokens_details")),
        )

    def _done(self) -> tuple[ToolCall, ...]:
        """The calls with what their server wants back; what belongs to the answer goes with the first."""
        answer = {name: joined("".join(v)) if name in self._texts else v for name, v in self._extra.items()}
        calls = self._calls.done()
        return tuple(
            replace(call, extra={"model": self._model, "call": call.extra, "answer": {} if at else answer})
            if call.extra or (answer and not at)
            else call
            for at, call in enumerate(calls)
        )


def _text(content: Any) -> str:
    """Read a delta's text; some servers send a list of parts, thoughts among them."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if part.get("type") == "text")
    return content or ""


def _thought(delta: Json) -> str:
    """What the model thinks, by the fields that servers use for it; not one of them is OpenAI's own."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(said := delta.get(name), str) and said:
            return said
    parts = delta.get("content")
    thinking = [part.get("thinking") for part in parts] if isinstance(parts, list) else []
    return "".join(_text(part) for part in thinking)


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
