"""The parts of Nod that are on, as admins see them in one list."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ActiveLine:
    """One thing that is on.

    ``part`` is the heading under which it is listed, such as *Second opinions*. ``set_by`` is who set it, as
    an account, or the setting that did. ``set_at`` is None for a setting. ``rule`` is the number of the rule
    that it is, or None.
    """

    part: str
    words: str
    set_by: str
    set_at: datetime | None = None
    rule: int | None = None


@dataclass(frozen=True, slots=True)
class ActivePart:
    """A heading of that list with its lines, and how many were ``left_out``."""

    name: str
    lines: tuple[ActiveLine, ...]
    left_out: int = 0
