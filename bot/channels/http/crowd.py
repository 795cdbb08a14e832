"""How many connections the web server holds, and how long one may take to say what it wants.

Anybody may open a connection without a token, so each has a deadline for its headers (bodies have theirs in
``limits.py``), and where there are too many, the one that has waited longest without a request makes room.
"""

import asyncio
import contextlib
import logging
import os
import resource
from collections import Counter
from collections.abc import Callable

from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.logs import logger

log = logger(__name__)

ACCEPTED_TOGETHER = 100  # connections that the loop may open before one of them can make room
_MOST_FILES = 65_536
_MINUTE = 60.0


def raise_file_limit() -> int:
    """Let this process open as many files as the system allows it; says how many those are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return most
    return most if soft == resource.RLIM_INFINITY else soft


def files_left() -> bool:
    """Whether this process can open one more file, without which it takes no connection and makes none."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


class Crowd:
    """Everybody connected: ``most`` at a time, three quarters of it from one address.

    ``patience``: for how many seconds a connection may keep the headers of a request back.
    """

    def __init__(self, most: int, patience: Callable[[], float]) -> None:
        self.most = most
        self.patience = patience
        self._most_of_one = max(1, most * 3 // 4)
        self._inside: dict[_Guest, str] = {}
        self._idle: dict[_Guest, None] = {}  # no request under way, longest first
        self._of: Counter[str] = Counter()
        self._told: float | None = None  # when the log was told last that there are too many

    def enter(self, guest: "_Guest", address: str) -> None:
        """Take in one more; raises ConnectionRefusedError where no one can make room."""
        if self._of[address] >= self._most_of_one:
            self._make_room(address)
        elif len(self._inside) >= self.most:
            self._make_room(None)
        self._inside[guest] = address
        self._of[address] += 1
        self._idle[guest] = None

    def _make_room(self, address: str | None) -> None:
        now = asyncio.get_running_loop().time()
        if self._told is None or now - self._told >= _MINUTE:
            self._told = now
            log.warning("many connections, so the longest idle ones are closed", most=self.most, of=address)
        for guest in self._idle:
            if address in (None, self._inside[guest]):
                self.leave(guest)
                guest.transport.abort()
                return
        raise ConnectionRefusedError

    def leave(self, guest: "_Guest") -> None:
        address = self._inside.pop(guest, None)
        self._idle.pop(guest, None)
        if address is not None:
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]

    def note(self, guest: "_Guest", *, idle: bool) -> None:
        """Whether it has a request under way."""
        if not idle:
            self._idle.pop(guest, None)
        elif guest in self._inside:
            self._idle.setdefault(guest)

    def protocol(self) -> type["_Guest"]:
        """For uvicorn, which makes one for each connection."""
        return type("Guest", (_Guest,), {"crowd": self})


class _Guest(H11Protocol):
    """uvicorn's own, which waits for headers only so long."""

    crowd: Crowd
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        try:
            self.crowd.enter(self, self.client[0] if self.client else "")
        except ConnectionRefusedError:
            transport.abort()
            return
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.leave(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        idle = self._is_idle()
        self.crowd.note(self, idle=idle)  # uvicorn itself ends what stays silent now

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        idle = self._is_idle()
        self.crowd.note(self, idle=idle)
        if not idle:
            self._stop_waiting()
        elif self._due is None:
            self._due = self.loop.call_later(self.crowd.patience(), self._give_up)

    def _give_up(self) -> None:
        self._due = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.abort()

    def _stop_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


class Seldom(logging.Filter):
    """Lets what a flood of connections makes libraries say again and again through once a minute."""

    _REPEATED = ("Invalid HTTP request", "Exceeded concurrency", "Unsupported upgrade", "socket.accept()")

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text = str(record.msg)
        known = next((each for each in self._REPEATED if text.startswith(each)), None)
        if known is None:
            return True
        if record.created - self._last.get(known, 0.0) < _MINUTE:
            return False
        self._last[known] = record.created
        return True
