"""Annotations: lines that features add to the card of a proposal, each under the name of who says it."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from bot.domain.text import blank, one_line, shorten, storable

RECORD_NAME = "Record"
"""The name of what the record says: facts about earlier calls."""
NAME_CHARS = 40
TEXT_CHARS = 160
MAX_LINES = 4
"""Lines of a card that were there when it was posted, and as many that came later."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A line that a feature adds to a card. It is hostile until escaped, and no link in it is one.

    ``name``: who says it, such as ``Second opinion (local)``; empty where the text says so itself.
    ``is_late``: it came after the card was posted, so a press does not name it.
    """

    name: str
    text: str
    is_late: bool = False

    @property
    def words(self) -> str:
        """Format the line, for example ``Second opinion (local): deletes 14 branches; you named one``."""
        if self.name:
            return f"{self.name}: {self.text}"
        return self.text


def find_record(annotations: Iterable[Annotation]) -> tuple[str, ...]:
    """Return what the record says among these lines."""
    return tuple(each.text for each in annotations if each.name == RECORD_NAME and not each.is_late)


def bound_annotations(found: Iterable[Annotation], *, late: bool = False) -> tuple[Annotation, ...]:
    """Return the first few of these, each on one line and cut where it is long. Blank ones are left out."""
    lines = (_bound(each, late=late) for each in islice(found, MAX_LINES))
    return tuple(line for line in lines if not blank(line.text))


def _bound(line: Annotation, *, late: bool) -> Annotation:
    name, text = (one_line(storable(each)) for each in (line.name, line.text))
    return Annotation(shorten(name, NAME_CHARS), shorten(text, TEXT_CHARS), late)
