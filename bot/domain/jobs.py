"""A job is a wake-up, never truth: its worker looks at the rows and does what they ask for."""

import sys
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import NamedTuple, Protocol


class Work(StrEnum):
    TURN = "turn"  # key: conversation id
    EXECUTE = "execute"  # key: proposal id
    REDRAW = "redraw"  # key: id of the answer (message) whose cards changed; none in `CHANGED`
    TEAM = "team"  # key: id of the lead conversation whose team changed
    DELIVER = "deliver"  # key: conversation id; says what was not shown yet


class Job(NamedTuple):
    work: Work
    key: str


CHANGED = Job(Work.REDRAW, "")
"""A proposal changed that has no cards: only what reads rows itself is told."""

Wake = Callable[..., Awaitable[None]]
"""Starts jobs, as `Dispatcher.wake` does; a process that runs none leaves them to the rows."""


class Queue(NamedTuple):
    """Where a job waits for its place: at most ``most`` of one queue are at work at a time.

    ``later``: no one is waiting for it, so it comes after everything that someone waits for.
    """

    name: str
    most: int
    later: bool = False


HERE = Queue("here", sys.maxsize)
"""For what costs next to nothing: the process that wakes it does it, and asks no other."""


class Dispatcher(Protocol):
    """Runs each job soon, once at a time per (work, key); a job woken while it runs is run again after."""

    async def wake(self, *jobs: Job) -> None: ...

    async def find(self, *jobs: Job) -> None:
        """As `wake`, for what a look at the rows found: jobs that wait or run already are left alone."""

    async def stop_turn(self, conversation_id: str) -> None:
        """Interrupt the turn of a conversation, wherever it runs."""

    def interrupt(self, conversation_id: str) -> bool:
        """The same, if it runs in this process; whether it does."""
