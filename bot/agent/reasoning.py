"""What a model thinks, in pieces that can be shown: complete lines or sentences, without secrets. Pure."""

import re

from bot.domain.redaction import redact_text

_END = re.compile(r"(?:\n|(?<=[.!?…]) +)(?=[^\n]*$)")
_LONGEST = 2000  # characters that wait for the end of their sentence


class Thoughts:
    """Holds back what has not ended yet: half a secret looks like none."""

    def __init__(self) -> None:
        self._held = ""

    def add(self, text: str) -> str:
        """More of a thought; returns what of it is complete."""
        self._held += text
        ends = [found.end() for found in _END.finditer(self._held)]
        if not ends and len(self._held) < _LONGEST:
            return ""
        at = ends[-1] if ends else len(self._held)
        said, self._held = self._held[:at], self._held[at:]
        return redact_text(said)

    def rest(self) -> str:
        """What is still held when the thought ends."""
        said, self._held = self._held, ""
        return redact_text(said) if said else ""
