"""Reasoning of a model as people see it: in complete lines or sentences, without secrets. Pure."""

import re

from bot.domain.redaction import redact_text

_END = re.compile(r"(?:\n|(?<=[.!?…]) +)(?=[^\n]*$)")
_MAX_HELD_CHARS = 2000  # that wait for the end of their sentence


class ReasoningFilter:
    """A buffer for reasoning that releases complete sentences: half a secret looks like none."""

    def __init__(self) -> None:
        self._held = ""

    def add(self, text: str) -> str:
        """Add reasoning, and return its complete sentences."""
        self._held += text
        ends = [found.end() for found in _END.finditer(self._held)]
        if not ends and len(self._held) < _MAX_HELD_CHARS:
            return ""
        at = ends[-1] if ends else len(self._held)
        said, self._held = self._held[:at], self._held[at:]
        return redact_text(said)

    def rest(self) -> str:
        """Return the reasoning still held back at its end."""
        said, self._held = self._held, ""
        return redact_text(said) if said else ""
