"""Reads files from outside: finds the type of a file by its bytes, and returns its text.

Plain text in UTF-8 is read here. A file that needs a parser, or a guess at its encoding, is read by
``reading/child.py``. Each such file gets a new process, which is limited in time and memory (``child.py``).
So a hostile file can only harm that process.
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
    find_type_by_magic_bytes,
    strip_controls,
)
from bot.tools.child import Child, TookTooLong

MAX_TEXT_CHARS = 400_000
"""The number of characters that are read from a file."""

_READER = Path(__file__).with_name("reading") / "child.py"
_READ_SECONDS = 15.0
_MAX_PARALLEL = 2  # files that are read at the same time
_PARSED_TYPES = frozenset({PDF, ZIP, XLS, *PICTURES})  # the types that the child reads; Office files are ZIP
_TOO_MUCH_TEXT = "it takes too long or too much memory to read"
_EMPTY_TEXT = "it is empty"
_CUT_TEXT = f"Only its first {MAX_TEXT_CHARS:,} characters are read."
_NEEDS_PARSER = re.compile(  # the beginning of a text that is not read here
    rb"""
    \s* (?: [<{] | [!-9;-~]{2,40}:[ ] | BEGIN:V )  # markup or JSON, "Subject: " of an e-mail, a calendar
    | \xef\xbb\xbf | \xff\xfe | \xfe\xff  # the byte-order mark of UTF-8 or UTF-16
    | .{0,100000}\x1b\$  # an escape of ISO-2022-JP
    """,
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Documents:
    """A reader of up to `_MAX_PARALLEL` files at the same time. Further files wait, without a thread."""

    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_PARALLEL))

    async def read(self, data: bytes) -> FileContent:
        """Read a file: its text, a safe picture, or the reason why it can't be read."""
        async with self._slots:
            return await asyncio.to_thread(_read, data)

    async def read_page(self, markup: str) -> dict[str, Any]:
        """Return the ``title``, the ``text``, the ``links`` and a ``note`` of a web page as people see it.

        If the page can't be read, return only a ``fault``, in words.
        """
        data = markup.encode(errors="replace")
        async with self._slots:
            return await asyncio.to_thread(_ask, HTML, data)


def cut_text(text: str, on_cut: Callable[[str], None]) -> str:
    """Return a text, cut if it is too long. A cut text says so at its end; ``on_cut`` gets a note on it."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    on_cut(_CUT_TEXT)
    return f"{text[:MAX_TEXT_CHARS]}\n[The rest of the file is left out. {_CUT_TEXT}]"


def _read(data: bytes) -> FileContent:
    if not data.strip():
        return FileContent(TEXT, fault=_EMPTY_TEXT, data=data)
    kind = find_type_by_magic_bytes(data)  # empty if the first bytes tell no type, as those of a text
    if not kind and _is_plain_utf8(data):
        return _read_here(data)
    if kind and kind not in _PARSED_TYPES:
        if kind == OLE and _is_protected(data):
            fault = "it is protected by a password"
        else:
            fault = f"it is {describe_kind(kind)}"
        return FileContent(kind, fault=fault, data=data)
    answer = _ask(kind or UNKNOWN, data)
    kind = answer.get("kind", kind or UNKNOWN)
    safe_data: bytes | None = data
    if answer.get("picture"):
        safe_data = base64.b64decode(answer["picture"])
    elif kind in PICTURES:  # a picture that can't be drawn again may have hidden parts
        safe_data = None
    return FileContent(
        kind,
        text=answer.get("text", ""),
        fault=answer.get("fault", ""),
        data=safe_data,
        note=answer.get("note", ""),
    )


def _ask(kind: str, data: bytes) -> dict[str, Any]:
    """Return the answer of a child that reads this one file: see ``reading/child.py`` for its keys."""
    child = Child(_READER, seconds=_READ_SECONDS)
    try:
        answer: dict[str, Any] = child.ask({"kind": kind, "size": len(data)}, data)
    except TookTooLong:
        return {"fault": _TOO_MUCH_TEXT}
    finally:
        child.stop()
    return answer


def _is_plain_utf8(data: bytes) -> bool:
    """Return whether the bytes are UTF-8, and text that needs no parser."""
    if strip_controls(data) != data or b";base64," in data or _NEEDS_PARSER.match(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read_here(data: bytes) -> FileContent:
    remarks: list[str] = []
    text = cut_text(data.decode(), remarks.append)
    return FileContent(TEXT, text=text, data=data, note=" ".join(remarks))


def _is_protected(data: bytes) -> bool:
    """Return whether an OLE file is an encrypted Office document, by the name of a stream in it."""
    return "EncryptedPackage\0".encode("utf-16-le") in data
