"""Listeners of conversations in this process: the streams of browsers and other clients that are open.

A listener is a queue of broadcasts, each a change in a conversation. Nothing is kept for later listeners:
they read the rows.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from bot.domain.events import TurnEvent
from bot.web.schemas.events import TurnEvents

_MAX_WAITING_EVENTS = 1000  # a stream with more unread events is ended, and its client reads the rows


class Broadcast(NamedTuple):
    """A change in a conversation, for its listeners."""

    turn_event: TurnEvent | None  # the change as the agent's turn reported it; None if no turn made it
    console_event: TurnEvents | None  # the same change as the console's streams show it; None if they do not
    conversation_id: str = ""


Listener = asyncio.Queue[Broadcast | None]
"""The queue of one listener. None ends it: nothing more will come."""


class Broadcaster:
    """Hands changes to the listeners of one conversation, or of all conversations of its owner.

    Conversations are named by their address keys, ``OWNER/ID``.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = defaultdict(set)  # by key
        self._owner_listeners: dict[str, set[Listener]] = defaultdict(set)  # by owner
        self._has_listener = asyncio.Event()  # set while anyone listens to a single conversation
        self.closed = False

    def close(self) -> None:
        """End all listeners, present and future."""
        self.closed = True
        for listeners in (*self._listeners.values(), *self._owner_listeners.values()):
            for listener in listeners:
                _end_listener(listener)

    @contextmanager
    def listen_to_owner(self, owner: str) -> Iterator[Listener]:
        """Listen to all conversations whose address keys begin with ``owner/``, also to later ones."""
        listener = self._new_listener()
        self._owner_listeners[owner].add(listener)
        try:
            yield listener
        finally:
            self._owner_listeners[owner].discard(listener)
            if not self._owner_listeners[owner]:
                del self._owner_listeners[owner]

    @contextmanager
    def listen(self, key: str) -> Iterator[Listener]:
        listener = self._new_listener()
        self._listeners[key].add(listener)
        self._has_listener.set()
        try:
            yield listener
        finally:
            self._listeners[key].discard(listener)
            if not self._listeners[key]:
                del self._listeners[key]
            if not self._listeners:
                self._has_listener.clear()

    def _new_listener(self) -> Listener:
        listener: Listener = asyncio.Queue(_MAX_WAITING_EVENTS)
        if self.closed:
            listener.put_nowait(None)
        return listener

    @property
    def has_no_conversation_listener(self) -> bool:
        """True if no one listens to any single conversation."""
        return not self._listeners

    async def wait_for_listener(self, seconds: float) -> bool:
        """Return True once anyone listens to a single conversation, or False after ``seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._has_listener.wait()
        return self._has_listener.is_set()

    def has_conversation_listener(self, key: str) -> bool:
        """Tell if anyone listens to this conversation alone."""
        return key in self._listeners

    def has_listener(self, key: str) -> bool:
        """Tell if anyone listens to this conversation, or to all conversations of its owner."""
        return key in self._listeners or key.rpartition("/")[0] in self._owner_listeners

    def publish(self, key: str, event: TurnEvent | None, console_event: TurnEvents | None) -> None:
        """Hand a change to everyone who listens to the conversation ``key`` or to all of its owner."""
        owner, _, conversation_id = key.rpartition("/")
        for listener in (*self._listeners.get(key, ()), *self._owner_listeners.get(owner, ())):
            if listener.full():
                _end_listener(listener)
            else:
                listener.put_nowait(Broadcast(event, console_event, conversation_id))


def _end_listener(listener: Listener) -> None:
    """End a listener's stream.

    The server stops, or the reader has fallen behind and reads the rows instead.
    """
    while not listener.empty():
        listener.get_nowait()
    listener.put_nowait(None)
