"""Jobs, their queues, and the processes that work on one database.

A job is a wake-up for one kind of work at one key, such as the id of a conversation: its worker reads the
rows and does the work that they ask for. So a lost job is found again, and a superfluous job does no harm. A
*turn* is one piece of the agent's work in a conversation. Dispatchers run jobs (``bot/jobs/dispatcher.py``,
``bot/jobs/distributed.py``); `FailureDetector` finds dead processes; `WorkCache` saves reads of rows that
this process itself has just written.
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
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal

BEAT_SECONDS = 2.0
"""The time between two beats of a process, each of which raises the number in its row by one."""
_MAX_SILENT_LOOKS = 4  # looks in a row that found no new beat, after which a process counts as gone
_MAX_OWN_TURNS = 50  # beyond these, turns wait in their queue, and any process may begin them
_MAX_CACHED = 10_000  # entries of a cache with small values
_MAX_OPENED = 200  # cached proposals that wait for people, each with all its contents
_MAX_ROWS_AT_ONCE = 4  # rows of one batch that run at a time; the rows after them can still be stopped


class Work(StrEnum):
    """The kinds of work, each with the key of its jobs."""

    TURN = "turn"  # the agent works in a conversation; key: its id
    EXECUTE = "execute"  # an approved call runs; key: the proposal's id
    REDRAW = "redraw"  # cards show their new state; key: id of the line with the calls
    TEAM = "team"  # the message that shows a team is redrawn; key: id of the lead agent's conversation
    DELIVER = "deliver"  # texts that people were not shown yet are posted; key: id of the conversation


class Job(NamedTuple):
    """A wake-up for one kind of work at one key."""

    work: Work
    key: str


CHANGED = Job(Work.REDRAW, "")
"""The job after a change that no card shows: it wakes what waits for changed rows. It alone has no key."""

Wake = Callable[..., Awaitable[None]]
"""A function that starts jobs, as `Dispatcher.wake` does."""


class Queue(NamedTuple):
    """A queue in which jobs of one kind wait for a slot, such as the turns of one person."""

    name: str
    max_running: int  # the most jobs of the queue that run at a time
    runs_last: bool = False  # no person waits for these jobs, so the jobs of all other queues run first


LOCAL_QUEUE = Queue("here", sys.maxsize)
"""The queue of jobs that cost next to nothing: the process that wakes them runs them itself."""


class Dispatcher(Protocol):
    """Runs each job soon, once at a time per (work, key); a job woken while it runs is run again after."""

    @property
    def takes_work(self) -> bool:
        """True if this process runs jobs now; False before the start, while paused, and at the end."""

    async def wake(self, *jobs: Job) -> None:
        """Run these jobs soon: there is new work for them. A job that runs now is run again after."""

    async def find(self, *jobs: Job) -> None:
        """Run these jobs soon, which a sweep of the rows found to be due.

        Unlike `wake`, it leaves a job alone that waits or runs now.
        """

    async def stop_turn(self, conversation_id: str) -> None:
        """Interrupt the turn of a conversation, wherever it runs."""

    def interrupt(self, conversation_id: str) -> bool:
        """Interrupt the conversation's turn if it runs in this process, and tell if it did."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that works on the database."""

    id: str  # new with each start
    host: str
    pid: int

    @classmethod
    def this(cls) -> "Process":
        """Describe the running process, with a new id."""
        return cls(secrets.token_hex(8), socket.gethostname(), os.getpid())


class FailureDetector:
    """A failure detector: it finds by their beats which processes are gone.

    A process calls `record_beats` after each beat of its own. Silence is counted in these calls, not in
    seconds. So a clock that jumps does no harm, and no time counts in which the database was away or this
    process frozen.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _SeenBeats] = {}  # by process id

    def record_beats(self, beats: Mapping[str, int]) -> dict[str, int]:
        """Note the number of beats of each other process; return the processes that are gone.

        Both mappings are from a process id to a number of beats. For a process that is gone, it is the last
        number that was seen.
        """
        before = self._seen
        self._seen = {}
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
    """The number of a process's beats, and of the calls of `record_beats` since that number changed."""

    beats: int
    silent_looks: int


class Peers(Protocol):
    """The other processes on this database."""

    def on(self, kind: str, handler: Callable[[Any], None]) -> None:
        """Call the handler with the body of each message of this kind from another process."""

    def broadcast(self, kind: str, body: Any) -> None:
        """Send a message to all other processes; it may be lost. ``body``: a value that JSON can hold."""

    def on_arrival(self, handler: Callable[[], None]) -> None:
        """Call the handler when a process begins to listen: it may have missed all messages before."""

    async def lease(self, name: str) -> bool:
        """Try to take the lease on a name, and tell if this process has it.

        When the process that holds it is gone, another one can take it.
        """


