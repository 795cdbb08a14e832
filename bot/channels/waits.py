"""How long a platform told Nod to wait: told to one process, kept by all of them."""

import time
from collections.abc import Callable

from bot.domain.processes import Others

PATIENCE = 15.0
"""Seconds for which a call waits because the platform says so. What would take longer is tried another time:
a call that waits holds a place among those at work, and other chats would wait for it, too."""

_LONGEST = 3600.0  # seconds; after that a platform may be asked again, whatever it said
_MANY = 1000


class Waits:
    """Until when each place of a platform takes nothing, as the platform said itself.

    A place is what its limits count by: a chat, a method in a workspace. ``now`` is in seconds, of which only
    differences count. What one process is told may be lost on its way to another: that one is told itself.
    """

    def __init__(self, platform: str, now: Callable[[], float] = time.monotonic) -> None:
        self._kind = f"{platform} wait"
        self._now = now
        self._until: dict[str, float] = {}
        self._others: Others | None = None

    def share(self, others: Others) -> None:
        """Wait together with the other processes."""
        self._others = others
        others.on(self._kind, lambda told: self._keep(*told))

    def told(self, place: str, seconds: float) -> None:
        """The platform said so to this process."""
        self._keep(place, seconds)
        if self._others is not None:
            self._others.say(self._kind, [place, seconds])

    def left(self, place: str) -> float:
        """Seconds until the place takes something again; 0 where it does."""
        return max(0.0, self._until.get(place, 0.0) - self._now())

    def _keep(self, place: str, seconds: float) -> None:
        now = self._now()
        if len(self._until) > _MANY:
            self._until = {each: until for each, until in self._until.items() if until > now}
        self._until[place] = max(self._until.get(place, 0.0), now + min(seconds, _LONGEST))
