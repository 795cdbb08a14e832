"""Reasoning of a model as people see it: in complete lines or sentences, without secrets. Pure."""

import re

from bot.domain.redaction import redact_text

_SENTENCE_END = re.compile(r"(?:\n|(?<=[.!?…]) +)(?=[^\n]*$)")
_MAX_HELD_CHARS = 2000  # held back until their sentence ends


class ReasoningFilter:
    """A buffer for reasoning that releases complete sentences: half a secret looks like none."""

    def __init__(self) -> None:
        self._held = ""

    def add(self, text: str) -> str:
        """Add reasoning, and return its complete sentences."""
        self._held += text
        ends = [match.end() for match in _SENTENCE_END.finditer(self._held)]
        if not ends and len(self._held) < _MAX_HELD_CHARS:
            return ""
        end = ends[-1] if ends else len(self._held)
        complete, self._held = self._held[:end], self._held[end:]
        return redact_text(complete)

    def rest(self) -> str:
        """Return the reasoning still held back at its end."""
        remainder, self._held = self._held, ""
        return redact_text(remainder) if remainder else ""
