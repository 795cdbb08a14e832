"""Text as a stream brings it, made fit to show: halves of characters joined, thoughts told apart. Pure.

Servers that cut text by UTF-16 units send one emoji as two lone surrogates in two chunks. Reasoning models
behind servers without a field for it begin their answer with ``<think>…</think>``.
"""

_OPEN, _CLOSE = "<think>", "</think>"
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
        self._thinking: bool | None = None  # None until the answer's first words are known

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
        if self._thinking is None:
            begun = self._held.lstrip()
            if _OPEN.startswith(begun[: len(_OPEN)]) and len(begun) < len(_OPEN):
                return ""  # too short to tell
            self._thinking = begun.startswith(_OPEN)
            self._held = begun.removeprefix(_OPEN) if self._thinking else self._held
        if self._thinking:
            thought, found, after = self._held.partition(_CLOSE)
            kept = 0 if found else len(_CLOSE) - 1  # it may be the beginning of the end
            sure = max(0, len(thought) - kept)
            self._thought += thought[:sure]
            if not found:
                self._held = thought[sure:]
                return ""
            self._held, self._thinking = after.lstrip(), False
        shown, self._held = self._held, ""
        return shown
