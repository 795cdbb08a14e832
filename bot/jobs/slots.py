"""A room: how much work of one kind is done at a time, shared fairly between those who wait for it."""

import asyncio
from collections import Counter, deque

from bot.domain.jobs import Queue


class WorkRoom:
    """At most ``size`` at a time. Queues take turns, each within its own bound, ``later`` ones last."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._inside: Counter[str] = Counter()  # by a queue's name
        self._waiting: dict[Queue, deque[Visit]] = {}

    @property
    def taken(self) -> int:
        """How many places are given."""
        return self._inside.total()

    def is_crowded(self, queue: Queue) -> bool:
        """Whether the queue has reached its bound."""
        return self._inside[queue.name] >= queue.most

    def wait(self, place: "Visit") -> None:
        self._waiting.setdefault(place.queue, deque()).append(place)
        self._admit()

    def forget(self, place: "Visit") -> None:
        """It no longer waits."""
        waiting = self._waiting.get(place.queue)
        if waiting is not None and place in waiting:
            waiting.remove(place)
            if not waiting:
                del self._waiting[place.queue]

    def leave(self, place: "Visit") -> None:
        self._free += 1
        self._inside -= Counter([place.queue.name])
        self._admit()

    def _admit(self) -> None:
        while self._free and (queue := self._next()):
            waiting = self._waiting.pop(queue)
            place = waiting.popleft()
            if waiting:
                self._waiting[queue] = waiting  # at the end: the others come first now
            if place.given.done():
                continue  # who waited was cancelled in the same moment, and did not run since
            self._free -= 1
            self._inside[queue.name] += 1
            place.given.set_result(None)

    def _next(self) -> Queue | None:
        """The first queue that may send one in."""
        ready = [queue for queue in self._waiting if not self.is_crowded(queue)]
        return min(ready, key=lambda queue: queue.later, default=None)


class Visit:
    """A place in a room, waited for from the start; ``given`` is done once it is there."""

    def __init__(self, room: WorkRoom, queue: Queue) -> None:
        self.queue = queue
        self.given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room = room
        room.wait(self)

    def move(self, queue: Queue) -> None:
        """Wait in another queue from now on; nothing changes for a place that was given."""
        if queue != self.queue and not self.given.done():
            self._room.forget(self)
            self.queue = queue
            self._room.wait(self)

    def leave(self) -> None:
        """Give the place back, or wait for it no longer."""
        if self.given.done() and not self.given.cancelled():
            self._room.leave(self)
        else:
            self._room.forget(self)
