"""The stream of an answer of the Responses API. Pure.

Events: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Iterator, Sequence
from typing import Any

from bot.agent.openai.answers.answer import Json, RefusedError, StreamedAnswer, read_cached_count, read_count
from bot.agent.openai.answers.arguments import read_arguments
from bot.agent.openai.answers.calls import claim_id
from bot.agent.openai.answers.ends import read_end
from bot.agent.openai.answers.refusals import find_error
from bot.agent.openai.answers.thoughts import join_surrogates
from bot.domain.model import Finished, Part, Stop, ToolCall

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_WORDS = frozenset({"response.output_text.delta", "response.refusal.delta"})


class ResponsesAnswer(StreamedAnswer):
    """An answer of the Responses API."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._items: list[Json] = []  # the complete items of the output
        self._response: Json = {}  # the response of the last event

    def take(self, event: Any) -> Sequence[Part]:
        self._events += 1
        if not isinstance(event, dict):
            return ()
        kind = event.get("type")
        if event.get("object") == "response":  # a complete answer instead of a stream
            kind, event = f"response.{event.get('status')}", {"response": event}
        elif (error := find_error(event)) is not None and not str(kind or "").startswith("response."):
            raise RefusedError(error)
        delta = event.get("delta")
        delta = delta if isinstance(delta, str) else ""
        if kind in _WORDS:
            return self._add(delta, "")
        if kind in _THOUGHTS:
            return self._add("", delta)
        if kind == "response.function_call_arguments.delta":
            self.spoke = True
            self._call_chars += len(delta)
        elif kind == "response.output_item.done" and isinstance(item := event.get("item"), dict):
            self._items.append(item)
            self._call_chars += len(str(item.get("arguments") or item.get("encrypted_content") or ""))
        elif kind in _ENDS:
            return self._close(event.get("response"))
        return ()

    def _close(self, response: Any) -> Sequence[Part]:
        """Read the last event, which repeats the complete output."""
        self._response = response if isinstance(response, dict) else {}
        if self._response.get("status") == "failed" or self._response.get("error"):
            raise RefusedError(self._response.get("error") or "")
        self.ended = True
        output = [item for item in self._response.get("output") or () if isinstance(item, dict)]
        self._items = self._items or output
        said = "" if self._text_chars else "".join(_texts(output))
        return self._add(said, "")

    def end(self) -> None:
        """Do nothing: this interface ends with its last event, not with ``[DONE]``."""

    def finished(self) -> Finished:
        details, usage = self._response.get("incomplete_details"), self._response.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        status = read_end(self._response.get("status"))
        reason = read_end(details.get("reason") if isinstance(details, dict) else "")
        self.spoke = self.spoke or any(item.get("type") == "function_call" for item in self._items)
        written = usage.get("output_tokens")
        stop = self._stop(reason or status, written if isinstance(written, int) else None)
        return Finished(
            stop=stop,
            calls=self._calls() if stop is Stop.FINISHED else (),
            prompt_tokens=read_count(usage.get("input_tokens")),
            completion_tokens=read_count(written),
            cached_tokens=read_cached_count(usage.get("input_tokens_details")),
        )

    def _calls(self) -> tuple[ToolCall, ...]:
        """Return the calls. The model's reasoning is kept with the first call, to be sent back."""
        thoughts = [item for item in self._items if item.get("type") == "reasoning"]
        kept = {
            "items": [_make_item_to_send_back(item) for item in thoughts if item.get("encrypted_content")]
        }
        extra = {"model": self._model, "answer": kept} if kept["items"] else {}
        found = [item for item in self._items if item.get("type") == "function_call" and item.get("name")]
        used: set[str] = set()
        return tuple(_call(item, {} if at else extra, used) for at, item in enumerate(found))


def _call(item: Json, extra: Json, used: set[str]) -> ToolCall:
    read = read_arguments(item.get("arguments"))
    ident = claim_id(str(item.get("call_id") or item.get("id") or ""), used)
    return ToolCall(ident, join_surrogates(str(item["name"])), read.text, extra, read.refused)


def _make_item_to_send_back(item: Json) -> Json:
    """Return an output item without ``status``, which a server sets but does not accept."""
    return {name: value for name, value in item.items() if name != "status"}


def _texts(output: Sequence[Json]) -> Iterator[str]:
    for item in output:
        for part in item.get("content") or () if item.get("type") == "message" else ():
            if isinstance(part, dict):
                yield str(part.get("text") or part.get("refusal") or "")
            elif isinstance(part, str):
                yield part
