"""Annotations: lines that features add to the card of a proposal, each under the name of its source.

The annotations of a card when it is posted are frozen: a press covers them, as it covers the contents. A late
annotation comes after the card was posted, such as a second opinion, and no press covers it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from bot.domain.text import is_blank, one_line, replace_unstorable, shorten

RECORD_NAME = "Record"
"""The source of facts on how a call differs from earlier calls (``bot/domain/unusual_facts.py``)."""
NAME_CHARS = 40
TEXT_CHARS = 160
MAX_LINES = 4
"""The most frozen annotations of one card, and the most late ones."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A line that a feature adds to a card. Its text is hostile until escaped, and no link in it works."""

    name: str  # the source, such as ``Second opinion (local)``; empty where the text itself names it
    text: str
    is_late: bool = False  # the line came after the card was posted

    @property
    def line(self) -> str:
        """Format the line, for example ``Second opinion (local): deletes 14 branches; you named one``."""
        if self.name:
            return f"{self.name}: {self.text}"
        return self.text


def find_unusual_facts(annotations: Iterable[Annotation]) -> tuple[str, ...]:
    """Return the texts of the frozen annotations whose source is `RECORD_NAME`."""
    return tuple(each.text for each in annotations if each.name == RECORD_NAME and not each.is_late)


def bound_annotations(found: Iterable[Annotation], *, late: bool = False) -> tuple[Annotation, ...]:
    """Return the first `MAX_LINES` of these, each as one line that is cut where it is long; no blank ones."""
    lines = (_bound(each, late=late) for each in islice(found, MAX_LINES))
    return tuple(line for line in lines if not is_blank(line.text))


def _bound(line: Annotation, *, late: bool) -> Annotation:
    name, text = (one_line(replace_unstorable(each)) for each in (line.name, line.text))
    return Annotation(shorten(name, NAME_CHARS), shorten(text, TEXT_CHARS), late)
