"""The parser of a streamed answer: the part that Chat Completions and the Responses API share. Pure.

A server sends an answer as events, each a JSON value. `take` turns an event into parts: pieces of text,
pieces of reasoning, or the retraction of earlier text. When no event is left, `flush` returns the text that
was held back. `make_finished` returns the calls, the counts of tokens and the kind of the end.
``bot/agent/openai/model.py`` calls them; the subclasses are in ``chat.py`` and ``responses.py``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from bot.agent.openai.answers.end_reasons import is_temporary, is_window_full, stop_of, tell_end
from bot.agent.openai.answers.thoughts import Thoughts
from bot.domain.model import Finished, Part, Retracted, StopReason, Text, Thought
from bot.errors import ModelCut, ModelTooLong

Json = dict[str, Any]

_MAX_TEXT_CHARS = 100_000
_MAX_OTHER_CHARS = 500_000  # the limit for the arguments of all calls, and for all thoughts
_MAX_EVENTS = 200_000
_MAX_TOKENS = 1_000_000_000


class RefusedError(Exception):
    """A server sent an error in place of an answer, or within it. ``error``: the part with the reason."""

    def __init__(self, error: Any) -> None:
        super().__init__()
        self.error = error


class StreamedAnswer(ABC):
    """The parser of one streamed answer: it takes decoded events and returns their parts."""

    def __init__(self, model: str) -> None:
        self.ended = False  # the server has sent its last event
        self.has_output = False  # text or a call has come, and not only reasoning
        self._model = model
        self._thoughts = Thoughts()  # finds reasoning within the text
        self._text_chars = 0
        self._thought_chars = 0  # of reasoning that came in a field of its own
        self._call_chars = 0
        self._events = 0

    @property
    def is_usable(self) -> bool:
        """True if the answer may be used: nothing of it is missing, or it was cut at a limit."""
        return self.ended or self.is_full

    @property
    def is_full(self) -> bool:
        """True if the answer reached a limit: the rest is not read, and the answer counts as cut."""
        other_chars = max(self._call_chars, self._thought_chars)
        has_too_many_chars = self._text_chars > _MAX_TEXT_CHARS or other_chars > _MAX_OTHER_CHARS
        return has_too_many_chars or self._events > _MAX_EVENTS

    @abstractmethod
    def take(self, event: Any) -> Sequence[Part]:
        """Read an event, and return its parts. Raises RefusedError for an event that is an error."""

    @abstractmethod
    def make_finished(self) -> Finished:
        """Return the end of a complete answer, with its calls. Raises ModelError if it may not be used."""

    def mark_done(self) -> None:
        """Note the server's ``[DONE]``: the stream is complete."""
        self.ended = True

    def flush(self) -> Sequence[Part]:
        """Return the parts that were held back in case more text came."""
        return self._make_parts(self._thoughts.flush())

    def _add(self, text: str, thought: str) -> Sequence[Part]:
        """Take a piece of text and a piece of reasoning from an event, and return their parts."""
        self.has_output = self.has_output or bool(text)
        self._text_chars += len(text)
        self._thought_chars += len(thought)
        return self._make_parts(self._thoughts.add(text), thought)

    def _make_parts(self, visible: str, thought: str = "") -> Sequence[Part]:
        """Return the parts for visible text and reasoning, with the reasoning found in the text."""
        parts: list[Part] = []
        if self._thoughts.take_retraction():
            parts.append(Retracted())
        thought = self._thoughts.take_thought(thought)
        if thought:
            parts.append(Thought(thought))
        if visible:
            parts.append(Text(visible))
        return parts

    def _find_stop(self, reason: str, completion_tokens: int | None) -> StopReason:
        """Return the kind of the answer's end.

        ``reason``: the server's, as `read_end` returns it. ``completion_tokens``: the number of tokens in the
        answer, if the server counts them. Raises ModelTooLong if the prompt left no room for an answer, and
        ModelCut for a reason that is not known.
        """
        if self.is_full:
            return StopReason.LENGTH
        if not self.has_output and is_window_full(reason, completion_tokens):
            raise ModelTooLong
        stop = stop_of(reason)
        if stop is None:
            cut = ModelCut(tell_end(reason))
            cut.is_transient = is_temporary(reason)
            cut.has_reason = True
            raise cut
        return stop


def read_count(tokens: Any) -> int:
    """Return a server's count of tokens; 0 for anything else."""
    if isinstance(tokens, int) and 0 < tokens < _MAX_TOKENS:
        return tokens
    return 0


def read_cached_count(details: Any) -> int:
    """Return the number of cached prompt tokens; 0 if the server does not report it."""
    return read_count(details.get("cached_tokens") if isinstance(details, dict) else 0)
