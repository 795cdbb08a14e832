"""A line: one connection to an MCP server, from its start to the end of the calls on it.

A line is *up* once its client works. It is *lost* when the connection breaks, the server forgets its session,
or it never came up. A lost line takes no new calls: they go to the next line (`ServerLine.next`). Calls in
progress stay on the lost line: another call may have lost the session, and that is no reason to break them
off. The line is *over* once they have ended. Then its client is closed.

`Server` (``server.py``) makes one line after the other, and waits for these states by the line's events.
"""

import asyncio
from collections.abc import Hashable
from datetime import datetime

from mcp import Client

from bot.tools.mcp.address import SESSION_LOST_TEXT


class ServerLine:
    """A connection, its state, and the calls on it."""

    def __init__(self, *, replaces_lost_session: bool = False) -> None:
        self.replaces_lost_session = replaces_lost_session
        """True if this line replaces one whose session was lost."""
        self.client: Client | None = None
        """The client for calls, while the line is up."""
        self.up_since: datetime | None = None
        """The time at which the line came up; None if it never did."""
        self.reason = ""
        """The reason why the line was lost; empty until then."""
        self.has_answered = False
        """True once the server has answered a request on this line."""
        self.is_signed_out = False
        """True if the line was lost because no one is signed in at the server."""
        self.start_ended = asyncio.Event()
        """Set once the start of the line has ended: it has come up, or was lost before."""
        self.lost = asyncio.Event()
        """Set when the line is lost."""
        self.over = asyncio.Event()
        """Set when the line is lost and its calls have ended."""
        self.next_set = asyncio.Event()
        """Set when ``next`` is set."""
        self.next: ServerLine | None = None
        """The next line; None before ``next_set``, and if there will be none because Nod is stopping."""
        self._calls: set[Hashable] = set()

    @property
    def has_lost_session(self) -> bool:
        """True if the line was lost because the server forgot its session."""
        return self.reason == SESSION_LOST_TEXT

    @property
    def is_busy(self) -> bool:
        """True while calls are in progress on this line."""
        return bool(self._calls)

    def add(self, call: Hashable) -> None:
        self._calls.add(call)

    def remove(self, call: Hashable) -> None:
        self._calls.discard(call)
        if self.lost.is_set() and not self._calls:
            self.over.set()

    def come_up(self, client: Client, now: datetime) -> None:
        """Take calls from now on, unless the line was lost in the meantime."""
        if not self.lost.is_set():
            self.client = client
            self.up_since = now
            self.start_ended.set()

    def lose(self, why: str) -> None:
        """Mark the line as lost: it takes no more calls. A line that is lost already keeps its reason."""
        if not self.lost.is_set():
            self.reason = why
            self.client = None
            self.lost.set()
            self.start_ended.set()
        if not self._calls:
            self.over.set()

    def lose_if_up(self, why: str) -> None:
        """Mark the line as lost if it is up. A line that still starts fails with a reason of its own."""
        if self.client is not None:
            self.lose(why)

    def end(self, why: str = "it ended") -> None:
        """Mark the line as lost and over, even if calls are in progress. An earlier reason stays."""
        self.lose(why)
        self.over.set()

    def set_next(self, line: "ServerLine | None") -> None:
        """Set the line that takes this line's place; None if there will be none."""
        self.next = line
        self.next_set.set()
