"""Tool calls put together from the fragments a Chat Completions stream brings. Pure.

OpenAI sends id and name once and then only arguments, told apart by ``index``. Compatible servers differ:
no index, one index for every call, complete calls in one chunk, the name again in each chunk, no ids.
``model.py`` feeds the decoded ``delta.tool_calls`` in and takes the calls out when the stream has ended.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from bot.agent.openai.streams import joined
from bot.domain.model import ToolCall

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
            given, name, index = fragment.get("id"), function.get("name"), fragment.get("index")
            arguments = function.get("arguments")
            if arguments is None:
                arguments = ""
            elif not isinstance(arguments, str):  # an object instead of its text
                arguments = json.dumps(arguments, ensure_ascii=False)
            call = known = self._growing(given, name, index)
            if call is None:
                call = _Open(index)
                self._open.append(call)
            call.id = call.id or given or ""
            call.name = call.name or name or ""
            if arguments:
                call.pieces.append(arguments)
            call.extra |= {key: value for key, value in fragment.items() if key not in _KNOWN and value}
            self.size += len(arguments) + _OF_A_CALL * (call is not known)

    def _growing(self, given: str | None, name: str | None, index: int | None) -> _Open | None:
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
