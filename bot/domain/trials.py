"""A trial: a call that was tried before anyone decides; what it would change is the proposal's preview.

How calls are tried is in ``bot/approvals/trials.py``, what a tool says of it in ``bot/tools/tool.py``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

MAX_CONCURRENT = 2
"""Trials of one person that run at the same time."""
MAX_PER_HOUR = 30
"""Trials of one person within an hour."""


@dataclass(frozen=True, slots=True)
class TriedFile:
    """A file, folder or link that a trial added, changed or removed."""

    path: str
    change: str  # added, changed or removed
    old_size: int | None = None  # bytes; None: it did not exist
    new_size: int | None = None  # bytes; None: it was removed
    code: bool = False  # something runs it later, as git does its hooks
    field: str = ""  # the preview's field that shows its text; empty: one field lists it with others


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial."""

    tried: bool = True
    why: str = ""  # why it was not tried, or why its changes can't be applied
    cage: str = ""  # the name of the cage in which it ran
    exit: int | None = None  # the exit code, if there is one
    output: str = ""  # the end of what it printed
    files: tuple[TriedFile, ...] = ()
    token: str = ""  # SHA-256, in hex, of what an approval applies; empty: nothing can be applied
    final: str = ""  # why that can't be undone

    @property
    def applies(self) -> bool:
        """True if an approval applies what was tried, and does not run the call."""
        return bool(self.token)

    @property
    def is_refused(self) -> bool:
        """True if it was tried, and only running it for real can do what it does."""
        return self.tried and not self.token

    @property
    def as_json(self) -> dict[str, Any]:
        """The trial as rows store it: without default values, but always with ``tried``."""
        defaults = asdict(Trial())
        changed = {name: value for name, value in asdict(self).items() if value != defaults[name]}
        return {"tried": self.tried, **changed}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read what `as_json` gave, also in a later release that knows more fields."""
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in stored.items() if name in names}
        known["files"] = tuple(TriedFile(**file) for file in stored.get("files", ()))
        return cls(**known)
