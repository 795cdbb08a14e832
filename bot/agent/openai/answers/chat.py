"""The parser of an answer of Chat Completions, in the forms in which servers send it. Pure.

An event (a chunk) has choices, of which usually there is one. A choice has a ``delta``: the next piece of the
answer, with text, reasoning, or fragments of calls. The last event names the reason for the end. A server
that does not stream sends one event, with the complete ``message`` in place of the delta.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bot.agent.openai.answers.answer import Json, RefusedError, StreamedAnswer, read_cached_count, read_count
from bot.agent.openai.answers.calls import Calls
from bot.agent.openai.answers.end_reasons import read_end
from bot.agent.openai.answers.refusals import find_error
from bot.agent.openai.answers.thoughts import join_surrogates
from bot.domain.model import Finished, Part, StopReason, ToolCall

_KNOWN_FIELDS = {"role", "content", "tool_calls", "refusal", "function_call", "audio", "annotations"}
"""The fields of a delta that are OpenAI's.

All others are the server's own: some servers need them back in the next request.
"""
_ENDS_WITH_CALLS = ("tool_calls", "tool_call", "tool_use", "function_call")
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")


class _CallFragments(NamedTuple):
    """The calls of a delta, or pieces of calls."""

    form: str  # the field that has them: tool_calls, function_call or content
    fragments: list[Json]


class ChatAnswer(StreamedAnswer):
    """The parser of one answer of Chat Completions: see `StreamedAnswer` for its methods."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._own_fields: dict[str, Any] = {}  # the fields that only this server has, by name
        self._split_fields: set[str] = set()  # the names of own fields whose text comes in pieces
        self._end = ""  # the reason for the end, as `read_end` returns it
        self._calls = Calls()
        self._second_calls = Calls()  # the calls of a second choice
        self._first_index: int | None = None  # the index of the choice that is read as the answer
        self._second_index: int | None = None  # the index of the second choice, if one has calls
        self._call_form = ""  # the form of the first calls (see `_find_calls`); no other form is read then
        self._usage: Json = {}  # the newest counts of tokens

    @property
    def is_usable(self) -> bool:
        return super().is_usable or self._end != ""

    def take(self, event: Any) -> Sequence[Part]:
        self._events += 1
        error = find_error(event)
        if error is not None:
            raise RefusedError(error)
        if not isinstance(event, dict):
            return ()
        inner = event.get("data")
        if isinstance(inner, dict) and "choices" not in event:
            event = inner  # the event in a gateway's envelope
        self._read_usage(event)
        self._read_usage(event.get("x_groq"))
        parts: list[Part] = []
        for position, choice in enumerate(event.get("choices") or ()):
            parts += self._take_choice(choice, position)
        return parts

    def _read_usage(self, holder: Any) -> None:
        """Keep the counts of tokens, if this object has them.

        Most servers send ``usage`` in an event, Groq in ``x_groq``, Moonshot in a choice.
        """
        usage = holder.get("usage") if isinstance(holder, dict) else None
        if isinstance(usage, dict):
            self._usage = usage

    def _take_choice(self, choice: Json, position: int) -> Sequence[Part]:
        """Read a choice. The first choice is the answer.

        Of a second choice, only the calls are kept: gateways of Claude put the words into one choice and the
        calls into the next. Further choices are ignored.
        """
        index = choice.get("index")
        if not isinstance(index, int):
            index = position
        if self._first_index is None:
            self._first_index = index
        if index == self._first_index:
            return self._take_first_choice(choice)
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict) and self._second_index in (None, index):
            fragments = _find_calls(delta).fragments
            if fragments:
                self._second_index = index
                self._second_calls.add(fragments)
                self._call_chars = self._calls.size + self._second_calls.size
        return ()

    def _take_first_choice(self, choice: Json) -> Sequence[Part]:
        error = choice.get("error")
        if error:
            raise RefusedError(error)
        self._end = read_end(choice.get("finish_reason")) or self._end
        self._read_usage(choice)
        delta = self._choose_delta(choice)
        if delta is None:
            return ()
        error = delta.get("error")
        if isinstance(error, dict | str) and error:
            raise RefusedError(error)
        form, fragments = _find_calls(delta)
        if fragments and self._call_form in ("", form):
            self._call_form = form
            self._calls.add(fragments)
            self._call_chars = self._calls.size + self._second_calls.size
            self.has_output = True
        self._keep_own_fields(delta)
        text = _read_text(delta.get("content")) or _read_text(delta.get("refusal"))
        return self._add(text, _read_thought(delta))

    def _choose_delta(self, choice: Json) -> Json | None:
        """Return the new piece of the answer in a choice, or None.

        - ``delta``: a piece of a stream.
        - ``message``: the complete answer, of which the parts that came in pieces before are not read again.
        - ``text``: a piece in the older format of completions.
        """
        delta = choice.get("delta")
        message = choice.get("message")
        if not isinstance(delta, dict) and isinstance(message, dict):
            if self._call_chars:
                delta = {}
            elif self._text_chars:
                delta = {"tool_calls": message.get("tool_calls")}
            else:
                delta = message
        text = choice.get("text")
        if isinstance(text, str) and not delta:
            delta = {"content": text}
        return delta if isinstance(delta, dict) else None

    def _keep_own_fields(self, delta: Json) -> None:
        """Keep the fields that only this server has: some servers want them back with the calls of an answer.

        The pieces of a text, and the items of a list, are collected. Texts are joined in `_finish_calls`. A
        value of another type than before replaces what was collected.
        """
        for name, value in delta.items():
            if name in _KNOWN_FIELDS or not value:
                continue
            collected = self._own_fields.get(name)
            is_text_so_far = name in self._split_fields
            if isinstance(value, str) and is_text_so_far and isinstance(collected, list):  # a further piece
                collected.append(value)
            elif isinstance(value, str):  # the first piece of a text
                self._own_fields[name] = [value]
                self._split_fields.add(name)
            elif isinstance(value, list) and isinstance(collected, list) and not is_text_so_far:
                collected.extend(value)  # further items of a list
            else:
                self._own_fields[name] = value
                self._split_fields.discard(name)

    def make_finished(self) -> Finished:
        counted = self._usage.get("completion_tokens")
        stop = self._find_stop(self._end, counted if isinstance(counted, int) else None)
        return Finished(
            stop=stop,
            calls=self._finish_calls() if stop is StopReason.FINISHED else (),
            prompt_tokens=read_count(self._usage.get("prompt_tokens")),
            completion_tokens=read_count(counted),
            cached_tokens=read_cached_count(self._usage.get("prompt_tokens_details")),
        )

    def _finish_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls, each with the ``server_fields`` that only this server has and wants back.

        The fields of the answer go with the first call. The second choice's calls are returned if the first
        choice has none although its end says "tool calls".
        """
        answer_fields = {}
        for name, value in self._own_fields.items():
            answer_fields[name] = join_surrogates("".join(value)) if name in self._split_fields else value
        calls = self._calls.finish()
        if not calls and self._end in _ENDS_WITH_CALLS:
            calls = self._second_calls.finish()
        finished_calls: list[ToolCall] = []
        for call in calls:
            own_fields = {} if finished_calls else answer_fields
            if call.server_fields or own_fields:
                extra = {"model": self._model, "call": call.server_fields, "answer": own_fields}
                finished_calls.append(replace(call, server_fields=extra))
            else:
                finished_calls.append(call)
        return tuple(finished_calls)


def _find_calls(delta: Json) -> _CallFragments:
    """Return the calls in a delta, or pieces of calls.

    The forms that calls may have:

    - ``tool_calls``: a list, one call, or an object whose values are calls.
    - ``function_call``: one call, in the older field.
    - ``content``: those parts of the content that are calls.

    A call in two of these forms is one call, so only the first form is read.
    """
    calls = delta.get("tool_calls")
    if isinstance(calls, dict):
        calls = _list_calls(calls)
    if isinstance(calls, list):
        calls = [call for call in calls if isinstance(call, dict) and call]
    if isinstance(calls, list) and calls:
        return _CallFragments("tool_calls", calls)
    older = delta.get("function_call")
    if isinstance(older, dict):
        return _CallFragments("function_call", [{"index": 0, "function": older}])
    parts = delta.get("content")
    if not isinstance(parts, list):
        return _CallFragments("content", [])
    return _CallFragments("content", [part for part in parts if _is_call(part)])


def _list_calls(given: Json) -> list[Json]:
    """Return the calls of an object: the object itself if it is one call, else its values."""
    if {"function", "name", "arguments"} & given.keys():
        return [given]
    return [{"index": index} | call for index, call in enumerate(given.values()) if isinstance(call, dict)]


def _is_call(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("tool_use", "tool_call", "function_call")


def _read_text(content: Any) -> str:
    """Return the text of a delta's content; some servers send it as a list of parts, thoughts among them."""
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, list):
        return "".join(map(_read_part, content))
    return content or ""


def _read_part(part: Any) -> str:
    """Return the text of a part; empty for a part that is no text."""
    if isinstance(part, dict):
        if part.get("type") in ("text", None):
            return part.get("text") or ""
        return ""
    return part if isinstance(part, str) else ""


def _read_thought(delta: Json) -> str:
    """Return the model's reasoning in a delta, from any of the fields that servers use.

    None of these fields is OpenAI's own.
    """
    for name in _THOUGHT_FIELDS:
        thought = delta.get(name)
        if isinstance(thought, str) and thought:
            return thought
    parts = delta.get("content")
    if not isinstance(parts, list):
        return ""
    return "".join(_read_text(part.get("thinking")) for part in parts if isinstance(part, dict))
