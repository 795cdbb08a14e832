"""A line of what waits for its place; what a person waits for goes before the rest."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

_IN_A_ROW = 16  # of the first that go before one of the rest, so that none waits for good


class WaitingLine(Generic[T]):
    """In the order they came, but those that were added as ``first`` before the rest. For one thread."""

    def __init__(self) -> None:
        self._first: deque[T] = deque()
        self._rest: deque[T] = deque()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._first) + len(self._rest)

    def add(self, each: T, *, first: bool) -> None:
        (self._first if first else self._rest).append(each)

    def put_back(self, each: T, *, first: bool) -> None:
        """It was taken, and comes before its like again."""
        (self._first if first else self._rest).appendleft(each)

    def next(self) -> T:
        """Whose turn it is. Raises IndexError where no one waits."""
        return self._whose_turn()[0]

    def take(self) -> T:
        """As `next`, and it waits no longer."""
        turn = self._whose_turn()
        self._in_a_row = self._in_a_row + 1 if turn is self._first and self._rest else 0
        return turn.popleft()

    def _whose_turn(self) -> deque[T]:
        enough = self._in_a_row >= _IN_A_ROW and self._rest
        return self._first if self._first and not enough else self._rest
