"""Parsing of an answer's bytes into events, whatever content type they have. Pure.

A stream is server-sent events. Other servers send one JSON object, one to a line, or only words. Events are
split at the byte, not with ``str.splitlines``: JSON may hold U+2028 unescaped.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple

MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_OBJECT_BYTES = 8 * 1024 * 1024  # the most bytes of an answer that is not a stream
_BOM = b"\xef\xbb\xbf"
_OBJECT_STARTS = (b"{", b"[")
_FIELDS = (b"data", b"event", b"id", b"retry", b"")  # an empty field name begins a comment
_MAX_STRAY_BYTES = 4_000  # the most bytes of text outside of events
_MAX_CHARACTER_BYTES = 4  # the most bytes of a character of UTF-8 (RFC 3629)
_CONTINUATION_BYTES = range(0x80, 0xC0)  # the bytes of a character of UTF-8 after its first


class EventTooLongError(Exception):
    """An event without an end."""


class Event(NamedTuple):
    """A server-sent event. ``name`` is "" for most.

    ``is_stray`` says that the data was outside of any event.
    """

    data: str
    name: str = ""
    is_stray: bool = False


async def split_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Event, None]:
    """Yield one event at a time. An event that the server did not close with an empty line counts, too.

    A JSON object on a line of its own is an event. All other text comes last, as one stray event.
    Raises UnicodeDecodeError for bytes that are not UTF-8, EventTooLongError for an event of more than
    `MAX_EVENT_BYTES`, and whatever ``chunks`` raises.
    """
    event = _Growing()
    lines = split_lines(chunks)
    async for line in lines:
        found = event.add(line)
        if found:
            yield found
    found = event.add(b"")
    if found:
        yield found
    stray = event.stray
    if stray:
        yield Event(stray.decode(), is_stray=True)


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield each line without its end, which is LF, CR LF or CR, and without a byte-order mark."""
    begun: list[bytes] = []
    size, first, after_cr = 0, True, False
    async for chunk in chunks:
        if not chunk:
            continue
        if after_cr:
            chunk = chunk.removeprefix(b"\n")  # noqa: PLW2901 - the second half of a line's end
        after_cr = chunk.endswith(b"\r") if chunk else False
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # noqa: PLW2901
        size += len(chunk)
        if size > MAX_EVENT_BYTES:
            raise EventTooLongError
        head, *others = chunk.split(b"\n")
        begun.append(head)
        if not others:
            continue
        for line in (b"".join(begun), *others[:-1]):
            yield line.removeprefix(_BOM) if first else line
            first = False
        begun = [others[-1]]
        size = len(begun[0])
    rest = b"".join(begun)
    if rest:
        yield rest.removeprefix(_BOM) if first else rest


def _cut_line(line: bytes) -> bytes:
    """Cut a line that is too long, at the beginning of a character if it is UTF-8."""
    if len(line) <= _MAX_STRAY_BYTES:
        return line
    for end in range(_MAX_STRAY_BYTES, _MAX_STRAY_BYTES - _MAX_CHARACTER_BYTES, -1):
        if line[end] not in _CONTINUATION_BYTES:
            return line[:end]
    return line[:_MAX_STRAY_BYTES]


class _Growing:
    """A parser of server-sent events: it takes lines and returns each complete event."""

    def __init__(self) -> None:
        self.stray = b""
        self._data: list[bytes] = []
        self._name = b""
        self._size = 0

    def add(self, line: bytes) -> Event | None:
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
        if self._data:
            found = Event(b"\n".join(self._data).decode(), self._name.decode())
        else:
            found = None
        self._data, self._name, self._size = [], b"", 0
        return found
