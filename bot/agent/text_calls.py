"""Tool calls for models without native ones: JSON between fences in the answer's text.

The prompt says how (docs/models.md has it); what comes is read strictly, line by line. A call stands in the
answer itself, outside any other fence, and nowhere word for word in what people or tools said: a quotation
runs nothing. What is between fences and is no call is refused in words, and no call skips the gate.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from bot.agent.transcript import NOTE
from bot.agent.written_calls import QUOTED
from bot.domain.model import (
    AssistantText,
    Entry,
    Finished,
    Model,
    Part,
    Retracted,
    Stop,
    SystemText,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.domain.outcomes import OUTSIDE

FENCE = "```call"
_TICKS = "```"
_OTHER = re.compile(r"`{3,}|~{3,}")
_HOW = f"""
How you call a tool: write a block like this one into your answer, each of its fences on a line of its own.
{FENCE}
{{"name": "NAME OF THE TOOL", "arguments": {{}}}}
{_TICKS}
A block holds one JSON object with exactly these two keys. For several calls write several blocks. After your
blocks end your answer: their results come in the next message. Without a block nothing is called. Never write
such a block to quote something or to show an example.

The tools, each with the JSON schema of its arguments:
"""
_SHAPE = f'Begin with {FENCE} on its own line, then write {{"name": "…", "arguments": {{…}}}}, then {_TICKS}.'
_NO_JSON = f"this call is not one JSON object, so nothing was called. {_SHAPE}"
_NO_CALL = f"this call has not exactly a name and arguments, so nothing was called. {_SHAPE}"
_LONGEST_NAME = 64


class TextCalls:
    """Implements `Model` over one that only reads and writes text."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = model.name

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        blocks = _Blocks()
        async for part in self._model.stream(list(_as_text(transcript, tools)), ()):
            match part:
                case Text(text):
                    shown = blocks.add(text)
                    if shown:
                        yield Text(shown)
                case Retracted():
                    blocks = _Blocks()
                    yield part
                case Finished(stop):
                    shown = blocks.rest()
                    if shown:
                        yield Text(shown)
                    whole = stop is Stop.FINISHED
                    yield replace(part, calls=tuple(_calls(blocks.found, transcript)) if whole else ())
                case _:
                    yield part

    async def close(self) -> None:
        await self._model.close()


@dataclass(slots=True)
class _Blocks:
    """A parser of fenced calls: it takes an answer's text as it streams, and returns the rest of it."""

    found: list[str] = field(default_factory=list)  # what stood between the fences of each call
    _line: str = ""  # held back: it may become a fence
    _shown: bool = False  # the beginning of this line is out already
    _inside: str = ""  # the fence that the text is in
    _held: list[str] = field(default_factory=list)  # lines of a call

    def add(self, text: str) -> str:
        """Add text of the answer, and return what of it can be shown now."""
        *lines, rest = text.split("\n")
        shown = "".join(self._take(line, end="\n") for line in lines)
        self._line += rest
        if self._inside != FENCE and (self._shown or not self._line.startswith(("`", "~"))):
            shown, self._line, self._shown = shown + self._line, "", self._shown or bool(self._line)
        return shown

    def rest(self) -> str:
        """Return the text still held back at the end of the answer. A call at its end needs no last fence."""
        shown = self._take("", end="")
        if self._inside == FENCE:
            self._close()
        return shown

    def _take(self, text: str, end: str) -> str:
        """Take a complete line."""
        line, begun = self._line + text, self._shown
        self._line, self._shown = "", False
        bare = "" if begun else line.rstrip()
        if self._inside == FENCE:
            if bare == _TICKS:
                self._close()
            else:
                self._held.append(line)
            return ""
        if not self._inside and bare == FENCE:
            self._inside = FENCE
            return ""
        found = _OTHER.match(bare)
        if found:
            if not self._inside:
                self._inside = found[0]
            elif bare == found[0] and bare.startswith(self._inside):
                self._inside = ""
        return line + end

    def _close(self) -> None:
        self.found.append("\n".join(self._held))
        self._held, self._inside = [], ""


def _calls(blocks: Sequence[str], transcript: Sequence[Entry]) -> Iterator[ToolCall]:
    if not blocks:
        return
    said = _remove_spaces("\n".join(e.text for e in transcript if isinstance(e, UserText | ToolResult)))
    for block in blocks:
        ident = f"call_{uuid4().hex}"
        try:
            found = json.loads(block)
        except (ValueError, RecursionError):
            yield ToolCall(ident, "call", block, refused=_NO_JSON)
            continue
        why = _misfit(found)
        if why or _remove_spaces(block) in said:
            yield ToolCall(ident, "call", json.dumps({"written": block}), refused=why or QUOTED)
        else:
            yield ToolCall(ident, found["name"], json.dumps(found["arguments"], ensure_ascii=False))


def _misfit(found: Any) -> str:
    if not isinstance(found, dict):
        return _NO_JSON
    name, arguments = found.get("name"), found.get("arguments")
    named = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME
    fits = named and isinstance(arguments, dict) and len(found) == 2  # noqa: PLR2004 - these two
    return "" if fits else _NO_CALL


def _remove_spaces(text: str) -> str:
    return "".join(text.split())


def _as_text(transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> Iterator[Entry]:
    """Yield the history without calls and results: those are parts of what the model and Nod said."""
    names: dict[str, str] = {}
    results: list[str] = []
    told = [
        json.dumps({"name": t.name, "description": t.description, "arguments": t.parameters}, default=dict)
        for t in tools
    ]
    for entry in transcript:
        if results and not isinstance(entry, ToolResult):
            yield UserText("\n".join(results))
            results = []
        match entry:
            case SystemText(text) if told:
                yield SystemText("\n".join([f"{text}{_HOW}", *told]))
            case AssistantText(text, calls):
                names |= {call.id: call.name for call in calls}
                yield AssistantText("\n".join([*([text] if text.strip() else []), *map(_block, calls)]))
            case ToolResult(ident, text, outside):
                lines = [*([OUTSIDE] if outside else []), *text.splitlines()]
                results += [f"{NOTE} Result of {names.get(ident, 'a call')}:", *(f"    {x}" for x in lines)]
            case _:
                yield entry
    if results:
        yield UserText("\n".join(results))


def _block(call: ToolCall) -> str:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = {}
    return "\n".join([FENCE, json.dumps({"name": call.name, "arguments": arguments}), _TICKS])
