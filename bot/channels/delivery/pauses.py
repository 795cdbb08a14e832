"""Back-off for posts that a platform refused, but may take later."""

from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

from bot.domain.chat import Clock

BACKOFF = tuple(timedelta(seconds=seconds) for seconds in (1, 2, 5, 15, 30, 60))
"""The wait after each refusal in a row; the last one from then on."""
GIVE_UP = timedelta(hours=12)
"""The time for which a platform that can't be reached is tried again."""
_MAX_PLANNED = 1000  # with more keys than this, those that are no longer backing off are forgotten

Key = TypeVar("Key", bound=Hashable)


def find_backoff(refusals: int) -> timedelta:
    """Return the wait after a refusal. ``refusals``: the number of refusals in a row before this one."""
    return BACKOFF[min(refusals, len(BACKOFF) - 1)]


class _NextTry(NamedTuple):
    """The next try of a key after refusals."""

    refusals: int  # the number of refusals in a row so far
    at: datetime


class Pauses(Generic[Key]):
    """Back-off after refusals, by key: a key is backing off until its next try.

    The plan is in memory only, so a restart tries everything again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._planned: dict[Key, _NextTry] = {}

    def note_refusal(self, key: Key) -> None:
        """Plan the next try after a refusal, unless one is planned already."""
        if self.is_backing_off(key):
            return
        if len(self._planned) > _MAX_PLANNED:
            self._planned = {waiting: self._planned[waiting] for waiting in self.list_backing_off()}
        planned = self._planned.get(key)
        refusals = planned.refusals if planned else 0
        self._planned[key] = _NextTry(refusals + 1, self._clock() + find_backoff(refusals))

    def is_backing_off(self, key: Key) -> bool:
        """Tell if a key is backing off: its next try is still to come."""
        planned = self._planned.get(key)
        if planned is None:
            return False
        wait = planned.at - self._clock()
        was_clock_set_back = wait > BACKOFF[-1]
        return wait > timedelta() and not was_clock_set_back

    def list_backing_off(self) -> list[Key]:
        """Return the keys that are still backing off."""
        return [key for key in self._planned if self.is_backing_off(key)]

    def list_over(self) -> list[Key]:
        """Return the keys whose back-off is over and that had no success since."""
        return [key for key in self._planned if not self.is_backing_off(key)]

    def end(self, key: Key) -> None:
        """Forget the back-off of a key after a success."""
        self._planned.pop(key, None)
