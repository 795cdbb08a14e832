"""A stream as events and text, and an answer as its stream brings it: what both interfaces share. Pure.

Events are split at the byte, not with ``str.splitlines``: JSON may hold U+2028 unescaped. Servers that cut
text by UTF-16 units send one emoji as two lone surrogates in two chunks. Reasoning models behind servers
without a field for it put ``<think>…</think>`` at the start of a line.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from bot.domain.model import Finished, Part, Text, Thought, ToolCall, ToolResult
from bot.domain.outcomes import OUTSIDE

Json = dict[str, Any]

MOST_BYTES = 4 * 1024 * 1024  # of one event
_MOST_TEXT = 100_000  # characters of an answer
_MOST_OTHER = 500_000  # characters of its calls' arguments, and as many of its thoughts
_MOST_EVENTS = 200_000
_MOST_TOKENS = 1_000_000_000
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


class EventTooLongError(Exception):
    """An event without an end."""


async def data_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Yield one event's data at a time. An event the server did not close with an empty line counts too.

    Raises UnicodeDecodeError when an event is not UTF-8, EventTooLongError for one of more than `MOST_BYTES`,
    and whatever ``chunks`` raises.
    """
    begun: list[bytes] = []  # a line that has not ended
    fields: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MOST_BYTES:
            raise EventTooLongError
        first, *others = chunk.split(b"\n")
        begun.append(first)
        if not others:
            continue
        lines, begun = [b"".join(begun), *others[:-1]], [others[-1]]
        for line in lines:
            text = line.rstrip(b"\r")
            if text:
                if text.startswith(b"data:"):
                    fields.append(text[5:].removeprefix(b" "))
            elif fields:
                yield b"\n".join(fields).decode()
                fields.clear()
                size = len(begun[0])
    rest = b"".join(begun)
    if rest.startswith(b"data:"):
        fields.append(rest[5:].strip())
    if fields:
        yield b"\n".join(fields).decode()


_OPEN, _CLOSE = "<think>", "</think>"
_BEGUN = re.compile(r"(?:\A\s*|^[ \t]*)(<think>|<(?:t(?:h(?:i(?:n(?:k)?)?)?)?)?\Z)", re.MULTILINE)
"""A thought, or what may become one, at the start of a line."""
_HIGH = range(0xD800, 0xDC00)


def joined(text: str) -> str:
    """The text with pairs of lone surrogates joined, and what is left of them replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Deltas:
    """Takes one answer's text in as it comes; gives out what may be shown, and what was thought."""

    def __init__(self) -> None:
        self._held = ""
        self._thought = ""
        self._line = ""  # the first letter of the line that was begun
        self._thinking = False

    def add(self, text: str) -> str:
        """More of the answer; returns what of it can be shown now."""
        self._held += text
        shown = self._without_thoughts()
        if shown and ord(shown[-1]) in _HIGH:
            self._held = shown[-1] + self._held
            shown = shown[:-1]
        return joined(shown)

    def thought(self, text: str = "") -> str:
        """What was thought since this was last asked, and more of it from a field of its own."""
        thought, self._thought = self._thought + text, ""
        return joined(thought)

    def rest(self) -> str:
        """What was held back when the answer ended. A thought that never ended is not shown."""
        held, self._held = self._held, ""
        if self._thinking:
            self._thought += held
            return ""
        return joined(held)

    def _without_thoughts(self) -> str:
        shown = ""
        while True:
            if self._thinking:
                thought, found, after = self._held.partition(_CLOSE)
                kept = 0 if found else len(_CLOSE) - 1  # it may be the beginning of the end
                sure = max(0, len(thought) - kept)
                self._thought += thought[:sure]
                if not found:
                    self._held = thought[sure:]
                    return shown
                self._held, self._thinking = after.lstrip(), False
            begun = _BEGUN.search(self._line + self._held)
            at = begun.start() - len(self._line) if begun else len(self._held)
            words, self._held = self._held[:at], self._held[at:]
            shown, self._line = shown + words, (self._line + words).rpartition("\n")[2].strip()[:1]
            if begun is None or begun[1] != _OPEN:
                return shown
            self._held, self._thinking = self._held.lstrip().removeprefix(_OPEN), True


_KNOWN = {"index", "id", "type", "function"}
_OF_A_CALL = 100


@dataclass(slots=True)
class _Open:
    """A call that may still grow."""

    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def whole(self) -> bool:
        """Whether the arguments are complete JSON already, so that more text cannot belong to them."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            json.loads(self.arguments)
        except ValueError:
            return False
        return True


def _new_id() -> str:
    return f"call_{uuid4().hex}"


class Calls:
    """Grows with each fragment; `done` gives the calls in the order in which they began."""

    def __init__(self, make_id: Callable[[], str] = _new_id) -> None:
        self._make_id = make_id
        self._open: list[_Open] = []
        self.size = 0  # characters, about

    def add(self, fragments: Any) -> None:
        """Take one chunk's ``delta.tool_calls``: a list of objects, or null."""
        for fragment in fragments or ():
            function = fragment.get("function") or {}
            given, name = (str(each or "") for each in (fragment.get("id"), function.get("name")))
            index = fragment.get("index")
            arguments = function.get("arguments")
            if arguments is None:
                arguments = ""
            elif not isinstance(arguments, str):  # an object instead of its text
                arguments = json.dumps(arguments, ensure_ascii=False)
            call = known = self._growing(given, name, index)
            if call is None:
                call = _Open(index)
                self._open.append(call)
            call.id = call.id or given
            call.name = call.name or name
            if arguments:
                call.pieces.append(arguments)
            call.extra |= {key: value for key, value in fragment.items() if key not in _KNOWN and value}
            self.size += len(arguments) + _OF_A_CALL * (call is not known)

    def _growing(self, given: str, name: str, index: int | None) -> _Open | None:
        """Find the open call a fragment belongs to; None when it begins a new one."""
        if given and (known := self._latest(lambda call: call.id == given)):
            # one id for two calls: only a name together with another index can mean that
            return None if name and known.index != index else known
        at = self._latest(lambda call: call.index == index) if index is not None else None
        if at is None and (index is None or not (given or name)):
            at = self._open[-1] if self._open else None
        if at is None:
            return None
        if given and at.id:
            return None
        if name and at.name and (name != at.name or at.whole):
            return None
        return at

    def _latest(self, fits: Callable[[_Open], bool]) -> _Open | None:
        return next((call for call in reversed(self._open) if fits(call)), None)

    def done(self) -> tuple[ToolCall, ...]:
        """Every call that got a name. Ids are made where the server sent none or the same one twice."""
        calls: list[ToolCall] = []
        used: set[str] = set()
        for call in self._open:
            if not call.name:
                continue
            call_id = joined(call.id if call.id and call.id not in used else self._make_id())
            used.add(call_id)
            calls.append(ToolCall(call_id, joined(call.name), joined(call.arguments) or "{}", call.extra))
        return tuple(calls)


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


def counted(tokens: Any) -> int:
    """A server's count of tokens; 0 for anything else."""
    return tokens if isinstance(tokens, int) and 0 < tokens < _MOST_TOKENS else 0


def cached(details: Any) -> int:
    """How many tokens of the prompt the server had already, as far as it says."""
    return counted(details.get("cached_tokens") if isinstance(details, dict) else 0)


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
