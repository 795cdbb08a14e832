"""What ``nod doctor`` finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``mend`` says what to do; where it is well, what is worth knowing."""

    name: str
    ok: bool
    mend: str = ""
