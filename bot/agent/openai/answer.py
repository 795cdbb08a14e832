"""What both interfaces share: an answer as its stream brings it, and parts of a history. Pure."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from bot.agent.openai.streams import Deltas
from bot.domain.model import Finished, Part, Text, Thought, ToolCall, ToolResult
from bot.domain.outcomes import OUTSIDE

Json = dict[str, Any]
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")

_MOST_TEXT = 100_000  # characters of an answer
_MOST_OTHER = 500_000  # characters of its calls' arguments, and as many of its thoughts
_MOST_EVENTS = 200_000


class StreamedAnswer(ABC):
    """Takes each decoded event in and gives what it says."""

    def __init__(self, model: str) -> None:
        self.ended = False  # the server said that this is all
        self.spoke = False  # a word or a call
        self._model = model
        self._deltas = Deltas()
        self._size = self._thought = self._called = self._events = 0

    @property
    def complete(self) -> bool:
        return self.ended or self.is_full

    @property
    def is_full(self) -> bool:
        """Whether nothing more of it is read; what is there counts as cut at its length."""
        other = max(self._called, self._thought)
        return self._size > _MOST_TEXT or other > _MOST_OTHER or self._events > _MOST_EVENTS

    @abstractmethod
    def take(self, event: Any) -> Sequence[Part]:
        """What an event says. Raises ModelCut; ModelError where no retry helps."""

    @abstractmethod
    def finished(self) -> Finished:
        """The end of an answer that is complete."""

    def rest(self) -> Sequence[Part]:
        """What was held back because more of it might have come."""
        return self._parts(self._deltas.rest())

    def _add(self, said: str, thought: str) -> Sequence[Part]:
        """More text of the answer, and of what was thought."""
        self.spoke = self.spoke or bool(said)
        self._size += len(said)
        self._thought += len(thought)
        return self._parts(self._deltas.add(said), thought)

    def _parts(self, text: str, thought: str = "") -> Sequence[Part]:
        thought = self._deltas.thought(thought)
        return (*([Thought(thought)] if thought else ()), *([Text(text)] if text else ()))


def cached(details: Any) -> int:
    """How many tokens of the prompt the server had already, as far as it says."""
    found = details.get("cached_tokens") if isinstance(details, dict) else 0
    return found if isinstance(found, int) and found > 0 else 0


def said_by_tool(result: ToolResult) -> str:
    return f"{OUTSIDE}\n{result.text}" if result.outside else result.text


def sent_back(call: ToolCall, model: str, part: str) -> Json:
    """What the same model's server sent with an answer or a call, and wants back."""
    found = call.extra.get(part)
    return dict(found) if found and call.extra.get("model") == model else {}


def plain_name(name: str) -> str:
    """A tool's name as servers take it: models call what does not exist, and servers check the history."""
    return _NO_NAME.sub("_", name)[:64]


def argument_object(arguments: str) -> str:
    """Repair arguments that are sent back: some servers refuse every history that holds broken JSON."""
    try:
        whole = isinstance(json.loads(arguments), dict)
    except ValueError:
        whole = False
    return arguments if whole else json.dumps({"not_json": arguments})
