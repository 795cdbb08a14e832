"""A stream of Chat Completions as events and text: bytes in, text fit to show out. Pure.

Events are split at the byte, not with ``str.splitlines``: JSON may hold U+2028 unescaped. Servers that cut
text by UTF-16 units send one emoji as two lone surrogates in two chunks. Reasoning models behind servers
without a field for it put ``<think>…</think>`` at the start of a line.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator

MOST_BYTES = 4 * 1024 * 1024  # of one event


class EventTooLongError(Exception):
    """An event without an end."""


async def data_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Yield one event's data at a time. An event the server did not close with an empty line counts too.

    Raises UnicodeDecodeError when an event is not UTF-8, EventTooLongError for one of more than `MOST_BYTES`,
    and whatever ``chunks`` raises.
    """
    begun: list[bytes] = []  # a line that has not ended
    fields: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MOST_BYTES:
            raise EventTooLongError
        first, *others = chunk.split(b"\n")
        begun.append(first)
        if not others:
            continue
        lines, begun = [b"".join(begun), *others[:-1]], [others[-1]]
        for line in lines:
            text = line.rstrip(b"\r")
            if text:
                if text.startswith(b"data:"):
                    fields.append(text[5:].removeprefix(b" "))
            elif fields:
                yield b"\n".join(fields).decode()
                fields.clear()
                size = len(begun[0])
    rest = b"".join(begun)
    if rest.startswith(b"data:"):
        fields.append(rest[5:].strip())
    if fields:
        yield b"\n".join(fields).decode()


_OPEN, _CLOSE = "<think>", "</think>"
_BEGUN = re.compile(r"(?:\A\s*|^[ \t]*)(<think>|<(?:t(?:h(?:i(?:n(?:k)?)?)?)?)?\Z)", re.MULTILINE)
"""A thought, or what may become one, at the start of a line."""
_HIGH = range(0xD800, 0xDC00)


def joined(text: str) -> str:
    """The text with pairs of lone surrogates joined, and what is left of them replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Deltas:
    """Takes one answer's text in as it comes; gives out what may be shown, and what was thought."""

    def __init__(self) -> None:
        self._held = ""
        self._thought = ""
        self._line = ""  # the first letter of the line that was begun
        self._thinking = False

    def add(self, text: str) -> str:
        """More of the answer; returns what of it can be shown now."""
        self._held += text
        shown = self._without_thoughts()
        if shown and ord(shown[-1]) in _HIGH:
            self._held = shown[-1] + self._held
            shown = shown[:-1]
        return joined(shown)

    def thought(self, text: str = "") -> str:
        """What was thought since this was last asked, and more of it from a field of its own."""
        thought, self._thought = self._thought + text, ""
        return joined(thought)

    def rest(self) -> str:
        """What was held back when the answer ended. A thought that never ended is not shown."""
        held, self._held = self._held, ""
        if self._thinking:
            self._thought += held
            return ""
        return joined(held)

    def _without_thoughts(self) -> str:
        shown = ""
        while True:
            if self._thinking:
                thought, found, after = self._held.partition(_CLOSE)
                kept = 0 if found else len(_CLOSE) - 1  # it may be the beginning of the end
                sure = max(0, len(thought) - kept)
                self._thought += thought[:sure]
                if not found:
                    self._held = thought[sure:]
                    return shown
                self._held, self._thinking = after.lstrip(), False
            begun = _BEGUN.search(self._line + self._held)
            at = begun.start() - len(self._line) if begun else len(self._held)
            words, self._held = self._held[:at], self._held[at:]
            shown, self._line = shown + words, (self._line + words).rpartition("\n")[2].strip()[:1]
            if begun is None or begun[1] != _OPEN:
                return shown
            self._held, self._thinking = self._held.lstrip().removeprefix(_OPEN), True
