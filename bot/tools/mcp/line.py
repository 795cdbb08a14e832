"""The connection to an MCP server: up, then lost, then over once the calls on it have ended.

A lost line takes no more calls. Those under way stay on it to their end, for another call's lost session is
no reason to break them off; `ServerLine.next` is where new ones go.
"""

import asyncio
from collections.abc import Hashable
from datetime import datetime

from mcp import Client


class ServerLine:
    """A connection. ``why`` is empty until it is lost.

    ``since`` is when it was up, None where it never was.
    """

    def __init__(self, *, renews: bool = False) -> None:
        self.renews = renews
        """It comes right after one whose session was lost."""
        self.client: Client | None = None
        self.since: datetime | None = None
        self.why = ""
        self.has_answered = False
        self.is_signed_out = False
        """Lost because no one is signed in there."""
        self.decided = asyncio.Event()
        """It is up, or it was lost before it was."""
        self.lost = asyncio.Event()
        self.over = asyncio.Event()
        """It is lost, and no call is on it."""
        self.followed = asyncio.Event()
        self.next: ServerLine | None = None
        """Set with ``followed``; None where Nod is stopping."""
        self._calls: set[Hashable] = set()

    @property
    def is_busy(self) -> bool:
        return bool(self._calls)

    def add(self, call: Hashable) -> None:
        self._calls.add(call)

    def remove(self, call: Hashable) -> None:
        self._calls.discard(call)
        if self.lost.is_set() and not self._calls:
            self.over.set()

    def raise_up(self, client: Client, now: datetime) -> None:
        """Take calls from now on; nothing where it was lost in the meantime."""
        if not self.lost.is_set():
            self.client, self.since = client, now
            self.decided.set()

    def lose(self, why: str) -> None:
        """Take no more calls. The first reason counts."""
        if not self.lost.is_set():
            self.why = why
            self.client = None
            self.lost.set()
            self.decided.set()
        if not self._calls:
            self.over.set()

    def break_off(self, why: str) -> None:
        """Lose it where it was up; what goes wrong at its start is told by the start."""
        if self.client is not None:
            self.lose(why)

    def end(self, why: str = "it ended") -> None:
        """End the connection, and the calls on it."""
        self.lose(why)
        self.over.set()

    def follow(self, line: "ServerLine | None") -> None:
        """Name the line that comes after it; None where none will."""
        self.next = line
        self.followed.set()
