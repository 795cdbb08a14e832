"""A trial: a call that runs in a closed copy before anyone decides, so that people see what it would change.

The changes that the trial made there are the preview of the proposal. An approval applies exactly these
changes and does not run the call again, unless people choose to run it for real. Calls are tried by
``bot/approvals/trials.py``; the closed copy, the *cage*, is in ``bot/tools/builtin/trials``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

MAX_CONCURRENT = 2
"""The most trials of one person that run at the same time."""
MAX_PER_HOUR = 30
"""The most trials of one person within an hour."""
_KEYS = {"token_hash": "token", "why_not_undone": "final"}
"""The keys in rows of the fields that are stored under another name."""


@dataclass(frozen=True, slots=True)
class TriedFile:
    """A file, folder or link that a trial added, changed or removed."""

    path: str
    change: str  # ``added``, ``changed`` or ``removed``
    old_size: int | None = None  # bytes; None: it did not exist
    new_size: int | None = None  # bytes; None: it was removed
    code: bool = False  # programs run the file later, as git runs hooks
    field: str = ""  # the preview's field that shows its text; empty: one field lists it with others


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial."""

    tried: bool = True  # the call ran in the cage
    why: str = ""  # why the call was not tried, or why its changes can't be applied
    cage: str = ""  # the name of the cage in which it ran
    exit: int | None = None  # the exit code, if there is one
    output: str = ""  # the end of the printed output
    files: tuple[TriedFile, ...] = ()
    token_hash: str = ""  # the SHA-256 hash, in hex, of the changes that an approval applies; empty: it can't
    why_not_undone: str = ""  # why the changes can't be undone once they are applied; empty: they can be

    @property
    def applies(self) -> bool:
        """True if an approval applies the result of the trial, and does not run the call."""
        return bool(self.token_hash)

    @property
    def is_refused(self) -> bool:
        """True if the call was tried, but its result can't be applied: only a run for real can do it."""
        return self.tried and not self.token_hash

    @property
    def as_json(self) -> dict[str, Any]:
        """The trial as rows store it: without default values, but always with ``tried``."""
        defaults = asdict(Trial())
        changed = {
            _KEYS.get(name, name): value for name, value in asdict(self).items() if value != defaults[name]
        }
        return {"tried": self.tried, **changed}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read the output of `as_json`, also of a later release that knows more fields."""
        known = {}
        for field in fields(cls):
            key = _KEYS.get(field.name, field.name)
            if key in stored:
                known[field.name] = stored[key]
        known["files"] = tuple(TriedFile(**file) for file in stored.get("files", ()))
        return cls(**known)
