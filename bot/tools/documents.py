"""Reads files of strangers: what they are by their bytes, and the text in them.

Text in UTF-8 is read here. Everything that needs a parser or a guess is read by ``reading/child.py``, in a
process for each file that is bounded in time and memory (``child.py``): what a file does to it ends with it.
"""

import asyncio
import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.domain.attachments import (
    HTML,
    OLE,
    PDF,
    PICTURES,
    TEXT,
    UNKNOWN,
    XLS,
    ZIP,
    FileContent,
    describe_kind,
    strip_controls,
    type_by_sign,
)
from bot.tools.child import Child, TookTooLong

MAX_TEXT_CHARS = 400_000
"""How much of one file is read."""

_READER = Path(__file__).with_name("reading") / "child.py"
_SECONDS = 15.0
_TOGETHER = 2  # files that are read at the same time
_PARSED = frozenset({PDF, ZIP, XLS, *PICTURES})
_TOO_MUCH = "it takes too long or too much memory to read"
_EMPTY = "it is empty"
_CUT_TEXT = f"Only its first {MAX_TEXT_CHARS:,} characters are read."
_MARKED = re.compile(  # text that says more by its marks than by its letters
    rb"""
    \s* (?: [<{] | [!-9;-~]{2,40}:[ ] | BEGIN:V )
    | \xef\xbb\xbf | \xff\xfe | \xfe\xff | .{0,100000}\x1b\$
    """,
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Documents:
    """Reads some files at the same time; the others wait, without a thread."""

    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_TOGETHER))

    async def read(self, data: bytes) -> FileContent:
        """Read a file: its text, a safe picture, or the reason why it can't be read."""
        async with self._room:
            return await asyncio.to_thread(_read, data)

    async def read_page(self, markup: str) -> dict[str, Any]:
        """Return what people see of a web page: its title, text, links and note by name, or a fault."""
        data = markup.encode(errors="replace")
        async with self._room:
            return await asyncio.to_thread(_ask, HTML, data)


def _read(data: bytes) -> FileContent:
    if not data.strip():
        return FileContent(TEXT, fault=_EMPTY, data=data)
    kind = type_by_sign(data)
    if not kind and _is_plain(data):
        return _read_here(data)
    if kind and kind not in _PARSED:
        if kind == OLE and _is_protected(data):
            fault = "it is protected by a password"
        else:
            fault = f"it is {describe_kind(kind)}"
        return FileContent(kind, fault=fault, data=data)
    found = _ask(kind or UNKNOWN, data)
    kind, picture = found.get("kind", kind or UNKNOWN), found.get("picture")
    kept = None if kind in PICTURES else data
    if picture:
        kept = base64.b64decode(picture)
    return FileContent(kind, found.get("text", ""), found.get("fault", ""), kept, found.get("note", ""))


def _ask(kind: str, data: bytes) -> dict[str, Any]:
    """The answer of a child that reads this one file."""
    child = Child(_READER, seconds=_SECONDS)
    try:
        found: dict[str, Any] = child.ask({"kind": kind, "size": len(data)}, data)
    except TookTooLong:
        return {"fault": _TOO_MUCH}
    finally:
        child.stop()
    return found


def _is_plain(data: bytes) -> bool:
    """Return whether the bytes are UTF-8 and nothing but text."""
    if strip_controls(data) != data or b";base64," in data or _MARKED.match(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read_here(data: bytes) -> FileContent:
    remarks: list[str] = []
    text = cut_text(data.decode(), remarks.append)
    return FileContent(TEXT, text, "", data, " ".join(remarks))


def _is_protected(data: bytes) -> bool:
    return "EncryptedPackage\0".encode("utf-16-le") in data


def cut_text(text: str, remark: Callable[[str], None]) -> str:
    """Return the beginning of a text that is too long, with a word on it at its end and to ``remark``."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    remark(_CUT_TEXT)
    return f"{text[:MAX_TEXT_CHARS]}\n[The rest of the file is left out. {_CUT_TEXT}]"
