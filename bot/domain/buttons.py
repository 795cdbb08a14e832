"""What a button carries where a platform takes a text with it: an id and a verb, typed and checked.

For platforms whose buttons take about a hundred characters and open windows.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from bot.domain.verbs import Verb

_SHAPE = re.compile(r"nod:([a-z]+):([a-z_]+):([A-Za-z0-9_-]{1,48}):(0|[1-9][0-9]{0,8}):([0-9]{1,2})")


class Way(StrEnum):
    """How a button or a window leads to its verb."""

    PRESS = "press"  # as it stands on a card
    READ = "read"  # below everything there is to read
    WHY = "why"  # a reason is asked for first
    VIEW = "view"  # show everything first
    FILL = "fill"  # one page of a form
    SENT = "sent"  # out of a window


@dataclass(frozen=True, slots=True)
class ButtonMark:
    """What a button carries, and all it carries; who may do it is asked when it comes back."""

    way: Way
    verb: Verb
    id: str
    round: int
    page: int = 0

    def pack(self, most: int) -> str:
        """Raises ValueError when it is longer than ``most`` characters or would not read back."""
        packed = f"nod:{self.way}:{self.verb}:{self.id}:{self.round}:{self.page}"
        if len(packed) > most or self.parse(packed) != self:
            raise ValueError(f"{packed!r} does not fit a button")
        return packed

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None for anything that `pack` does not write."""
        found = _SHAPE.fullmatch(text)
        if found is None or found[1] not in set(Way) or found[2] not in set(Verb):
            return None
        return cls(Way(found[1]), Verb(found[2]), found[3], int(found[4]), int(found[5]))
