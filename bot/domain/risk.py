"""How much a call can harm: read, write or destructive, and why we think so."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    READ = "read"  # changes nothing; runs at once
    WRITE = "write"  # changes something that can be changed back
    DESTRUCTIVE = "destructive"  # loses something, or reaches people who cannot un-see it


@dataclass(frozen=True, slots=True)
class Risk:
    """A level and the reason for it, in words that fit on a card."""

    level: Level
    reason: str

    @property
    def writes(self) -> bool:
        return self.level is not Level.READ
