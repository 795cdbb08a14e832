"""When what a platform refused for a moment is tried again: later after each refusal in a row."""

from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from bot.domain.chat import Clock

AFTER = tuple(timedelta(seconds=s) for s in (1, 2, 5, 15, 30, 60))
"""After each refusal in a row; then always the last."""

GIVE_UP = timedelta(hours=12)
"""How long a platform that cannot be reached is tried again."""

_MANY = 1000

Key = TypeVar("Key", bound=Hashable)


def pause(times: int) -> timedelta:
    """How long to wait after so many refusals before this one."""
    return AFTER[min(times, len(AFTER) - 1)]


class Pauses(Generic[Key]):
    """Kept in memory only: after a restart everything is tried again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._planned: dict[Key, tuple[int, datetime]] = {}  # how often refused, and when the next try is

    def refused(self, key: Key) -> None:
        """It was refused just now; what already waits for its time is left alone."""
        if not self.holds(key):
            if len(self._planned) > _MANY:
                self._planned = {each: plan for each, plan in self._planned.items() if self.holds(each)}
            times, _ = self._planned.get(key, (0, None))
            self._planned[key] = times + 1, self._clock() + pause(times)

    def holds(self, key: Key) -> bool:
        """Whether its time is still to come; no longer than a pause, however the clock was set."""
        planned = self._planned.get(key)
        return planned is not None and timedelta() < planned[1] - self._clock() <= AFTER[-1]

    def due(self) -> list[Key]:
        """Whose time has come."""
        return [key for key in self._planned if not self.holds(key)]

    def over(self, key: Key) -> None:
        """It was taken."""
        self._planned.pop(key, None)
