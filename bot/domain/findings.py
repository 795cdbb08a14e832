"""Findings of ``nod doctor``."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    OK = "ok"  # nothing to do
    WARN = "warn"  # it works, but probably not as wanted
    FAIL = "FAIL"  # it can't work


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``fix`` says what to do, or where all is well what is worth knowing."""

    name: str
    health: Health
    fix: str = ""

    @property
    def failed(self) -> bool:
        return self.health is Health.FAIL


def ok(name: str, note: str = "") -> Finding:
    return Finding(name, Health.OK, note)


def warn(name: str, fix: str) -> Finding:
    return Finding(name, Health.WARN, fix)


def fail(name: str, fix: str) -> Finding:
    return Finding(name, Health.FAIL, fix)
