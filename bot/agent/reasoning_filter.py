"""Reasoning of a model as people see it: in complete lines or sentences, without secrets. Pure.

Reasoning streams in small pieces. A secret, such as a key, may be cut between two of them, and then neither
half is recognised. So text is held back until its sentence ends, and secrets are hidden in complete
sentences.
"""

import re

from bot.domain.redaction import redact_text

_SENTENCE_END = re.compile(r"(?:\n|(?<=[.!?…]) +)(?=[^\n]*$)")  # the last line break, or a mark and spaces
_MAX_HELD_CHARS = 2000  # a longer sentence is released before it ends


class ReasoningFilter:
    """A buffer for reasoning that releases complete sentences."""

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
