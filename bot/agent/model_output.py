"""The output of one model call, collected while it streams: its text, and calls written as text. Pure.

`ModelOutput` decides what of the text people see. In a chat of several people a model may stay silent: it
answers with the one word `SILENT`, which is not shown. So text that may become this word is held back.

Some models write a call into their text instead of making it. If the text has the marks of a known dialect
(``written_calls.py``), it is turned into calls. If it only looks like a call, the model is asked to make a
real one.
"""

import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from bot.agent.history_parts import NOTE_PREFIX
from bot.agent.prompt import SILENT
from bot.agent.written_calls import has_call_marks, read_written_calls
from bot.domain.model import AssistantText, Entry, Finished, StopReason, ToolCall, ToolSpec, UserText

_MAX_CALL_CHARS = 20_000  # a longer text is an answer, whatever it looks like
_MAX_OBJECTS = 20  # the most JSON objects of a text that are decoded
_TAG_PATTERN = re.compile(r"<(?:function=|invoke name=)[\"']?([\w.-]{1,64})")  # such as "<function=search"

# the beginning of a JSON object with a key that calls have
_OBJECT_PATTERN = re.compile(r'\{\s{0,9}"(?:type|id|name|function|tool_calls|arguments|parameters|input)"')
_DECODER = json.JSONDecoder()
_CORRECTION_TEXT = (
    "You wrote a tool call as text. Nothing runs that way. Make the call exactly as you were told to, or "
    "answer in words."
)


@dataclass(slots=True)
class ModelOutput:
    """The output of one model call."""

    may_be_silent: bool  # people in the chat also talk with each other, so the model may say nothing
    pieces: list[str] = field(default_factory=list)  # the shown text, in the pieces in which it came
    finished: Finished | None = None  # the end of the answer, with its calls; None until it comes
    model: str = ""  # the name of the model that answers
    _held_back: str = ""  # text that is not shown yet, because it may become `SILENT`
    _is_speaking: bool = False  # the text can no longer become `SILENT`, so all of it is shown

    def add(self, text: str) -> str:
        """Add text of the answer, and return the text that can be shown now."""
        self._held_back += text
        may_become_silent = self.may_be_silent and SILENT.startswith(_strip_markdown(self._held_back))
        if not self._is_speaking and may_become_silent:
            return ""
        self._is_speaking = True
        return self._show()

    def flush(self) -> str:
        """Return the text still held back at the end of the answer; empty if the model stays silent."""
        is_silent = not self._is_speaking and _strip_markdown(self._held_back) in ("", SILENT)
        return "" if is_silent else self._show()

    def restart(self) -> bool:
        """Forget the text, because the answer begins again. Return True if some of it was shown."""
        was_shown = bool(self.pieces)
        self.pieces = []
        self._held_back = ""
        self._is_speaking = False
        return was_shown

    @property
    def text(self) -> str:
        """The text that was shown."""
        return "".join(self.pieces)

    @property
    def is_empty(self) -> bool:
        """True if the answer ended without a word or a call, although the model had to say something."""
        if self.may_be_silent or self.finished is None or self.finished.stop is not StopReason.FINISHED:
            return False
        return not self._calls and not self.text.strip()

    def take_written_calls(
        self, specs: Sequence[ToolSpec], history: Sequence[Entry], *, was_corrected: bool
    ) -> bool:
        """Turn calls that the model wrote into its text into real calls. Return True if there were any.

        Only a complete answer without real calls is read. ``specs``: the offered tools. ``was_corrected``:
        the model was told before that nothing runs that way. Before such a correction, only a text with marks
        that no person or tool writes is read (`has_call_marks`).
        """
        if self.finished is None or self.finished.stop is not StopReason.FINISHED or self._calls:
            return False
        if not was_corrected and not has_call_marks(self.text):
            return False
        # a quotation of the history becomes a refused call
        remaining, calls = read_written_calls(self.text, specs, history)
        if calls:
            self.pieces = [remaining] if remaining else []
            self.finished = replace(self.finished, calls=calls)
        return bool(calls)

    def make_correction(self, specs: Sequence[ToolSpec]) -> tuple[Entry, ...]:
        """Return the entries that ask the model to make a real call instead of writing it as text.

        Empty unless the text looks like a call of one of these tools and the answer has no real call.
        """
        if self._calls:
            return ()
        names = {spec.name for spec in specs}
        has_marks_and_name = has_call_marks(self.text) and any(name in self.text for name in names)
        if not has_marks_and_name and not is_written_call(self.text, names):
            return ()
        return (AssistantText(self.text), UserText(f"{NOTE_PREFIX} {_CORRECTION_TEXT}"))

    def _show(self) -> str:
        shown, self._held_back = self._held_back, ""
        if shown:
            self.pieces.append(shown)
        return shown

    @property
    def _calls(self) -> Sequence[ToolCall]:
        if self.finished:
            return self.finished.calls
        return ()


def _strip_markdown(text: str) -> str:
    """Return a text in lower case, without the marks of Markdown around it."""
    return text.strip().strip("`*").casefold()


def is_written_call(text: str, names: AbstractSet[str]) -> bool:
    """Tell if a text calls one of these tools, by a tag with its name or by a JSON object."""
    if len(text) > _MAX_CALL_CHARS:
        return False
    if not names.isdisjoint(_TAG_PATTERN.findall(text)):
        return True
    for match in islice(_OBJECT_PATTERN.finditer(text), _MAX_OBJECTS):
        try:
            written, _ = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if _names_tool(written, names):
            return True
    return False


def _names_tool(written: Any, names: AbstractSet[str]) -> bool:
    """Tell if a JSON value is a call of one of these tools, or a list of calls.

    A call has a name and arguments, as in ``{"name": "x", "arguments": {}}``, perhaps within ``function``.
    """
    if isinstance(written, list):
        return bool(written) and all(_names_tool(item, names) for item in written)
    if not isinstance(written, dict):
        return False
    inner = written.get("function") or written.get("tool_calls")
    if isinstance(inner, dict | list):
        return _names_tool(inner, names)
    return written.get("name") in names and bool({"arguments", "parameters", "input"} & written.keys())
