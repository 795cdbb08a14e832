"""Listeners of conversations in this process.

Nothing is kept: a listener that comes later reads the rows.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from bot.domain.events import TurnEvent
from bot.web.schemas.events import TurnEvents

_MOST = 1000  # events that a slow reader may be behind


class Heard(NamedTuple):
    """A turn's event, or None for another change, with its form for listeners, or None for none."""

    event: TurnEvent | None
    told: TurnEvents | None
    conversation_id: str = ""


Listener = asyncio.Queue[Heard | None]
"""None says that nothing more will come."""


class Broadcaster:
    """Hands a turn's events to every listener of its conversation, by address key, and of its owner."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._of_owners: dict[str, set[Listener]] = defaultdict(set)
        self._somebody = asyncio.Event()
        self.closed = False

    def close(self) -> None:
        """Close the hub: all listeners, present and future, are told that nothing more will come."""
        self.closed = True
        for listeners in (*self._listeners.values(), *self._of_owners.values()):
            for listener in listeners:
                _end(listener)

    @contextmanager
    def listen_to_owner(self, owner: str) -> Iterator[Listener]:
        """Listen to all conversations whose address keys begin with ``owner/``, those to come included."""
        listener = self._new_listener()
        self._of_owners[owner].add(listener)
        try:
            yield listener
        finally:
            self._of_owners[owner].discard(listener)
            if not self._of_owners[owner]:
                del self._of_owners[owner]

    @contextmanager
    def listen(self, key: str) -> Iterator[Listener]:
        listener = self._new_listener()
        self._listeners[key].add(listener)
        self._somebody.set()
        try:
            yield listener
        finally:
            self._listeners[key].discard(listener)
            if not self._listeners[key]:
                del self._listeners[key]
            if not self._listeners:
                self._somebody.clear()

    def _new_listener(self) -> Listener:
        listener: Listener = asyncio.Queue(_MOST)
        if self.closed:
            listener.put_nowait(None)
        return listener

    @property
    def alone(self) -> bool:
        """No one listens to any single conversation."""
        return not self._listeners

    async def somebody(self, seconds: float) -> bool:
        """Return True once anybody listens, or False after ``seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._somebody.wait()
        return self._somebody.is_set()

    def listens(self, key: str) -> bool:
        """Return whether someone listens to that one conversation."""
        return key in self._listeners

    def heard(self, key: str) -> bool:
        """Tell if anyone listens to what is published there."""
        return key in self._listeners or key.rpartition("/")[0] in self._of_owners

    def publish(self, key: str, event: TurnEvent | None, told: TurnEvents | None) -> None:
        owner, _, conversation_id = key.rpartition("/")
        for listener in (*self._listeners.get(key, ()), *self._of_owners.get(owner, ())):
            if listener.full():
                _end(listener)
            else:
                listener.put_nowait(Heard(event, told, conversation_id))


def _end(listener: Listener) -> None:
    """End a listener's stream.

    The server stops, or the reader has fallen behind and reads the rows instead.
    """
    while not listener.empty():
        listener.get_nowait()
    listener.put_nowait(None)
