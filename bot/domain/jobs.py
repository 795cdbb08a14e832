"""Jobs: wake-ups whose worker looks at the rows and does what they ask for. A job is never truth.

A process works on a database, and others judge when it is gone.
"""

import os
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from bot.domain.people import Actor
from bot.domain.proposals import Proposal, State

BEAT_SECONDS = 2.0
"""How often a process says that it is there, and looks who else is."""
_SILENT = 4  # looks in a row without a beat
_MOST_OWNED = 50  # turns that are owned from the moment they are wanted: these need not wait for a place
_KEPT = 10_000
_MOST_OPENED = 200  # proposals in full
_ROWS_TOGETHER = 4  # rows of one batch that run at the same time: between them it can be stopped


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
    """A queue of jobs, of which at most ``most`` run at a time.

    ``later``: no one waits for these jobs, so they come after all others.
    """

    name: str
    most: int
    later: bool = False


HERE = Queue("here", sys.maxsize)
"""For what costs next to nothing: the process that wakes it does it, and asks no other."""


class Dispatcher(Protocol):
    """Runs each job soon, once at a time per (work, key); a job woken while it runs is run again after."""

    @property
    def takes_work(self) -> bool:
        """True if this process runs what is woken now: not before the start, while paused, or at its end."""

    async def wake(self, *jobs: Job) -> None: ...

    async def find(self, *jobs: Job) -> None:
        """Wake jobs that a sweep found. Jobs that wait or run already are left alone; else like `wake`."""

    async def stop_turn(self, conversation_id: str) -> None:
        """Interrupt the turn of a conversation, wherever it runs."""

    def interrupt(self, conversation_id: str) -> bool:
        """Interrupt the conversation's turn if it runs in this process, and tell if it did."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that works on the database. ``id`` is new with each start."""

    id: str
    host: str
    pid: int

    @classmethod
    def this(cls) -> "Process":
        return cls(secrets.token_hex(8), socket.gethostname(), os.getpid())


class Watch:
    """A failure detector: it judges by their beats which processes are gone, each time after its own beat.

    It counts looks instead of seconds. A clock that jumps changes nothing, and nor does a time in which the
    database was away or in which the one who looks was frozen: no one could give or see a beat.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}  # beats, and looks since they changed, by process id

    def look(self, beats: Mapping[str, int]) -> dict[str, int]:
        """Take in the beats of the others; gives those of the processes that fell silent."""
        before, self._seen = self._seen, {}
        for ident, count in beats.items():
            known, looks = before.get(ident, (None, 0))
            self._seen[ident] = count, looks + 1 if known == count else 0
        return {ident: count for ident, (count, looks) in self._seen.items() if looks >= _SILENT}


class Peers(Protocol):
    """The other processes on this database."""

    def on(self, kind: str, handler: Callable[[Any], None]) -> None:
        """Call this with what others say of a kind."""

    def broadcast(self, kind: str, body: Any) -> None:
        """Tell all others something of a kind, as JSON takes it; it may be lost."""

    def on_arrival(self, handler: Callable[[], None]) -> None:
        """Call this when one begins to listen, or does so again: what was said before, it may not know."""

    async def lease(self, name: str) -> bool:
        """Try to take the lease on a name, and tell if this process has it.

        When the process that holds it is gone, another one can take it.
        """


class OwnWork:
    """A cache of the work that this process makes and does itself, to save reads and claims.

    It has turns that begin as soon as they are wanted, the newest proposals of turns, and proposals that run
    as soon as they are approved. It is in memory only: whatever is not in it is looked up in the rows.
    """

    def __init__(self, process: str, turns_by_person: int) -> None:
        """``process``: the id of this one, where no other does its work; else empty."""
        self._process = process
        self._by_person = turns_by_person
        self._people: dict[str, str] = {}  # ids of Persons, by account
        self._turns: dict[str, str] = {}  # whose they are, by conversation id
        self._opened: dict[str, Proposal] = {}  # by id, in the order they were opened
        self._approved: dict[str, Proposal] = {}  # by id
        self._batches: dict[str, str] = {}  # of rows that were just approved, by their ids

    def learn(self, actor: Actor, person: str) -> None:
        """Remember which Person an account belongs to."""
        if len(self._people) >= _KEPT:
            self._people.clear()
        self._people[str(actor)] = person

    def owner(self, actor: Actor) -> str:
        """Return the owner of a turn that is wanted now: this process where it begins right away."""
        person = self._people.get(str(actor))
        busy = list(self._turns.values())
        free = len(busy) < _MOST_OWNED and busy.count(person or "") < self._by_person
        if person and free:
            return self._process
        return ""

    def begins(self, conversation_id: str, actor: Actor) -> None:
        """Note that a conversation's turn was stored with this process as its owner."""
        self._turns[conversation_id] = self._people[str(actor)]

    def queue(self, conversation_id: str) -> Queue | None:
        """Return the queue of a turn of this process; None: look it up in the rows."""
        person = self._turns.get(conversation_id)
        if person:
            return Queue(person, self._by_person)
        return None

    def turn_over(self, conversation_id: str) -> None:
        self._turns.pop(conversation_id, None)

    def keep_opened(self, proposal: Proposal) -> None:
        """Keep a proposal that was just opened, for when it is approved; of older ones the rows tell."""
        if not self._process or proposal.state is not State.PROPOSED:
            return
        if len(self._opened) >= _MOST_OPENED:
            del self._opened[next(iter(self._opened))]
        self._opened[proposal.id] = proposal

    def take_opened(self, proposal_id: str) -> Proposal | None:
        """Return the proposal as it was opened, once; it may have changed since."""
        return self._opened.pop(proposal_id, None)

    def keep_approved(self, found: tuple[Proposal, ...], jobs: tuple[Job, ...]) -> None:
        """Keep what was just approved for when it is run; each move of it is guarded by its version."""
        if len(self._batches) >= _KEPT:
            self._batches.clear()
        self._batches |= {p.id: p.batch for p in found if p.batch}
        if not self._process:
            return
        if len(self._approved) >= _KEPT:
            self._approved.clear()
        runs = {job.key for job in jobs if job.work is Work.EXECUTE}
        self._approved |= {p.id: p for p in found if p.id in runs}

    def queue_in_batch(self, proposal_id: str) -> Queue | None:
        """Return the queue of a batch's row, which keeps others' work from waiting behind all of it."""
        batch = self._batches.pop(proposal_id, None)
        if batch:
            return Queue(batch, _ROWS_TOGETHER)
        return None

    def take_approved(self, proposal_id: str) -> Proposal | None:
        return self._approved.pop(proposal_id, None)
