"""Everything beyond the defaults that is on in this installation, as one list for admins.

Each feature reports its own lines by the hook `ListActive`: a rule with its effect, a token, a connection.
The console shows the lines under headings, such as *Second opinions*; such a heading is a *part*.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ActiveLine:
    """One line of the list."""

    part: str  # the heading under which the line is listed
    text: str  # what is on, in one sentence
    set_by: str  # the account that switched it on, or the name of the setting that did
    set_at: datetime | None = None  # None for a setting
    rule: int | None = None  # the number of the rule, if the line is about a rule


@dataclass(frozen=True, slots=True)
class ActivePart:
    """A heading of the list, with its first lines."""

    name: str
    lines: tuple[ActiveLine, ...]
    left_out: int = 0  # the number of further lines under this heading
