"""Progress of long work, such as an export or a check of the audit log, reported while it runs.

The work is given a `Progress`, a function of who waits for it. A `Counter` calls that function after every so
many items that pass through it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with the number of done items and of all items. It may raise `Abandoned`, which ends the work."""

STEP_ROWS = 1000
"""The number of items between two calls of a `Progress`."""


class Abandoned(Exception):
    """Raised by a `Progress` where no one waits for the work any longer."""


def ignore_progress(done: int, total: int) -> None:
    """Do nothing: no one waits for reports."""


class Counter:
    """Counts the items of several lists that are one piece of work."""

    def __init__(self, total: int, progress: Progress) -> None:
        """``total``: an estimate of the number of items; more are reported as so many."""
        self._done, self._total, self._progress = 0, total, progress
        progress(0, total)

    def follow(self, items: Iterable[T]) -> Iterator[T]:
        """Yield each item, and report the progress after every `STEP_ROWS` items of all lists."""
        for item in items:
            yield item
            self._done += 1
            if not self._done % STEP_ROWS:
                self._progress(min(self._done, self._total), self._total)
