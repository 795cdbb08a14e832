"""Tool calls for models that can't make calls: the model writes them as JSON between fences in its text.

`TextCalls` wraps such a model. It puts the tools, and how to call them, into the system prompt
(docs/models.md shows a call), and writes earlier calls and results as text. In the answer it looks for blocks
between the fences "```call" and "```", outside of any other fence. A block that is a call becomes a real
call, which is judged like any other call. A block that people or tools wrote word for word before is a
quotation and runs nothing. A block that is no call gets a result that says why.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from bot.agent.history_parts import NOTE_PREFIX
from bot.agent.written_calls import QUOTED_TEXT
from bot.domain.model import (
    AssistantText,
    Entry,
    Finished,
    Model,
    Part,
    Retracted,
    StopReason,
    SystemText,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.domain.outcomes import OUTSIDE_WARNING

FENCE = "```call"
_CLOSING_FENCE = "```"
_ANY_FENCE = re.compile(r"`{3,}|~{3,}")
_INSTRUCTIONS_TEXT = f"""
How you call a tool: write a block like this one into your answer, each of its fences on a line of its own.
{FENCE}
{{"name": "NAME OF THE TOOL", "arguments": {{}}}}
{_CLOSING_FENCE}
A block holds one JSON object with exactly these two keys. For several calls write several blocks. After your
blocks end your answer: their results come in the next message. Without a block nothing is called. Never write
such a block to quote something or to show an example.

The tools, each with the JSON schema of its arguments:
"""
_SHAPE_TEXT = (
    f'Begin with {FENCE} on its own line, then write {{"name": "…", "arguments": {{…}}}}, '
    f"then {_CLOSING_FENCE}."
)
_NOT_JSON_TEXT = f"this call is not one JSON object, so nothing was called. {_SHAPE_TEXT}"
_NOT_A_CALL_TEXT = f"this call has not exactly a name and arguments, so nothing was called. {_SHAPE_TEXT}"
_MAX_NAME_CHARS = 64
_REFUSED_NAME = "call"  # the name of a refused call, since its block may name no tool


class TextCalls:
    """The implementation of `Model` for a model that only reads and writes text."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = model.name

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        parser = _BlockParser()
        async for part in self._model.stream(list(_write_history(transcript, tools)), ()):
            match part:
                case Text(text):
                    shown = parser.add(text)
                    if shown:
                        yield Text(shown)
                case Retracted():
                    parser = _BlockParser()
                    yield part
                case Finished(stop):
                    shown = parser.flush()
                    if shown:
                        yield Text(shown)
                    calls: tuple[ToolCall, ...] = ()
                    if stop is StopReason.FINISHED:
                        calls = tuple(_read_blocks(parser.contents, transcript))
                    yield replace(part, calls=calls)
                case _:
                    yield part

    async def close(self) -> None:
        await self._model.close()


@dataclass(slots=True)
class _BlockParser:
    """A parser of an answer's text as it streams: it collects the blocks and returns the text to show."""

    contents: list[str] = field(default_factory=list)  # the text of each block, without its fences
    _line: str = ""  # the current line, held back while it may become a fence
    _is_line_shown: bool = False  # the beginning of the current line was shown already
    _open_fence: str = ""  # the fence of the current block, empty outside blocks
    _call_lines: list[str] = field(default_factory=list)  # the lines of the current call

    def add(self, text: str) -> str:
        """Add text of the answer, and return the text that can be shown now."""
        *lines, incomplete = text.split("\n")
        shown = "".join(self._take_line(line, end="\n") for line in lines)
        self._line += incomplete
        may_be_fence = not self._is_line_shown and self._line.startswith(("`", "~"))
        if self._open_fence != FENCE and not may_be_fence:
            shown += self._line
            self._is_line_shown = self._is_line_shown or bool(self._line)
            self._line = ""
        return shown

    def flush(self) -> str:
        """Return the text still held back at the end of the answer. A call at its end needs no last fence."""
        shown = self._take_line("", end="")
        if self._open_fence == FENCE:
            self._close()
        return shown

    def _take_line(self, text: str, end: str) -> str:
        """Complete the current line with ``text``, and return the text that can be shown."""
        line = self._line + text
        # a line that was shown in part can't be a fence
        fence_candidate = "" if self._is_line_shown else line.rstrip()
        self._line = ""
        self._is_line_shown = False
        if self._open_fence == FENCE:
            if fence_candidate == _CLOSING_FENCE:
                self._close()
            else:
                self._call_lines.append(line)
            return ""
        if not self._open_fence and fence_candidate == FENCE:
            self._open_fence = FENCE
            return ""
        fence = _ANY_FENCE.match(fence_candidate)
        if fence:
            if not self._open_fence:
                self._open_fence = fence[0]
            elif fence_candidate == fence[0] and fence_candidate.startswith(self._open_fence):
                # the line is nothing but a fence, at least as long as the open one, which it closes
                self._open_fence = ""
        return line + end

    def _close(self) -> None:
        self.contents.append("\n".join(self._call_lines))
        self._call_lines = []
        self._open_fence = ""


