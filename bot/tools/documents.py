"""Reads files of strangers: what they are by their bytes, and the text in them.

Plain text is read here. Everything that needs a parser is read by ``document_reader.py``, in a process for
each file that is bounded in time and memory (``child.py``): what a file does to it ends with it.
"""

import asyncio
import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.domain.attachments import HTML, PDF, PICTURES, TEXT, ZIP, FileContent, called, text_of, type_of
from bot.tools.child import Child, TookTooLong

_READER = Path(__file__).with_name("document_reader.py")
_SECONDS = 15.0
_TOGETHER = 2  # files that are read at the same time
_PARSED = frozenset({PDF, HTML, ZIP, *PICTURES})
_TOO_MUCH = "it takes too long or too much memory to read"
MOST_TEXT = 400_000  # characters of one file
_CUT = f"\n[The rest of the file is left out: only its first {MOST_TEXT:,} characters are read.]"


@dataclass(frozen=True, slots=True)
class Documents:
    """Reads some files at the same time; the others wait, without a thread."""

    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_TOGETHER))

    async def read(self, data: bytes) -> FileContent:
        """What is in a file: its text, a picture that anyone may see, or why neither can be had."""
        async with self._room:
            return await asyncio.to_thread(_read, data)


def _read(data: bytes) -> FileContent:
    kind = type_of(data)
    if kind == TEXT:
        text = text_of(data) or ""
        return FileContent(kind, cut(text), "" if text.strip() else "it is empty", data)
    if kind not in _PARSED:
        return FileContent(kind, fault=f"it is {called(kind)}", data=data)
    child = Child(_READER, seconds=_SECONDS)
    try:
        found: dict[str, Any] = child.ask({"kind": kind, "size": len(data)}, data)
    except TookTooLong:
        found = {"fault": _TOO_MUCH}
    finally:
        child.stop()
    kind, picture = found.get("kind", kind), found.get("picture")
    kept = base64.b64decode(picture) if picture else None if kind in PICTURES else data
    return FileContent(kind, found.get("text", ""), found.get("fault", ""), kept)


def cut(text: str) -> str:
    """The beginning of a text that is too long, with a word on it."""
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + _CUT
