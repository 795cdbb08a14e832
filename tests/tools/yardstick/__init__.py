"""Small files with one everyday feature each, made here, and what must come of reading them."""

from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    """``reads``: words that must be in the text; ``never``: that must not. ``notes``: words of what is told.

    ``fault``: words of why a file can't be read at all.
    """

    name: str
    make: Callable[[], bytes]
    reads: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fault: str = ""
    never: tuple[str, ...] = ()
    size: tuple[int, int] | None = None  # of a picture as the model sees it
