"""Text as a stream brings it, made fit to show: halves of characters joined, thoughts told apart. Pure.

Servers that cut text by UTF-16 units send one emoji as two lone surrogates in two chunks. Reasoning models
behind servers without a field for it put ``<think>…</think>`` at the start of a line.
"""

import re

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
