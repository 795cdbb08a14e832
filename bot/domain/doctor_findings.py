"""Findings of ``nod doctor``: each of its checks of this installation returns one, good or bad."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """The state of what was checked."""

    OK = "ok"  # nothing to do
    WARN = "warn"  # it works, but probably not as wanted
    FAIL = "FAIL"  # it can't work


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str  # what was checked
    health: Health
    fix: str = ""  # what to do; with `Health.OK` a note

    @property
    def failed(self) -> bool:
        return self.health is Health.FAIL


def ok(name: str, note: str = "") -> Finding:
    return Finding(name, Health.OK, note)


def warn(name: str, fix: str) -> Finding:
    return Finding(name, Health.WARN, fix)


def fail(name: str, fix: str) -> Finding:
    return Finding(name, Health.FAIL, fix)
