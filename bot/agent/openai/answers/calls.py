"""Assembly of a model's calls from the fragments in which servers stream them. Pure.

By the rule, the first fragment of a call has its id and name. The next ones have pieces of its arguments
(JSON as text). ``index`` says which call a fragment belongs to. Servers leave out, repeat or mix up each of
these, and `Calls` still assembles the calls. `find_offered_name` finds the tool that a call means if the
model put something around the tool's name.
"""

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

_KNOWN_FIELDS = {"index", "id", "type", "function", "name", "arguments", "input", "parameters"}
_CALL_CHARS = 100  # a call counts as this many characters, plus its arguments
_SPECIAL_TOKEN_AND_REST = re.compile(r"<[|\uff5c][^<>\n]{1,60}[|\uff5c]>.*", re.DOTALL)
"""A special token after a name, and all that follows it: "x<|channel|>json".

Some models write a wide bar (U+FF5C) in these tokens.
"""
_SUFFIX = re.compile(r"(?::\d{1,6}|\(\))\Z")  # after a name: "x:0" or "x()"


@dataclass(slots=True)
class _GrowingCall:
    """A call to which more fragments may be added."""

    index: int | None  # the index in its first fragment
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)  # the pieces of the arguments' text
    extra: dict[str, Any] = field(default_factory=dict)  # the fields outside the standard

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def repeats(self, other: "_GrowingCall") -> bool:
        """Tell if this is the other call, sent again.

        Neither may have an id; index, name and arguments must be the same.
        """
        if self.id or other.id or self.index is None or self.index != other.index:
            return False
        return self.name == other.name and self.arguments == other.arguments

    @property
    def is_complete(self) -> bool:
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
    """The assembler of calls: `add` takes fragments, `finish` returns them in the order of their start."""

    def __init__(self, make_id: Callable[[], str] = _new_id) -> None:
        self._make_id = make_id
        self._calls: list[_GrowingCall] = []
        self.size = 0  # the approximate number of characters of all calls

    def add(self, fragments: Any) -> None:
        """Take the fragments of one chunk. A fragment that is no object is left out."""
        if not isinstance(fragments, list):
            return
        for fragment in fragments:
            if isinstance(fragment, dict):
                self._add_fragment(fragment)

    def _add_fragment(self, fragment: dict[str, Any]) -> None:
        inner = fragment.get("function")
        # some servers put name and arguments into the fragment itself
        function = inner if isinstance(inner, dict) and inner else fragment
        call_id = str(fragment.get("id") or "")
        name = str(function.get("name") or "")
        index = fragment.get("index")
        call = self._find_call(call_id, name, index)
        if call is None:
            call = _GrowingCall(index)
            self._calls.append(call)
            self.size += _CALL_CHARS
        call.id = call.id or call_id
        call.name = call.name or name
        arguments = _read_arguments_piece(function)
        if arguments:
            call.pieces.append(arguments)
            self.size += len(arguments)
        for key, value in fragment.items():
            if key not in _KNOWN_FIELDS and value:
                call.extra[key] = value

    def _find_call(self, call_id: str, name: str, index: int | None) -> _GrowingCall | None:
        """Return the call to which a fragment belongs; None if the fragment begins a new call.

        A fragment belongs to the call with its id, else to the call with its index, else to the last call. It
        can't belong to a call with another id. A fragment with a name can't belong to a call with another
        name or with complete arguments.
        """
        if call_id:
            call = self._find_last(lambda call: call.id == call_id)
            if call:
                # some servers give two calls one id: a name with another index tells them apart
                begins_new_call = name != "" and call.index != index
                return None if begins_new_call else call
        call = self._find_by_index_or_last(index, new_index_begins_call=bool(call_id or name))
        if call is None:
            return None
        if call_id and call.id:  # the call has another id
            return None
        if name and call.name and (name != call.name or call.is_complete):
            return None
        return call

    def _find_by_index_or_last(
        self, index: int | None, *, new_index_begins_call: bool
    ) -> _GrowingCall | None:
        """Return the call with this index, else the last call, or None.

        ``new_index_begins_call``: the fragment has an id or a name. Then None is returned if no call has its
        index, since it begins a new call.
        """
        if index is not None:
            call = self._find_last(lambda call: call.index == index)
            if call or new_index_begins_call:
                return call
        return self._calls[-1] if self._calls else None

    def _find_last(self, is_match: Callable[[_GrowingCall], bool]) -> _GrowingCall | None:
        for call in reversed(self._calls):
            if is_match(call):
                return call
        return None

    def finish(self) -> tuple[ToolCall, ...]:
        """Return every call that has a name.

        A missing id, or one that was used before, is replaced by a new id. A call without an id is left out
        if an earlier call has the same index, name and arguments.
        """
        calls: list[ToolCall] = []
        used_ids: set[str] = set()
        kept_calls: list[_GrowingCall] = []
        for call in self._calls:
            if not call.name or any(map(call.repeats, kept_calls)):
                continue
            kept_calls.append(call)
            call_id = claim_id(call.id, used_ids, self._make_id)
            arguments = read_arguments(call.arguments)
            calls.append(
                ToolCall(
                    id=call_id,
                    name=join_surrogates(call.name),
                    arguments=arguments.text,
                    server_fields=call.extra,
                    refusal=arguments.refusal,  # why the call must not be made, or empty
                )
            )
        return tuple(calls)


def claim_id(given: str, used_ids: set[str], make_id: Callable[[], str] = _new_id) -> str:
    """Return the id for a call, and add it to ``used_ids``. A missing or used id is replaced by a new id."""
    is_usable = given != "" and given not in used_ids
    # fragments may have cut a character in two
    call_id = join_surrogates(given if is_usable else make_id())
    used_ids.add(call_id)
    return call_id


def _read_arguments_piece(function: dict[str, Any]) -> str:
    """Return the piece of arguments as text; complete arguments that are no text become JSON."""
    for name in ("arguments", "input", "parameters"):
        arguments = function.get(name)
        if isinstance(arguments, str):
            return arguments
        if arguments is not None:
            return json.dumps(arguments, ensure_ascii=False)
    return ""


def resolve_tool_names(calls: Iterable[ToolCall], offered_names: AbstractSet[str]) -> tuple[ToolCall, ...]:
    """Return the calls, each with the name of its tool: see `find_offered_name`."""
    return tuple(replace(call, name=find_offered_name(call.name, offered_names)) for call in calls)


def find_offered_name(name: str, offered_names: AbstractSet[str]) -> str:
    """Return the name of the offered tool that a model means.

    This is ``x`` for ``functions.x:0`` or ``default_api.x``. An offered name is returned as it is. So is a
    name that fits no offered tool, or more than one.
    """
    if name in offered_names:
        return name
    bare = _SPECIAL_TOKEN_AND_REST.sub("", name).strip(" \t\r\n\"'`")
    bare = _SUFFIX.sub("", bare)
    without_namespace = re.split(r"[./]|::?", bare)[-1]  # "x" of "default_api.x", "tools/x" and "ns::x"
    candidates = dict.fromkeys((bare, without_namespace))
    matches = [candidate for candidate in candidates if candidate in offered_names]
    return matches[0] if len(matches) == 1 else name
