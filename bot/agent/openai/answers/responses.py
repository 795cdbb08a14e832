"""The parser of an answer of the Responses API. Pure.

The output of a response is a list of items: messages, calls, reasoning. Events bring pieces of an item's
text, then each complete item, and the last event repeats the complete response. A server that does not stream
sends only that response. Events: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Iterator, Sequence
from typing import Any

from bot.agent.openai.answers.answer import Json, RefusedError, StreamedAnswer, read_cached_count, read_count
from bot.agent.openai.answers.arguments import read_arguments
from bot.agent.openai.answers.calls import claim_id
from bot.agent.openai.answers.end_reasons import read_end
from bot.agent.openai.answers.refusals import find_error
from bot.agent.openai.answers.thoughts import join_surrogates
from bot.domain.model import Finished, Part, StopReason, ToolCall

_END_EVENTS = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
)
_THOUGHT_EVENTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_TEXT_EVENTS = frozenset({"response.output_text.delta", "response.refusal.delta"})


class ResponsesAnswer(StreamedAnswer):
    """The parser of one answer of the Responses API: see `StreamedAnswer` for its methods."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._items: list[Json] = []  # the complete items of the output
        self._response: Json = {}  # the response of the last event

    def take(self, event: Any) -> Sequence[Part]:
        self._events += 1
        if not isinstance(event, dict):
            return ()
        kind = event.get("type")
        if event.get("object") == "response":  # a complete answer instead of a stream: read as the last event
            kind = f"response.{event.get('status')}"
            event = {"response": event}
        elif not str(kind or "").startswith("response."):
            error = find_error(event)
            if error is not None:
                raise RefusedError(error)
        delta = event.get("delta")
        if not isinstance(delta, str):
            delta = ""
        item = event.get("item")
        if kind in _TEXT_EVENTS:
            return self._add(delta, "")
        if kind in _THOUGHT_EVENTS:
            return self._add("", delta)
        if kind == "response.function_call_arguments.delta":
            self.has_output = True
            self._call_chars += len(delta)
        elif kind == "response.output_item.done" and isinstance(item, dict):
            self._items.append(item)
            counted = item.get("arguments") or item.get("encrypted_content")  # of a call, or of reasoning
            self._call_chars += len(str(counted or ""))
        elif kind in _END_EVENTS:
            return self._take_response(event.get("response"))
        return ()

    def _take_response(self, response: Any) -> Sequence[Part]:
        """Read the complete response of the last event, but not again the text and items that came before."""
        self._response = response if isinstance(response, dict) else {}
        if self._response.get("status") == "failed" or self._response.get("error"):
            raise RefusedError(self._response.get("error") or "")
        self.ended = True
        output = [item for item in self._response.get("output") or () if isinstance(item, dict)]
        self._items = self._items or output
        text = "" if self._text_chars else "".join(_list_texts(output))
        return self._add(text, "")

    def mark_done(self) -> None:
        """Do nothing: this interface ends with its last event, not with ``[DONE]``."""

    def make_finished(self) -> Finished:
        given_usage = self._response.get("usage")
        usage = given_usage if isinstance(given_usage, dict) else {}
        status = read_end(self._response.get("status"))
        details = self._response.get("incomplete_details")
        reason = read_end(details.get("reason") if isinstance(details, dict) else "")
        self.has_output = self.has_output or any(item.get("type") == "function_call" for item in self._items)
        output_tokens = usage.get("output_tokens")
        stop = self._find_stop(reason or status, output_tokens if isinstance(output_tokens, int) else None)
        return Finished(
            stop=stop,
            calls=self._read_calls() if stop is StopReason.FINISHED else (),
            prompt_tokens=read_count(usage.get("input_tokens")),
            completion_tokens=read_count(output_tokens),
            cached_tokens=read_cached_count(usage.get("input_tokens_details")),
        )

    def _read_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls. The first has the model's encrypted reasoning, to be sent back with it."""
        reasoning = []
        calls = []
        for item in self._items:
            if item.get("type") == "reasoning" and item.get("encrypted_content"):
                reasoning.append(_make_item_to_send_back(item))
            elif item.get("type") == "function_call" and item.get("name"):
                calls.append(item)
        extra_of_first = {"model": self._model, "answer": {"items": reasoning}} if reasoning else {}
        used_ids: set[str] = set()
        read_calls: list[ToolCall] = []
        for item in calls:
            extra = {} if read_calls else extra_of_first
            read_calls.append(_read_call(item, extra, used_ids))
        return tuple(read_calls)


def _read_call(item: Json, extra: Json, used_ids: set[str]) -> ToolCall:
    arguments = read_arguments(item.get("arguments"))
    return ToolCall(
        id=claim_id(str(item.get("call_id") or item.get("id") or ""), used_ids),
        name=join_surrogates(str(item["name"])),
        arguments=arguments.text,
        server_fields=extra,
        refusal=arguments.refusal,
    )


def _make_item_to_send_back(item: Json) -> Json:
    """Return an output item without ``status``, which a server sets but does not accept."""
    return {name: value for name, value in item.items() if name != "status"}


def _list_texts(output: Sequence[Json]) -> Iterator[str]:
    """Yield the texts of the messages in an output."""
    for item in output:
        if item.get("type") != "message":
            continue
        for part in item.get("content") or ():
            if isinstance(part, dict):
                yield str(part.get("text") or part.get("refusal") or "")
            elif isinstance(part, str):
                yield part
