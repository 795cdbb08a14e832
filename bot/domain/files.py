"""Files that Nod makes for people and programs: output too long for a card, and what tools make.

People get such a file in their chat, an agent's program with the answer of its call. `read_json_fields` and
`format_json_as_lines` also serve cards: they show a JSON object as labels and values. Files that people
attach to messages are in ``bot/domain/attachments.py``.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.domain.redaction import redact_text
from bot.domain.value_text import label_of, speak_value

MAX_SENT_TEXT_BYTES = 1_000_000
"""The most bytes of one text that people are sent."""

MAX_SHOWN_UTF16_UNITS = 1000
"""The most UTF-16 code units of a result that a card shows in full; a longer result is a file, too."""

MAX_CALL_FILES = 8
"""The most files that a program gets with the answer of one call."""

MAX_CALL_BYTES = 2_000_000
"""The most bytes of all files that a program gets with the answer of one call."""

_MAX_NAME_CHARS = 80
_MAX_ENDING_CHARS = 10  # the longest ending of a file's name; a longer ending is a part of the name
_MAX_FIELDS = 60


@dataclass(frozen=True, slots=True)
class File:
    """A file for people."""

    name: str  # as its tool gave it; `safe_name` makes a name that platforms and disks take
    text: str  # the content; for a file with ``data``, the text that was found in that
    data: bytes | None = None  # the content, if it is not a text
    kind: str = ""  # the media type of ``data``


def choose_for_program(files: Sequence[File]) -> tuple[tuple[File, ...], str]:
    """Return the files that fit a program's answer, and a line that names the others.

    The line is empty if all files fit.
    """
    kept: list[File] = []
    left_out: list[str] = []
    room = MAX_CALL_BYTES
    for file in files:
        size = len(file.data) if file.data is not None else len(file.text.encode())
        if size <= room and len(kept) < MAX_CALL_FILES:
            kept.append(replace(file, name=safe_name(file.name)))
            room -= size
        else:
            left_out.append(f"{safe_name(file.name)} ({size:,} bytes)")
    if not left_out:
        return tuple(kept), ""
    named = ", ".join(left_out[:MAX_CALL_FILES])
    most = f"At most {MAX_CALL_FILES} files of {MAX_CALL_BYTES:,} bytes together come with an answer."
    return tuple(kept), f"[{len(left_out)} left out: {named}. {most}]"


def safe_name(name: str) -> str:
    """Return a name that every platform and every disk takes: ``reports/a?.csv`` becomes ``reports_a_.csv``.

    It has no folders and no odd characters, always an ending, and is never empty.
    """
    clean = re.sub(r"[^\w.\- ]+", "_", name, flags=re.ASCII).strip("._ ")
    stem, dot, ending = clean.rpartition(".")
    if not dot or len(ending) > _MAX_ENDING_CHARS:
        stem, dot, ending = clean, ".", "txt"
    return f"{stem[: _MAX_NAME_CHARS - len(ending) - 1] or 'file'}{dot}{ending}"


def read_json_fields(text: str) -> tuple[tuple[str, str], ...]:
    """Return the fields of a JSON object, as labels and values for people; empty for any other text.

    Fields with the value "" are left out, unless all have it.
    """
    try:
        fields = json.loads(text)
        if not isinstance(fields, dict) or len(fields) > _MAX_FIELDS:
            return ()
        shown = {name: value for name, value in fields.items() if value != ""} or fields
        return tuple((label_of(name), speak_value(value, is_choice=False)) for name, value in shown.items())
    except (ValueError, RecursionError):
        return ()


def format_json_as_lines(text: str) -> str:
    """Return a JSON object as lines, ``Label: value`` for each field; any other text as it is."""
    fields = read_json_fields(text)
    if not fields:
        return text
    lines = []
    for label, value in fields:
        separator = ":\n" if "\n" in value else ": "
        lines.append(f"{label}{separator}{value}")
    return "\n".join(lines)


def prepare_for_people(text: str) -> str:
    """Return the text of a file for people, without secrets and at most `MAX_SENT_TEXT_BYTES` long.

    A JSON object with a value of several lines is written by `format_json_as_lines`. If the text is cut, a
    last line says how much is missing.
    """
    plain = redact_text(text)
    has_multiline_value = any("\n" in value for _, value in read_json_fields(plain))
    if has_multiline_value:
        plain = format_json_as_lines(plain)
    data = redact_text(plain).encode(errors="replace")  # again: the lines may reveal another secret
    if len(data) <= MAX_SENT_TEXT_BYTES:
        return data.decode()
    room = MAX_SENT_TEXT_BYTES - len(_format_missing_bytes(len(data)))
    kept = data[:room].decode(errors="ignore")  # without the half of a character at the cut
    return kept + _format_missing_bytes(len(data) - len(kept.encode()))


def _format_missing_bytes(count: int) -> str:
    return f"\n[{count} more bytes left out]\n"


def fits_card(text: str) -> bool:
    """Return whether a card shows a result in full."""
    if len(text) > MAX_SHOWN_UTF16_UNITS:  # each character has at least one unit
        return False
    utf16_units = len(text.encode("utf-16-le", errors="replace")) // 2
    return utf16_units <= MAX_SHOWN_UTF16_UNITS
