"""Assembly of calls from the pieces in which servers send them. Pure."""

import json
import re
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from bot.agent.openai.answers.arguments import read_arguments
from bot.agent.openai.answers.thoughts import join_surrogates
from bot.domain.model import ToolCall

_KNOWN = {"index", "id", "type", "function", "name", "arguments", "input", "parameters"}
_OF_A_CALL_CHARS = 100
_MARK = re.compile(r"<[|\uff5c][^<>\n]{1,60}[|\uff5c]>.*", re.DOTALL)
_NUMBERED = re.compile(r"(?::\d{1,6}|\(\))\Z")


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

    def repeats(self, other: "_Open") -> bool:
        """Return whether this is the other call, sent again."""
        if self.id or other.id or self.index is None or self.index != other.index:
            return False
        return self.name == other.name and self.arguments == other.arguments

    @property
    def whole(self) -> bool:
        """True if the arguments are complete JSON already, so that more text cannot belong to them."""
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
    """The assembler of calls: it takes fragments, and `done` returns the calls in the order they began."""

    def __init__(self, make_id: Callable[[], str] = _new_id) -> None:
        self._make_id = make_id
        self._open: list[_Open] = []
        self.size = 0  # characters, about

    def add(self, fragments: Any) -> None:
        """Take the calls of one chunk. What is no object is left out, and costs that call alone."""
        for fragment in fragments if isinstance(fragments, list) else ():
            if not isinstance(fragment, dict):
                continue
            inner = fragment.get("function")  # some leave out the object around it
            function = inner if isinstance(inner, dict) and inner else fragment
            given, name = (str(part or "") for part in (fragment.get("id"), function.get("name")))
            index = fragment.get("index")
            arguments = _arguments_of(function)
            call = known = self._growing(given, name, index)
            if call is None:
                call = _Open(index)
                self._open.append(call)
            call.id = call.id or given
            call.name = call.name or name
            if arguments:
                call.pieces.append(arguments)
            call.extra |= {key: value for key, value in fragment.items() if key not in _KNOWN and value}
            self.size += len(arguments) + (_OF_A_CALL_CHARS if known is None else 0)

    def _growing(self, given: str, name: str, index: int | None) -> _Open | None:
        """Find the open call a fragment belongs to; None when it begins a new one."""
        if given and (known := self._latest(lambda call: call.id == given)):
            # one id for two calls: only a name together with another index can mean that
            if name and known.index != index:
                return None
            return known
        if index is not None:
            at = self._latest(lambda call: call.index == index)
        else:
            at = None
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
        """Return every call that got a name. Ids are made where the server sent none or the same one twice.

        A call without an id that is at its place a second time, with the same arguments, is that call again.
        """
        calls: list[ToolCall] = []
        used: set[str] = set()
        before: list[_Open] = []
        for call in self._open:
            if not call.name or any(map(call.repeats, before)):
                continue
            before.append(call)
            call_id = claim_id(call.id, used, self._make_id)
            read = read_arguments(call.arguments)
            calls.append(ToolCall(call_id, join_surrogates(call.name), read.text, call.extra, read.refused))
        return tuple(calls)


def claim_id(given: str, used: set[str], make_id: Callable[[], str] = _new_id) -> str:
    """Return the id of a call and note it in ``used``; a new one where it has none, or a used one."""
    call_id = join_surrogates(given if given and given not in used else make_id())
    used.add(call_id)
    return call_id


def _arguments_of(function: dict[str, Any]) -> str:
    for name in ("arguments", "input", "parameters"):
        found = function.get(name)
        if found is not None:
            if isinstance(found, str):
                return found
            return json.dumps(found, ensure_ascii=False)
    return ""


def name_calls(calls: Iterable[ToolCall], offered: AbstractSet[str]) -> tuple[ToolCall, ...]:
    """Give each call the name of the tool that it means, where a server or a model dressed it up."""
    return tuple(replace(call, name=find_name(call.name, offered)) for call in calls)


def find_name(name: str, offered: AbstractSet[str]) -> str:
    """Return the one offered tool that a name means, as in ``functions.x:0`` and ``default_api.x``.

    A name that is offered, and one that means none of them, is returned as it is.
    """
    if name in offered:
        return name
    bare = _MARK.sub("", name).strip(" \t\r\n\"'`")
    bare = _NUMBERED.sub("", bare)
    last = re.split(r"[./]|::?", bare)[-1]
    means = [known for known in dict.fromkeys((bare, last)) if known in offered]
    return means[0] if len(means) == 1 else name
