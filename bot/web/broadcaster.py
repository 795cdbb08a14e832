"""Who listens to which conversation right now. Nothing is kept: who comes later reads the rows."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bot.domain.events import TurnEvent
from bot.web.schemas.events import TurnEvents

Heard = tuple[TurnEvent | None, TurnEvents | None]
"""A turn's event, None for another change; and what people are told of it, None for nothing."""
Listener = asyncio.Queue[Heard | None]
"""None says that nothing more will come."""

_MOST = 1000  # events that a slow reader may be behind


class Hub:
    """Hands a turn's events to every listener of its conversation, by address key."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._somebody = asyncio.Event()
        self.closed = False

    def close(self) -> None:
        """Close the hub: all listeners, present and future, are told that nothing more will come."""
        self.closed = True
        for listeners in self._listeners.values():
            for listener in listeners:
                _end(listener)

    @contextmanager
    def listen(self, key: str) -> Iterator[Listener]:
        listener: Listener = asyncio.Queue(_MOST)
        if self.closed:
            listener.put_nowait(None)
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

    @property
    def alone(self) -> bool:
        """No one listens to anything."""
        return not self._listeners

    async def somebody(self, seconds: float) -> None:
        """Return once anybody listens, or after ``seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._somebody.wait()

    def heard(self, key: str) -> bool:
        return key in self._listeners

    def publish(self, key: str, event: TurnEvent | None, told: TurnEvents | None) -> None:
        for listener in self._listeners.get(key, ()):
            if listener.full():
                _end(listener)
            else:
                listener.put_nowait((event, told))


def _end(listener: Listener) -> None:
    """Its stream ends: the server stops, or its reader has fallen behind and reads the rows instead."""
    while not listener.empty():
        listener.get_nowait()
    listener.put_nowait(None)