class WorkCache:
    """A cache of the work that this process makes and does itself, to save reads and claims.

    It has the turns that this process begins immediately, the proposals that were just opened, and those that
    were just approved. It is in memory only: whatever is not in it is looked up in the rows. Where several
    processes share the work, it keeps only the Person of each account and the batches of approved rows.
    """

    def __init__(self, process: str, turns_by_person: int) -> None:
        """``process``: the id of this process if it is the only one on the database, else empty.

        ``turns_by_person``: the most turns of one person that run at a time.
        """
        self._process = process
        self._max_turns_by_person = turns_by_person
        self._people: dict[str, str] = {}  # ids of Persons, by account
        self._turns: dict[str, str] = {}  # ids of the Persons whose turns run, by conversation id
        self._opened: dict[str, Proposal] = {}  # by id, in the order they were opened
        self._approved: dict[str, Proposal] = {}  # by id
        self._batches: dict[str, str] = {}  # ids of the batches of rows that were just approved, by row id

    def remember_person(self, actor: Actor, person: str) -> None:
        """Remember which Person an account belongs to."""
        if len(self._people) >= _MAX_CACHED:
            self._people.clear()
        self._people[str(actor)] = person

    def find_turn_owner(self, actor: Actor) -> str:
        """Return the owner to store with a new turn of an account.

        It is the id of this process if this process can begin the turn now. It is empty otherwise, or if the
        account's Person is not cached: then the turn waits in its queue, and any process may begin it.
        """
        person = self._people.get(str(actor))
        if not person:
            return ""
        people_with_turns = list(self._turns.values())
        is_full = len(people_with_turns) >= _MAX_OWN_TURNS
        if is_full or people_with_turns.count(person) >= self._max_turns_by_person:
            return ""
        return self._process

    def note_turn_begun(self, conversation_id: str, actor: Actor) -> None:
        """Note that a conversation's turn was stored with the owner that `find_turn_owner` returned.

        Call it only for an owner that is not empty. If the account's Person is no longer cached, nothing is
        noted: the turn is then found in its row.
        """
        person = self._people.get(str(actor))
        if person:
            self._turns[conversation_id] = person

    def find_turn_queue(self, conversation_id: str) -> Queue | None:
        """Return the queue of a turn that `note_turn_begun` noted.

        None for another turn: its queue is found in the rows.
        """
        person = self._turns.get(conversation_id)
        if person:
            return Queue(person, self._max_turns_by_person)
        return None

    def note_turn_ended(self, conversation_id: str) -> None:
        """Note that a conversation's turn has ended."""
        self._turns.pop(conversation_id, None)

    def keep_opened(self, proposal: Proposal) -> None:
        """Keep a proposal that was just opened, for when it is approved. The oldest ones are dropped."""
        if not self._process or proposal.state is not State.PROPOSED:
            return
        if len(self._opened) >= _MAX_OPENED:
            del self._opened[next(iter(self._opened))]
        self._opened[proposal.id] = proposal

    def take_opened(self, proposal_id: str) -> Proposal | None:
        """Return and forget a proposal as it was opened; None if it is not kept.

        It may have changed since.
        """
        return self._opened.pop(proposal_id, None)

    def keep_approved(self, proposals: tuple[Proposal, ...], jobs: tuple[Job, ...]) -> None:
        """Keep proposals that were just approved, for their runs by these jobs.

        They may be outdated by then; the version in each change of a row guards against that.
        """
        if len(self._batches) >= _MAX_CACHED:
            self._batches.clear()
        self._batches |= {proposal.id: proposal.batch for proposal in proposals if proposal.batch}
        if not self._process:
            return
        if len(self._approved) >= _MAX_CACHED:
            self._approved.clear()
        ids_to_run = {job.key for job in jobs if job.work is Work.EXECUTE}
        self._approved |= {proposal.id: proposal for proposal in proposals if proposal.id in ids_to_run}

    def take_batch_queue(self, proposal_id: str) -> Queue | None:
        """Return and forget the queue for an approved row of a batch; None for a proposal in no batch.

        In a queue of its own, a long batch delays no one else's work.
        """
        batch = self._batches.pop(proposal_id, None)
        if batch:
            return Queue(batch, _MAX_ROWS_AT_ONCE)
        return None

    def take_approved(self, proposal_id: str) -> Proposal | None:
        """Return and forget a proposal as it was approved; None if it is not kept.

        It may have changed since.
        """
        return self._approved.pop(proposal_id, None)
