"""Progress of long work, reported while it runs."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much. It may raise `Abandoned`, which ends the work."""

STEP_ROWS = 1000
"""After so many rows it is told."""


class Abandoned(Exception):
    """Raised by a `Progress` where no one waits for the work any longer."""


def ignore(done: int, total: int) -> None:
    """Tell no one."""


class Counter:
    """Counts what passes, over several lists that are one piece of work."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._done, self._total, self._progress = 0, total, progress
        progress(0, total)

    def follow(self, items: Iterable[T]) -> Iterator[T]:
        """Hand on each item, and tell how far it is."""
        for item in items:
            yield item
            self._done += 1
            if not self._done % STEP_ROWS:
                self._progress(min(self._done, self._total), self._total)
