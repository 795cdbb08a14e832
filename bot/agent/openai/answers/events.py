"""Parsing of an answer's bytes into events, whatever content type they have. Pure.

A stream of server-sent events has fields on lines, such as ``data: {…}``, and an empty line at the end of
each event. Some servers send each JSON object on a line of its own instead, which counts as an event. Any
other text outside of events is called *stray* here, such as the words of an error page. Lines are split as
bytes, not with ``str.splitlines``: JSON may hold U+2028 unescaped.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple

MAX_EVENT_BYTES = 4 * 1024 * 1024  # the most bytes of one event's data, and of one line
MAX_OBJECT_BYTES = 8 * 1024 * 1024  # the most bytes of an answer that is not a stream
_BOM = b"\xef\xbb\xbf"  # UTF-8's byte-order mark
_OBJECT_STARTS = (b"{", b"[")
_FIELDS = (b"data", b"event", b"id", b"retry", b"")  # a line with an empty field name is a comment
_MAX_STRAY_BYTES = 4_000  # about the most bytes of stray text that are kept
_MAX_CHARACTER_BYTES = 4  # the most bytes of a character of UTF-8 (RFC 3629)
_CONTINUATION_BYTES = range(0x80, 0xC0)  # the bytes of a character of UTF-8 after its first


class EventTooLongError(Exception):
    """An event, or a line, of more than `MAX_EVENT_BYTES`."""


class Event(NamedTuple):
    """A server-sent event."""

    data: str
    name: str = ""  # the event's own type, such as "error"; most have none
    is_stray: bool = False  # True if ``data`` is all the stray text of the answer


async def split_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Event, None]:
    """Yield one event at a time. An event that the server did not close with an empty line counts, too.

    A line that begins with a brace or a bracket, such as ``[DONE]``, is an event of its own, unless the data
    of another event has begun. All other text comes last, as one stray event.

    Raises UnicodeDecodeError for bytes that are not UTF-8, EventTooLongError for an event of more than
    `MAX_EVENT_BYTES`, and whatever ``chunks`` raises.
    """
    parser = _EventParser()
    async for line in split_lines(chunks):
        event = parser.add(line)
        if event:
            yield event
    event = parser.add(b"")  # closes an event without an empty line after it
    if event:
        yield event
    if parser.stray:
        yield Event(parser.stray.decode(), is_stray=True)


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield each line without its end, which is LF, CR LF or CR, and without a byte-order mark.

    Raises EventTooLongError for a line of more than `MAX_EVENT_BYTES`.
    """
    line_pieces: list[bytes] = []  # the pieces of the current line
    size = 0  # the bytes of the current line so far
    is_first = True  # the current line is the first
    is_after_cr = False  # the chunk before ended with a CR, so an LF may be the rest of that line's end
    async for chunk in chunks:
        if not chunk:
            continue
        if is_after_cr:
            chunk = chunk.removeprefix(b"\n")  # noqa: PLW2901 - the second half of a line's end
        is_after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # noqa: PLW2901
        head, *others = chunk.split(b"\n")
        size += len(head)
        if max([size, *map(len, others)]) > MAX_EVENT_BYTES:
            raise EventTooLongError
        line_pieces.append(head)
        if not others:
            continue
        for line in (b"".join(line_pieces), *others[:-1]):
            yield line.removeprefix(_BOM) if is_first else line
            is_first = False
        line_pieces = [others[-1]]
        size = len(line_pieces[0])
    last_line = b"".join(line_pieces)
    if last_line:
        yield last_line.removeprefix(_BOM) if is_first else last_line


def _cut_line(line: bytes) -> bytes:
    """Cut a line that is too long, at the beginning of a character if it is UTF-8."""
    if len(line) <= _MAX_STRAY_BYTES:
        return line
    for end in range(_MAX_STRAY_BYTES, _MAX_STRAY_BYTES - _MAX_CHARACTER_BYTES, -1):
        if line[end] not in _CONTINUATION_BYTES:
            return line[:end]
    return line[:_MAX_STRAY_BYTES]


class _EventParser:
    """A parser of server-sent events: it takes lines and returns each complete event."""

    def __init__(self) -> None:
        self.stray = b""  # the text outside of events, a line each
        self._data: list[bytes] = []  # the lines of the current event's data
        self._name = b""
        self._size = 0  # of the data

    def add(self, line: bytes) -> Event | None:
        """Take a line. Return the event that it completes, or None.

        A line with a JSON object is an event of its own, if no other event has begun.
        """
        if not line.strip():
            return self._close()
        name, _, value = line.partition(b":")
        if name in _FIELDS:
            self._keep(name, value.removeprefix(b" "))
            return None
        if line.lstrip().startswith(_OBJECT_STARTS) and not self._data:
            return Event(line.strip().decode(), self._name.decode())
        if len(self.stray) < _MAX_STRAY_BYTES:
            self.stray += _cut_line(line) + b"\n"
        return None

    def _keep(self, name: bytes, value: bytes) -> None:
        if name == b"data":
            self._size += len(value)
            if self._size > MAX_EVENT_BYTES:
                raise EventTooLongError
            self._data.append(value)
        elif name == b"event":
            self._name = value.strip()

    def _close(self) -> Event | None:
        """End the current event, and return it unless it has no data."""
        event = Event(b"\n".join(self._data).decode(), self._name.decode()) if self._data else None
        self._data = []
        self._name = b""
        self._size = 0
        return event
