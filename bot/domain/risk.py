"""How much a call can harm: read, write or destructive, and why we think so."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    READ = "read"  # changes nothing; runs immediately
    WRITE = "write"  # a change that can be undone
    DESTRUCTIVE = "destructive"  # loses something, or reaches people who cannot un-see it


@dataclass(frozen=True, slots=True)
class Risk:
    """A level and the reason for it, in words that fit on a card.

    ``vouched``: someone Nod trusts says that it is no worse than this. Where only what cannot be undone
    asks, a change that no one vouches for asks as well.
    """

    level: Level
    reason: str
    vouched: bool = True

    @property
    def writes(self) -> bool:
        return self.level is not Level.READ
