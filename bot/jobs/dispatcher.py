"""The dispatcher of one process: an asyncio task for each job, the same job once at a time.

A job names a kind of work and a key, such as a turn and its conversation; the work itself is in the rows. A
job waits in a queue, such as that of one person's turns, for one of the slots of its kind of work. `Slots`
gives free slots to the queues in turn, and a `SlotTicket` is the place of one job in its queue.
``bot/jobs/distributed.py`` has the dispatcher of several processes, which uses this one.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping

from bot.domain.jobs import Job, Queue, Work
from bot.telemetry.logs import logger

log = logger(__name__)

# The number of jobs of each kind that run at a time; no kind waits for slots of another kind.
SLOTS: Mapping[Work, int] = {
    Work.TURN: 100,
    Work.EXECUTE: 100,
    Work.REDRAW: 50,
    Work.TEAM: 20,
    Work.DELIVER: 50,
}

Handler = Callable[[Job], Awaitable[tuple[Job, ...]]]
"""A function that does a job and returns the jobs that follow."""
QueueOf = Callable[[Job], Awaitable[Queue]]
"""A function that returns the queue of a job."""


class EmbeddedDispatcher:
    """Runs jobs as tasks of this process.

    Nothing is kept beyond the running tasks: work that is lost with the process is found again in the rows.
    Jobs woken before `start`, while paused or after `close` are dropped; the rows still ask for them.
    """

    def __init__(self, sizes: Mapping[Work, int] = SLOTS) -> None:
        self._handler: Handler | None = None
        self._queue_of: QueueOf | None = None
        self._tasks: dict[Job, asyncio.Task[None]] = {}
        self._tickets: dict[Job, SlotTicket] = {}
        self._run_again: set[Job] = set()  # running jobs that were woken since they began
        self._slots = {work: Slots(size) for work, size in sizes.items()}
        self._sizes = sizes
        self._paused = False

    def start(self, handler: Handler, queue_of: QueueOf | None = None) -> None:
        """Start to run jobs. Without ``queue_of``, the jobs of a kind have one queue."""
        self._handler = handler
        self._queue_of = queue_of

    @property
    def fault(self) -> None:
        """Always None: nothing outside this process can stop it."""

    @property
    def tasks(self) -> Mapping[Job, asyncio.Task[None]]:
        """The jobs that run or wait for a slot."""
        return self._tasks

    def count_taken(self, work: Work) -> int:
        """Return the number of taken slots for this kind of work."""
        return self._slots[work].taken

    def is_crowded(self, work: Work, queue: Queue) -> bool:
        """Return whether this queue has as many running jobs as it may have."""
        return self._slots[work].is_crowded(queue)

    @property
    def takes_work(self) -> bool:
        """True after `start`, unless it is paused or closed."""
        return self._handler is not None and not self._paused

    async def wake(self, *jobs: Job) -> None:
        """Run these jobs, for which there is new work. A job that runs now is run once more after."""
        for job in jobs:
            ticket = self._tickets.get(job)
            if ticket is not None and not ticket.granted.done():
                # a job that waits for a slot has not read its rows: it needs no second run, but perhaps
                # another queue, since a person may wait for it now
                ticket.move(await self.find_queue(job))
            else:
                self.begin_or_repeat(job)

    async def find(self, *jobs: Job) -> None:
        """Run these jobs, which a sweep found in the rows. Jobs that wait or run now are left alone."""
        for job in jobs:
            self.begin(job)

    def begin_or_repeat(self, job: Job) -> None:
        """Begin a job. A job that has a task already is run once more after."""
        if job in self._tasks:
            self._run_again.add(job)
        else:
            self.begin(job)

    def begin(self, job: Job, queue: Queue | None = None) -> None:
        """Start a task for the job unless it has one.

        ``queue``: the queue in which the job waits for a slot; None asks `find_queue` first.
        """
        if self._handler is None or self._paused or job in self._tasks:
            return
        if queue is not None:
            self._tickets[job] = SlotTicket(self._slots[job.work], queue)
        task = asyncio.create_task(self._run(job, self._handler), name=f"{job.work}:{job.key}")
        self._tasks[job] = task
        # a task that is cancelled before it begins never reaches the `finally` of `_run`
        task.add_done_callback(lambda done: self._forget(job, done))

    async def stop_turn(self, conversation_id: str) -> None:
        """Stop a turn, which can only run in this process."""
        self.interrupt(conversation_id)

    def interrupt(self, conversation_id: str) -> bool:
        """Cancel the turn of a conversation; return False if none runs in this process."""
        task = self._tasks.get(Job(Work.TURN, conversation_id))
        return task is not None and task.cancel()

    async def wait_until_idle(self) -> None:
        """Return when nothing runs."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())  # `gather` would cancel the tasks with this one

    def pause(self) -> None:
        """Take no work until `resume`, and interrupt turns: their rows say to run them again."""
        self._paused = True
        for job, task in self._tasks.items():
            if job.work is Work.TURN:
                task.cancel()

    def resume(self) -> None:
        self._paused = False

    async def close(self, seconds: float) -> None:
        """Let running executions end for up to ``seconds``, and interrupt all other jobs."""
        self.pause()
        running = [task for job, task in self._tasks.items() if job.work is Work.EXECUTE]
        if running:
            await asyncio.wait(running, timeout=seconds)
        remaining = list(self._tasks.values())
        for task in remaining:
            task.cancel()
        await asyncio.gather(*remaining, return_exceptions=True)

    async def _run(self, job: Job, handler: Handler) -> None:
        follow_ups: tuple[Job, ...] = ()
        try:
            if job not in self._tickets:
                self._tickets[job] = SlotTicket(self._slots[job.work], await self.find_queue(job))
            await self._tickets[job].granted
            follow_ups = await handler(job)
        except Exception as error:  # the rows still ask for the work, and `Recovery` finds it there
            log.error("job failed", work=job.work, key=job.key, exc_info=error)
        finally:
            if job in self._run_again:
                follow_ups = (*follow_ups, job)
            self._forget(job, asyncio.current_task())
        await self.wake(*follow_ups)

    def _forget(self, job: Job, task: asyncio.Task[None] | None) -> None:
        """Forget a task that ended, and give back its slot, unless the job has a newer task."""
        if self._tasks.get(job) is task:
            del self._tasks[job]
            self._run_again.discard(job)
            ticket = self._tickets.pop(job, None)
            if ticket:
                ticket.release()

    async def find_queue(self, job: Job) -> Queue:
        """Return the queue of a job."""
        if self._queue_of:
            return await self._queue_of(job)
        return Queue("", self._sizes[job.work])


