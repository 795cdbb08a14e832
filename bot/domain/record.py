"""Which rows of the audit log are asked for."""

from dataclasses import dataclass, replace
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows of the record; empty fields match all.

    ``who`` is an account, and stands for every account of that Person. ``tool`` finds rules about it, too
    (``known`` False: there is no such tool now, so rules for many tools are not about it). ``grant`` finds
    what was run under it and how it came and went.
    """

    who: str = ""
    tool: str = ""
    proposal: str = ""
    since: datetime | None = None
    grant: int | None = None
    known: bool = True
    before: int | None = None  # only rows with a smaller number

    def below(self, number: int | None) -> "Wanted":
        """The same, further down the record."""
        return replace(self, before=number)
