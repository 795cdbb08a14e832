"""A job is a wake-up, never truth: whoever gets it looks at the rows and does what they ask for."""

from enum import StrEnum
from typing import NamedTuple, Protocol


class Work(StrEnum):
    TURN = "turn"  # key: conversation id
    EXECUTE = "execute"  # key: proposal id
    REDRAW = "redraw"  # key: id of the answer (message) whose cards changed
    TEAM = "team"  # key: id of the lead conversation whose team changed
    DELIVER = "deliver"  # key: conversation id; says what was not shown yet


class Job(NamedTuple):
    work: Work
    key: str


class Dispatcher(Protocol):
    """Runs each job soon, once at a time per (work, key); a job woken while it runs is run again after."""

    async def wake(self, *jobs: Job) -> None: ...

    async def stop_turn(self, conversation_id: str) -> None:
        """Interrupt the turn of a conversation, wherever it runs."""
