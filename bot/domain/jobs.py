"""Jobs, their queues, and the processes that work on one database.

A job is a wake-up: its worker reads the rows and does the work that they ask for. So a lost job is found
again, and a superfluous job does no harm.
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
"""The time between two beats of a process; at each beat it also reads the beats of the others."""
_MAX_SILENT_LOOKS = 4  # readings in a row that found no new beat, after which a process counts as gone
_MAX_OWN_TURNS = 50  # beyond these, turns wait in their queue, and any process may begin them
_MAX_CACHED = 10_000  # entries of a cache with small values
_MAX_OPENED = 200  # cached proposals, each with all its contents
_MAX_ROWS_AT_ONCE = 4  # rows of one batch that run at a time; the rows after them can still be stopped


class Work(StrEnum):
    TURN = "turn"  # key: conversation id
    EXECUTE = "execute"  # key: proposal id
    REDRAW = "redraw"  # key: id of the answer (message) whose cards changed; none in `CHANGED`
    TEAM = "team"  # key: id of the lead conversation whose team changed
    DELIVER = "deliver"  # key: conversation id; posts the texts that people were not shown yet


class Job(NamedTuple):
    work: Work
    key: str


CHANGED = Job(Work.REDRAW, "")
"""The job that wakes only readers of rows, after a change that no card shows."""

Wake = Callable[..., Awaitable[None]]
"""Starts jobs, as `Dispatcher.wake` does; a process that runs none leaves them to the rows."""


class Queue(NamedTuple):
    """A queue of jobs."""

    name: str
    most: int  # the most jobs that run at a time
    later: bool = False  # no one waits for these jobs, so they come after all others


HERE = Queue("here", sys.maxsize)
"""The queue of jobs that cost next to nothing: the process that wakes them runs them itself."""


class Dispatcher(Protocol):
    """Runs each job soon, once at a time per (work, key); a job woken while it runs is run again after."""

    @property
    def takes_work(self) -> bool:
        """True if this process runs jobs now; False before the start, while paused, and at the end."""

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
    """A failure detector: it finds by their beats which processes are gone.

    A process calls `look` after each beat of its own, and silence is counted in calls, not in seconds. So
    a clock that jumps changes nothing, nor does a time in which the database was away or this process frozen.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _SeenBeats] = {}  # by process id

    def look(self, beats: Mapping[str, int]) -> dict[str, int]:
        """Take in the number of beats of each other process; return those of processes that are gone."""
        before, self._seen = self._seen, {}
        for process_id, count in beats.items():
            earlier = before.get(process_id)
            silent_looks = 0
            if earlier is not None and earlier.beats == count:
                silent_looks = earlier.silent_looks + 1
            self._seen[process_id] = _SeenBeats(count, silent_looks)
        return {
            process_id: seen.beats
            for process_id, seen in self._seen.items()
            if seen.silent_looks >= _MAX_SILENT_LOOKS
        }


class _SeenBeats(NamedTuple):
    """The number of a process's beats, and of the calls of `Watch.look` since that number changed."""

    beats: int
    silent_looks: int


class Peers(Protocol):
    """The other processes on this database."""

    def on(self, kind: str, handler: Callable[[Any], None]) -> None:
        """Call the handler with each message of a kind from another process."""

    def broadcast(self, kind: str, body: Any) -> None:
        """Send a message of a kind to all others. ``body`` is JSON. It may be lost."""

    def on_arrival(self, handler: Callable[[], None]) -> None:
        """Call the handler when a process begins to listen: it may have missed all messages before."""

    async def lease(self, name: str) -> bool:
        """Try to take the lease on a name, and tell if this process has it.

        When the process that holds it is gone, another one can take it.
        """


class OwnWork:
    """A cache of the work that this process makes and does itself, to save reads and claims.

    It has turns that this process begins immediately, proposals that were just opened, and proposals that
    were just approved. It is in memory only: whatever is not in it is looked up in the rows.
    """

    def __init__(self, process: str, turns_by_person: int) -> None:
        """``process``: the id of this process if it alone does its work, else empty."""
        self._process = process
        self._by_person = turns_by_person
        self._people: dict[str, str] = {}  # ids of Persons, by account
        self._turns: dict[str, str] = {}  # ids of the Persons whose turns run, by conversation id
        self._opened: dict[str, Proposal] = {}  # by id, in the order they were opened
        self._approved: dict[str, Proposal] = {}  # by id
        self._batches: dict[str, str] = {}  # ids of the batches of rows that were just approved, by row id

    def learn(self, actor: Actor, person: str) -> None:
        """Remember which Person an account belongs to."""
        if len(self._people) >= _MAX_CACHED:
            self._people.clear()
        self._people[str(actor)] = person

    def owner(self, actor: Actor) -> str:
        """Return the owner of a turn that is wanted now: this process if it can begin it immediately."""
        person = self._people.get(str(actor))
        if not person:
            return ""
        people_with_turns = list(self._turns.values())
        is_full = len(people_with_turns) >= _MAX_OWN_TURNS
        if is_full or people_with_turns.count(person) >= self._by_person:
            return ""
        return self._process

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
        """Keep a proposal that was just opened, for when it is approved. The oldest ones are dropped."""
        if not self._process or proposal.state is not State.PROPOSED:
            return
        if len(self._opened) >= _MAX_OPENED:
            del self._opened[next(iter(self._opened))]
        self._opened[proposal.id] = proposal

    def take_opened(self, proposal_id: str) -> Proposal | None:
        """Return the proposal as it was opened, once; it may have changed since."""
        return self._opened.pop(proposal_id, None)

    def keep_approved(self, found: tuple[Proposal, ...], jobs: tuple[Job, ...]) -> None:
        """Keep proposals that were just approved for their runs; the version guards each change of a row."""
        if len(self._batches) >= _MAX_CACHED:
            self._batches.clear()
        self._batches |= {proposal.id: proposal.batch for proposal in found if proposal.batch}
        if not self._process:
            return
        if len(self._approved) >= _MAX_CACHED:
            self._approved.clear()
        running_ids = {job.key for job in jobs if job.work is Work.EXECUTE}
        self._approved |= {proposal.id: proposal for proposal in found if proposal.id in running_ids}

    def queue_in_batch(self, proposal_id: str) -> Queue | None:
        """Return the queue for a row of a batch: a long batch must not delay the work of other people."""
        batch = self._batches.pop(proposal_id, None)
        if batch:
            return Queue(batch, _MAX_ROWS_AT_ONCE)
        return None

    def take_approved(self, proposal_id: str) -> Proposal | None:
        return self._approved.pop(proposal_id, None)
