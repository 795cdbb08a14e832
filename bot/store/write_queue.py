"""The queue of the writes that wait for a thread of the database."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from sqlmodel import Session

_MAX_URGENT_IN_A_ROW = 16  # the urgent writes in a row before another one, so that none waits for good


@dataclass(frozen=True, slots=True)
class QueuedWrite:
    """A store function that waits for a thread."""

    work: Callable[[Session], Any]
    ended: Future[Any] = field(default_factory=Future)  # has the result of ``work``, or its error


class WriteQueue:
    """A thread-safe queue of writes; *urgent* writes, for which a person waits, come first."""

    def __init__(self) -> None:
        self._urgent: deque[QueuedWrite] = deque()
        self._others: deque[QueuedWrite] = deque()
        self._urgent_in_a_row = 0
        self._lock = threading.Lock()

    def add(self, write: QueuedWrite, *, urgent: bool) -> None:
        with self._lock:
            if urgent:
                self._urgent.append(write)
            else:
                self._others.append(write)

    def take(self, limit: int) -> list[QueuedWrite]:
        """Take up to ``limit`` writes from the queue, and drop writes whose callers are gone."""
        taken: list[QueuedWrite] = []
        with self._lock:
            while len(taken) < limit and (self._urgent or self._others):
                write = self._next()
                if write.ended.set_running_or_notify_cancel():
                    taken.append(write)
        return taken

    def _next(self) -> QueuedWrite:
        """Remove and return the next write; the queue must not be empty."""
        is_turn_of_others = self._urgent_in_a_row >= _MAX_URGENT_IN_A_ROW
        if self._others and (is_turn_of_others or not self._urgent):
            self._urgent_in_a_row = 0
            return self._others.popleft()
        if self._others:  # urgent writes are counted only while others wait
            self._urgent_in_a_row += 1
        else:
            self._urgent_in_a_row = 0
        return self._urgent.popleft()