def _read_blocks(blocks: Sequence[str], transcript: Sequence[Entry]) -> Iterator[ToolCall]:
    """Yield a call for each block. A quotation, or a block that is no call, becomes a refused call."""
    if not blocks:
        return
    texts = [entry.text for entry in transcript if isinstance(entry, UserText | ToolResult)]
    earlier_text = _remove_spaces("\n".join(texts))
    for block in blocks:
        call_id = f"call_{uuid4().hex}"
        try:
            parsed = json.loads(block)
        except (ValueError, RecursionError):
            yield ToolCall(call_id, _REFUSED_NAME, block, refusal=_NOT_JSON_TEXT)
            continue
        fault = _find_fault(parsed)
        if fault or _remove_spaces(block) in earlier_text:
            written = json.dumps({"written": block})
            yield ToolCall(call_id, _REFUSED_NAME, written, refusal=fault or QUOTED_TEXT)
        else:
            yield ToolCall(call_id, parsed["name"], json.dumps(parsed["arguments"], ensure_ascii=False))


def _find_fault(parsed: Any) -> str:
    """Return why the JSON of a block is no call, in words for the model; empty if it is a call."""
    if not isinstance(parsed, dict):
        return _NOT_JSON_TEXT
    name = parsed.get("name")
    arguments = parsed.get("arguments")
    is_name = isinstance(name, str) and 0 < len(name) <= _MAX_NAME_CHARS
    if is_name and isinstance(arguments, dict) and len(parsed) == 2:  # noqa: PLR2004 - these two
        return ""
    return _NOT_A_CALL_TEXT


def _remove_spaces(text: str) -> str:
    """Return a text without white space, since a quotation may break its lines elsewhere."""
    return "".join(text.split())


def _write_history(transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> Iterator[Entry]:
    """Yield the history with its calls and results as text, and the tools in the system prompt."""
    names: dict[str, str] = {}  # names of called tools, by the ids of the calls
    results: list[str] = []  # the lines of results that are not yielded yet
    descriptions = [_describe_tool(tool) for tool in tools]
    for entry in transcript:
        if results and not isinstance(entry, ToolResult):
            yield UserText("\n".join(results))
            results = []
        match entry:
            case SystemText(text) if descriptions:  # without tools the prompt stays as it is
                yield SystemText("\n".join([f"{text}{_INSTRUCTIONS_TEXT}", *descriptions]))
            case AssistantText(text, calls):
                names |= {call.id: call.name for call in calls}
                paragraphs = [text] if text.strip() else []
                paragraphs += map(_write_block, calls)
                yield AssistantText("\n".join(paragraphs))
            case ToolResult(call_id, text, outside):
                results.append(f"{NOTE_PREFIX} Result of {names.get(call_id, 'a call')}:")
                if outside:
                    results.append(f"    {OUTSIDE_WARNING}")
                results += [f"    {line}" for line in text.splitlines()]
            case _:
                yield entry
    if results:
        yield UserText("\n".join(results))


def _describe_tool(tool: ToolSpec) -> str:
    fields = {"name": tool.name, "description": tool.description, "arguments": tool.parameters}
    return json.dumps(fields, default=dict)  # a schema may hold mappings that are no dict


def _write_block(call: ToolCall) -> str:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = {}
    return "\n".join([FENCE, json.dumps({"name": call.name, "arguments": arguments}), _CLOSING_FENCE])
