"""The risk of a call: its level, and the reason in words that a card shows."""

from dataclasses import dataclass
from enum import StrEnum

USUAL_DESTRUCTIVE_REASON = "it cannot be undone"  # the reason of a tool that gives no other


class Level(StrEnum):
    """The level of a call's risk."""

    READ = "read"  # changes nothing; usually runs immediately
    WRITE = "write"  # an ordinary change, which people can repair
    DESTRUCTIVE = "destructive"  # loses something, or reaches people who cannot un-see it


@dataclass(frozen=True, slots=True)
class Risk:
    """The harm that a call can do."""

    level: Level
    reason: str  # in words that fit on a card
    # True: someone whom Nod trusts says that the level is no higher. False: a write asks people even where
    # otherwise only destructive calls ask
    vouched: bool = True

    @property
    def writes(self) -> bool:
        return self.level is not Level.READ


LEVELS = (Level.READ, Level.WRITE, Level.DESTRUCTIVE)
"""Levels of risk from the lowest to the highest."""
