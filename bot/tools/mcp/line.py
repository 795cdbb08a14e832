"""The connection to an MCP server: up, then lost, then over once the calls on it have ended.

A lost line takes no new calls: they go to `ServerLine.next`. Those in progress stay on it to their end, since
the session that another call lost is no reason to break them off.
"""

import asyncio
from collections.abc import Hashable
from datetime import datetime

from mcp import Client


class ServerLine:
    """A connection. ``why`` it was lost is empty until then; ``since`` is the time at which it came up."""

    def __init__(self, *, renews: bool = False) -> None:
        self.renews = renews
        """True if it replaces a line whose session was lost."""
        self.client: Client | None = None
        self.since: datetime | None = None
        self.why = ""
        self.has_answered = False
        self.is_signed_out = False
        """True if it was lost because no one is signed in at the server."""
        self.decided = asyncio.Event()
        """Set when it is up, or lost before it came up."""
        self.lost = asyncio.Event()
        self.over = asyncio.Event()
        """Set when it is lost and its calls have ended."""
        self.followed = asyncio.Event()
        self.next: ServerLine | None = None
        """The next line, set with ``followed``; None if Nod is stopping."""
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
        """Take calls from now on, unless it was lost in the meantime."""
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
        """Lose it if it is up. A failed start reports its own reason."""
        if self.client is not None:
            self.lose(why)

    def end(self, why: str = "it ended") -> None:
        """End the connection, and the calls on it."""
        self.lose(why)
        self.over.set()

    def follow(self, line: "ServerLine | None") -> None:
        """Name the next line; None if there will be none."""
        self.next = line
        self.followed.set()