class Slots:
    """Slots for jobs of one kind: at most ``size`` run at a time, shared fairly between queues.

    Queues with waiting jobs get slots in turn. A queue that runs as many jobs as it may (`Queue.max_running`)
    is passed over. Queues of jobs for which no person waits (`Queue.runs_last`) come last.
    """

    def __init__(self, size: int) -> None:
        self._free_count = size
        self._taken: Counter[str] = Counter()  # the number of taken slots by a queue's name
        self._waiting: dict[Queue, deque[SlotTicket]] = {}  # the queue that got a slot last is the last

    @property
    def taken(self) -> int:
        """The number of slots in use."""
        return self._taken.total()

    def is_crowded(self, queue: Queue) -> bool:
        """Return whether a queue runs as many jobs as it may."""
        return self._taken[queue.name] >= queue.max_running

    def wait(self, ticket: "SlotTicket") -> None:
        """Put a ticket at the end of its queue, and give it a slot if it is its turn."""
        self._waiting.setdefault(ticket.queue, deque()).append(ticket)
        self._grant_next()

    def forget(self, ticket: "SlotTicket") -> None:
        """Remove a ticket that no longer waits."""
        waiting = self._waiting.get(ticket.queue)
        if waiting is not None and ticket in waiting:
            waiting.remove(ticket)
            if not waiting:
                del self._waiting[ticket.queue]

    def release(self, ticket: "SlotTicket") -> None:
        """Free the slot of a ticket for the next one."""
        self._free_count += 1
        name = ticket.queue.name
        self._taken[name] -= 1
        if not self._taken[name]:
            del self._taken[name]  # otherwise the names of all conversations pile up
        self._grant_next()

    def _grant_next(self) -> None:
        """Give the free slots to the tickets whose turn it is."""
        while self._free_count:
            queue = self._choose_queue()
            if queue is None:
                return
            waiting = self._waiting.pop(queue)
            ticket = waiting.popleft()
            if waiting:
                # inserted again at the end of the dict: `_choose_queue` takes the first of equal queues
                self._waiting[queue] = waiting
            if ticket.granted.done():
                continue  # its task was cancelled, and has not run its `finally` yet
            self._free_count -= 1
            self._taken[queue.name] += 1
            ticket.granted.set_result(None)

    def _choose_queue(self) -> Queue | None:
        ready = [queue for queue in self._waiting if not self.is_crowded(queue)]
        return min(ready, key=lambda queue: queue.runs_last, default=None)


class SlotTicket:
    """The place of one job in its queue for a slot; ``granted`` is done when it has the slot."""

    def __init__(self, slots: Slots, queue: Queue) -> None:
        self.queue = queue
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._slots = slots
        slots.wait(self)

    def move(self, queue: Queue) -> None:
        """Wait in another queue from now on; a slot that was given stays."""
        if queue != self.queue and not self.granted.done():
            self._slots.forget(self)
            self.queue = queue
            self._slots.wait(self)

    def release(self) -> None:
        """Give the slot back, or stop waiting for one."""
        if self.granted.done() and not self.granted.cancelled():
            self._slots.release(self)
        else:
            self._slots.forget(self)
