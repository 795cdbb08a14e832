"""Text as both databases and every program can keep it, and values as text."""

import json
import re
from typing import Any

import regex

_NUL = "\x00"
_MARKUP = re.compile(r"([\\`*_\[\]~<>|#])")


def storable(text: str) -> str:
    """The text without NUL characters and lone surrogates, which models and tools do send."""
    if unstorable(text) is None:
        return text
    return text.replace(_NUL, "").encode(errors="replace").decode()


def storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)


def unstorable(text: str) -> str | None:
    """Why no database or program could keep a text, in words; None where both can."""
    if _NUL in text:
        return "must not have the character NUL"
    return "must be valid Unicode, without half a surrogate pair" if halved(text) else None


def halved(text: str) -> bool:
    """Whether half of a character is missing somewhere."""
    return not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)


def as_written(text: str) -> str:
    """CommonMark that shows a line of text as it is."""
    return _MARKUP.sub(r"\\\1", text)


_CLUSTER = regex.compile(r"\X")
_LONGEST = 64  # code points of what people see as one character, so that a long run of marks costs little


def whole_until(text: str, at: int) -> int:
    """Where to cut, ``at`` at the latest: not within what people see as one character, such as a family."""
    if at >= len(text):
        return len(text)
    end = start = max(0, at - _LONGEST)
    for found in _CLUSTER.finditer(text, start, at + _LONGEST):
        if found.end() > at:
            break
        end = found.end()
    return end if end > start else at


def sentence(words: str) -> str:
    """Words as a sentence: a capital and a full stop. An account that they begin with stays as it is."""
    account = re.match(r"\w+:\S", words)
    begun = words if account else f"{words[:1].upper()}{words[1:]}"
    return f"{begun.removesuffix('.')}." if begun else ""


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and ``…``: at most so many characters."""
    return text if len(text) <= most else f"{text[: whole_until(text, most - 1)]}…"


def shown(value: Any, *, indent: int | None = None) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=indent)
