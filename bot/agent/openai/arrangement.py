"""Arrangement of a history in the one order that all model servers accept. Pure.

Nod's rows give a history as it happened: people write while a call waits, one after the other, and a model
stops in the middle. Some servers and many chat templates refuse that: a person's words after a tool's, two
messages of one role in a row, the system's in the middle, an answer without words, the ids of another maker.
Here the same is said in an order that none of them refuses, and nothing of it is left out. Sources: the
checkers of the tests' model server.
"""

import hashlib
import string
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.agent.transcript import NOTE
from bot.domain.model import AssistantText, Entry, SystemText, ToolCall, ToolResult, UserText

_LETTERS = string.digits + string.ascii_letters
_ID_CHARS = 9  # as Mistral's servers and templates want it
_BRIDGE = "Understood."
_BEGUN = f"{NOTE} The beginning of this conversation is left out."
_CONTINUE = f"{NOTE} Continue."
_EMPTY = f"{NOTE} (A message without words.)"
_NO_OUTPUT = "no output"
_NO_RESULT = "ERROR: no result was kept for this call."


@dataclass(frozen=True, slots=True)
class UserTexts:
    """Consecutive messages of people and Nod, sent as one message of several parts.

    The parts are indented so that none can imitate the beginning of another.
    """

    parts: tuple[UserText, ...]

    @property
    def texts(self) -> list[str]:
        """The text of each part; where there are several, all lines but the first are indented."""
        if len(self.parts) == 1:
            return [self.parts[0].spoken]
        return [_indent(each.spoken) for each in self.parts]

    @property
    def spoken(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def has_pictures(self) -> bool:
        return any(each.pictures for each in self.parts)


Arranged = SystemText | UserTexts | AssistantText | ToolResult


def arrange(transcript: Sequence[Entry], *, one_by_one: bool = False) -> list[Arranged]:
    """Return the history in an order that all model servers accept.

    The system prompt comes first, then people and the model in turns. ``one_by_one``: each call of an answer
    is followed by its own result, for servers that know of one call at a time. Ids of calls become short
    ones, the same each time.
    """
    system = "\n\n".join(
        each.text for each in transcript if isinstance(each, SystemText) and each.text.strip()
    )
    arranged: list[Arranged] = [SystemText(system)] if system else []
    head = len(arranged)
    spoken = [each for each in transcript if not isinstance(each, SystemText)]
    for entry in _with_short_ids(_with_results(spoken, one_by_one=one_by_one)):
        before = arranged[-1] if len(arranged) > head else None
        match entry:
            case UserText():
                said = _fill_empty_text(entry)
                if isinstance(before, UserTexts):
                    arranged[-1] = UserTexts((*before.parts, said))
                    continue
                if isinstance(before, ToolResult):
                    arranged.append(AssistantText(_BRIDGE))
                arranged.append(UserTexts((said,)))
            case AssistantText(text, calls):
                if before is None:
                    arranged.append(UserTexts((UserText(_BEGUN),)))
                if isinstance(before, AssistantText):  # without calls: else results follow it
                    both = "\n\n".join(each for each in (before.text, text) if each.strip())
                    arranged[-1] = AssistantText(both, calls)
                elif calls or text.strip():
                    arranged.append(entry)
            case ToolResult():
                arranged.append(entry if entry.text.strip() else replace(entry, text=_NO_OUTPUT))
    if len(arranged) == head or isinstance(arranged[-1], AssistantText):
        arranged.append(UserTexts((UserText(_CONTINUE),)))
    return arranged


def without_system_role(transcript: Sequence[Entry]) -> list[Entry]:
    """Return the history for a model that has no such role: what it is told begins people's first message."""
    told = "\n\n".join(entry.text for entry in transcript if isinstance(entry, SystemText))
    others: list[Entry] = [entry for entry in transcript if not isinstance(entry, SystemText)]
    match others:
        case [UserText() as first, *rest] if told:
            return [replace(first, text=f"{told}\n\n{first.spoken}", name="", when=""), *rest]
        case _:
            if told:
                return [UserText(told), *others]
            return others


def without_reasoning(call: ToolCall) -> ToolCall:
    """Return a call without what its server sent along with it and may no longer know."""
    if call.extra:
        return replace(call, extra={})
    return call


def short_id(ident: str, again: int = 0) -> str:
    """Make nine letters and digits of a call's id, always the same; ``again``: how often it came before."""
    number = int.from_bytes(hashlib.sha256(f"{again} {ident}".encode("utf-8", "replace")).digest()[:16])
    letters = []
    for _ in range(_ID_CHARS):
        number, at = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[at])
    return "".join(letters)


def _with_results(entries: Sequence[Entry], *, one_by_one: bool) -> Iterator[Entry]:
    """Yield the entries with every call's result directly after its answer.

    A call without a result gets one that says so. A result without its call is dropped.
    """
    at = 0
    while at < len(entries):
        entry = entries[at]
        at += 1
        if isinstance(entry, ToolResult):
            continue  # of a call that is gone
        if not isinstance(entry, AssistantText) or not entry.calls:
            yield entry
            continue
        found: dict[str, ToolResult] = {}
        while at < len(entries) and isinstance(result := entries[at], ToolResult):
            found.setdefault(result.call_id, result)
            at += 1
        results = [found.get(call.id) or ToolResult(call.id, _NO_RESULT) for call in entry.calls]
        if not one_by_one:
            yield entry
            yield from results
            continue
        for place, (call, result) in enumerate(zip(entry.calls, results, strict=True)):
            yield AssistantText("" if place else entry.text, (call,))
            yield result


def _with_short_ids(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Yield the entries with short call ids that all servers accept.

    An id that a server used twice becomes two.
    """
    used: Counter[str] = Counter()
    awaited: deque[str] = deque()  # ids of the results that come next, in the order of their calls
    for entry in entries:
        match entry:
            case AssistantText(_, calls) if calls:
                fresh = []
                for call in calls:
                    fresh.append(short_id(call.id, used[call.id]))
                    used[call.id] += 1
                awaited.extend(fresh)
                ids = {call.id: ident for call, ident in zip(calls, fresh, strict=True)}
                renamed = (
                    replace(call, id=ident, extra=_with_ids(call.extra, ids))
                    for call, ident in zip(calls, fresh, strict=True)
                )
                yield replace(entry, calls=tuple(renamed))
            case ToolResult():
                yield replace(entry, call_id=awaited.popleft())
            case _:
                yield entry


def _with_ids(extra: Any, ids: Mapping[str, str]) -> Any:
    """Return a server's extra data with the new ids of calls in it."""
    if isinstance(extra, str):
        return ids.get(extra, extra)
    if isinstance(extra, list):
        return [_with_ids(each, ids) for each in extra]
    if isinstance(extra, Mapping):
        return {key: _with_ids(value, ids) for key, value in extra.items()}
    return extra


def _fill_empty_text(entry: UserText) -> UserText:
    if entry.pictures or entry.spoken.strip():
        return entry
    return UserText(_EMPTY)


def _indent(text: str) -> str:
    """Indent all lines but the first, so that none passes for the beginning of another part."""
    first, *others = text.splitlines() or [""]
    return "\n".join([first, *(f"    {line}" if line.strip() else "" for line in others)])
