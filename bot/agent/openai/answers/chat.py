"""The stream of an answer of Chat Completions, and what servers send in its place. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.agent.openai.answers.answer import Json, RefusedError, StreamedAnswer, read_cached_count, read_count
from bot.agent.openai.answers.calls import Calls
from bot.agent.openai.answers.ends import read_end
from bot.agent.openai.answers.refusals import find_error
from bot.agent.openai.answers.thoughts import join_surrogates
from bot.domain.model import Finished, Part, Stop, ToolCall

_KNOWN = {"role", "content", "tool_calls", "refusal", "function_call", "audio", "annotations"}
_ENDS_WITH_CALLS = ("tool_calls", "tool_call", "tool_use", "function_call")
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")


class ChatAnswer(StreamedAnswer):
    """An answer of Chat Completions."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._extra: dict[str, Any] = {}
        self._texts: set[str] = set()  # names of those that come in pieces of text
        self._end = ""
        self._calls = Calls()
        self._others = Calls()  # of a second choice
        self._first: int | None = None  # the choice that is read
        self._second: int | None = None
        self._form = ""  # in which its calls come; what comes in another one says the same again
        self._usage: Json = {}

    @property
    def complete(self) -> bool:
        return super().complete or self._end != ""

    def take(self, event: Any) -> Sequence[Part]:
        self._events += 1
        error = find_error(event)
        if error is not None:
            raise RefusedError(error)
        if not isinstance(event, dict):
            return ()
        inner = event.get("data")
        if isinstance(inner, dict) and "choices" not in event:
            event = inner  # in an envelope of a gateway
        self._read_usage(event)
        self._read_usage(event.get("x_groq"))
        parts: list[Part] = []
        for at, choice in enumerate(event.get("choices") or ()):
            parts += self._take_part(choice, at)
        return parts

    def _read_usage(self, holder: Any) -> None:
        """Keep the tokens that a part of an answer tells; Moonshot has them in a choice, most in a chunk."""
        usage = holder.get("usage") if isinstance(holder, dict) else None
        self._usage = usage if isinstance(usage, dict) else self._usage

    def _take_part(self, choice: Json, at: int) -> Sequence[Part]:
        """Read a choice: the first one is the answer. Another is a second answer, of which calls are kept.

        Gateways of Claude put the words into one choice and the calls into the next.
        """
        index = choice.get("index")
        key = index if isinstance(index, int) else at
        self._first = key if self._first is None else self._first
        if key == self._first:
            return self._take_choice(choice)
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict) and self._second in (None, key):
            _, fragments = _fragments(delta)
            self._second = key if fragments else self._second
            self._others.add(fragments)
            self._called = self._calls.size + self._others.size
        return ()

    def _take_choice(self, choice: Json) -> Sequence[Part]:
        error = choice.get("error")
        if error:
            raise RefusedError(error)
        self._end = read_end(choice.get("finish_reason")) or self._end
        self._read_usage(choice)
        delta, message = choice.get("delta"), choice.get("message")
        if not isinstance(delta, dict) and isinstance(message, dict):
            if self._size:  # its words came in parts before, its calls perhaps not
                message = {} if self._called else {"tool_calls": message.get("tool_calls")}
            delta = message if not self._called else {}
        text = choice.get("text")
        if isinstance(text, str) and not delta:  # of older completions
            delta = {"content": text}
        if not isinstance(delta, dict):
            return ()
        error = delta.get("error")
        if isinstance(error, dict | str) and error:
            raise RefusedError(error)
        form, fragments = _fragments(delta)
        if fragments and self._form in ("", form):
            self._form = form
            self._calls.add(fragments)
            self._called, self.spoke = self._calls.size + self._others.size, True
        self._keep(delta)
        return self._add(_text(delta.get("content")) or _text(delta.get("refusal")), _read_thought(delta))

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
        written = self._usage.get("completion_tokens")
        stop = self._stop(self._end, written if isinstance(written, int) else None)
        return Finished(
            stop=stop,
            calls=self._finish_calls() if stop is Stop.FINISHED else (),
            prompt_tokens=read_count(self._usage.get("prompt_tokens")),
            completion_tokens=read_count(written),
            cached_tokens=read_cached_count(self._usage.get("prompt_tokens_details")),
        )

    def _finish_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls with what their server wants back.

        What belongs to the answer goes with the first.
        """
        answer = {
            name: join_surrogates("".join(v)) if name in self._texts else v for name, v in self._extra.items()
        }
        calls = self._calls.done()
        if not calls and self._end in _ENDS_WITH_CALLS:
            calls = self._others.done()
        return tuple(
            replace(call, extra={"model": self._model, "call": call.extra, "answer": {} if at else answer})
            if call.extra or (answer and not at)
            else call
            for at, call in enumerate(calls)
        )


def _fragments(delta: Json) -> tuple[str, list[Json]]:
    """Return the calls in a delta, and the form they have there.

    That is a list, one object, objects by their number, the older field, or parts of the contents. Where one
    call comes in two of them it is still one.
    """
    calls = delta.get("tool_calls")
    if isinstance(calls, dict):
        single = {"function", "name", "arguments"} & calls.keys()
        numbered = ({"index": at} | call for at, call in enumerate(calls.values()) if isinstance(call, dict))
        calls = [calls] if single else list(numbered)
    if isinstance(calls, list) and (calls := [call for call in calls if isinstance(call, dict) and call]):
        return "tool_calls", calls
    older = delta.get("function_call")
    if isinstance(older, dict):
        return "function_call", [{"index": 0, "function": older}]
    parts = delta.get("content")
    if isinstance(parts, list):
        made = [part for part in parts if _is_call(part)]
    else:
        made = []
    return "content", made


def _is_call(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("tool_use", "tool_call", "function_call")


def _text(content: Any) -> str:
    """Read a delta's text; some servers send a list of parts, thoughts among them."""
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, list):
        return "".join(map(_part_text, content))
    return content or ""


def _part_text(part: Any) -> str:
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
        said = delta.get(name)
        if isinstance(said, str) and said:
            return said
    parts = delta.get("content")
    if isinstance(parts, list):
        thinking = [part for part in parts if isinstance(part, dict)]
    else:
        thinking = []
    return "".join(_text(part.get("thinking")) for part in thinking)
