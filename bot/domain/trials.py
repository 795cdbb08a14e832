"""A trial: a call that was tried before anyone decides; what it would change is the proposal's preview.

How calls are tried is in ``bot/approvals/trials.py``, what a tool says of it in ``bot/tools/tool.py``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

AT_ONCE = 2
"""Trials of one person that run at the same time."""
AN_HOUR = 30
"""Trials of one person within an hour."""


@dataclass(frozen=True, slots=True)
class TriedFile:
    """A file, folder or link that a trial added, changed or removed; sizes in bytes, None for none.

    ``code``: something runs it later, as git does its hooks. ``field`` is the preview's field that shows its
    text; empty where that field is a list of what has none.
    """

    path: str
    change: str  # added, changed or removed
    old_size: int | None = None
    new_size: int | None = None
    code: bool = False
    field: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial. ``token``: SHA-256, in hex, of what an approval applies.

    Without a token nothing can be applied, and ``why`` says why not: it was not ``tried``, or what it would
    change can't be applied. ``output`` is the end of what it printed, ``exit`` the exit code, if it has one.
    ``cage`` names the cage it ran in, ``final`` says why what is applied can't be undone.
    """

    tried: bool = True
    why: str = ""
    cage: str = ""
    exit: int | None = None
    output: str = ""
    files: tuple[TriedFile, ...] = ()
    token: str = ""
    final: str = ""

    @property
    def applies(self) -> bool:
        """True if an approval applies what was tried, and does not run the call."""
        return bool(self.token)

    @property
    def is_refused(self) -> bool:
        """True if it was tried, and only running it for real can do what it does."""
        return self.tried and not self.token

    @property
    def kept(self) -> dict[str, Any]:
        """The trial as stored JSON, without default values."""
        usual = Trial()
        return {
            name: value
            for name, value in asdict(self).items()
            if value != getattr(usual, name) or name == "tried"
        }

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Self:
        """Read a stored trial, of this release or a later one that knows more."""
        known = {each.name for each in fields(cls)}
        files = tuple(TriedFile(**each) for each in kept.get("files", ()))
        return cls(**{name: value for name, value in kept.items() if name in known} | {"files": files})
