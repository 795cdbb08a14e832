"""The dispatcher of one process: an asyncio task per job, each (work, key) once at a time."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping

from bot.domain.jobs import Job, Queue, Work
from bot.telemetry.logs import logger

log = logger(__name__)

# How many jobs of each kind run at a time; no kind waits for another's places.
SLOTS: Mapping[Work, int] = {
    Work.TURN: 100,
    Work.EXECUTE: 100,
    Work.REDRAW: 50,
    Work.TEAM: 20,
    Work.DELIVER: 50,
}

Handler = Callable[[Job], Awaitable[tuple[Job, ...]]]
QueueOf = Callable[[Job], Awaitable[Queue]]


class EmbeddedDispatcher:
    """Runs jobs as tasks of this process.

    Nothing is kept beyond the running tasks: what is lost with the process is found again in the rows.

    What is woken before `start`, while paused or after `close` is dropped; the rows still ask for it.
    """

    def __init__(self, sizes: Mapping[Work, int] = SLOTS) -> None:
        self._handler: Handler | None = None
        self._queue_of: QueueOf | None = None
        self._tasks: dict[Job, asyncio.Task[None]] = {}
        self._places: dict[Job, SlotTicket] = {}
        self._again: set[Job] = set()
        self._slots = {work: Slots(size) for work, size in sizes.items()}
        self._sizes = sizes
        self._paused = False

    def start(self, handler: Handler, queue_of: QueueOf | None = None) -> None:
        """Start. ``handler`` does one job and returns the work it made; ``queue_of`` gives a job's queue."""
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
        """Return whether as much of this queue is at work as may be."""
        return self._slots[work].is_crowded(queue)

    async def wake(self, *jobs: Job) -> None:
        for job in jobs:
            place = self._places.get(job)
            if place is not None and not place.given.done():  # so it did not look at the rows yet
                place.move(await self.queue(job))  # a person may wait for it now
            else:
                self.begin_or_repeat(job)

    async def find(self, *jobs: Job) -> None:
        for job in jobs:
            self.begin(job)

    def begin_or_repeat(self, job: Job) -> None:
        """Begin a job; one that is at work already is done once more after."""
        if job in self._tasks:
            self._again.add(job)
        else:
            self.begin(job)

    def begin(self, job: Job, queue: Queue | None = None) -> None:
        """Begin it unless it is at work, or let it wait in that ``queue``; without one, that is asked for."""
        if self._handler is None or self._paused or job in self._tasks:
            return
        if queue is not None:
            self._places[job] = SlotTicket(self._slots[job.work], queue)
        task = asyncio.create_task(self._do(job, self._handler), name=":".join(job))
        self._tasks[job] = task
        task.add_done_callback(lambda done: self._forget(job, done))  # it may be cancelled before it begins

    async def stop_turn(self, conversation_id: str) -> None:
        self.interrupt(conversation_id)

    def interrupt(self, conversation_id: str) -> bool:
        task = self._tasks.get(Job(Work.TURN, conversation_id))
        return task is not None and task.cancel()

    async def idle(self) -> None:
        """Return when nothing runs."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())  # gather would pass a cancel on

    def pause(self) -> None:
        """Take no work until `resume`, and interrupt turns: their rows say to run them again."""
        self._paused = True
        for job, task in self._tasks.items():
            if job.work is Work.TURN:
                task.cancel()

    def resume(self) -> None:
        self._paused = False

    async def close(self, seconds: float) -> None:
        """Let running executions end for up to ``seconds``; interrupt the rest: the rows say to continue."""
        self.pause()
        running = [task for job, task in self._tasks.items() if job.work is Work.EXECUTE]
        if running:
            await asyncio.wait(running, timeout=seconds)
        rest = list(self._tasks.values())
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _do(self, job: Job, handler: Handler) -> None:
        made: tuple[Job, ...] = ()
        try:
            if job not in self._places:
                self._places[job] = SlotTicket(self._slots[job.work], await self.queue(job))
            await self._places[job].given
            made = await handler(job)
        except Exception as error:  # the rows still say what to do; the next tick finds it
            log.error("job failed", work=job.work, key=job.key, exc_info=error)
        finally:
            again = job in self._again
            self._forget(job, asyncio.current_task())
        await self.wake(*made, *((job,) if again else ()))

    def _forget(self, job: Job, task: asyncio.Task[None] | None) -> None:
        """Give back the place of a task that ended, unless the job has a newer task."""
        if self._tasks.get(job) is task:
            del self._tasks[job]
            self._again.discard(job)
            place = self._places.pop(job, None)
            if place:
                place.leave()

    async def queue(self, job: Job) -> Queue:
        """Return the queue of a job."""
        if self._queue_of:
            return await self._queue_of(job)
        return Queue("", self._sizes[job.work])


class Slots:
    """Slots for jobs of one kind: at most ``size`` run at a time, shared fairly between queues.

    Queues take turns, each within its own bound, ``later`` ones last.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._inside: Counter[str] = Counter()  # by a queue's name
        self._waiting: dict[Queue, deque[SlotTicket]] = {}

    @property
    def taken(self) -> int:
        """The number of slots in use."""
        return self._inside.total()

    def is_crowded(self, queue: Queue) -> bool:
        """Return whether the queue has reached its bound."""
        return self._inside[queue.name] >= queue.most

    def wait(self, place: "SlotTicket") -> None:
        self._waiting.setdefault(place.queue, deque()).append(place)
        self._admit()

    def forget(self, place: "SlotTicket") -> None:
        """Remove a ticket that no longer waits."""
        waiting = self._waiting.get(place.queue)
        if waiting is not None and place in waiting:
            waiting.remove(place)
            if not waiting:
                del self._waiting[place.queue]

    def leave(self, place: "SlotTicket") -> None:
        self._free += 1
        self._inside -= Counter([place.queue.name])
        self._admit()

    def _admit(self) -> None:
        while self._free and (queue := self._next()):
            waiting = self._waiting.pop(queue)
            place = waiting.popleft()
            if waiting:
                self._waiting[queue] = waiting  # at the end: the others come first now
            if place.given.done():
                continue  # who waited was cancelled in the same moment, and did not run since
            self._free -= 1
            self._inside[queue.name] += 1
            place.given.set_result(None)

    def _next(self) -> Queue | None:
        ready = [queue for queue in self._waiting if not self.is_crowded(queue)]
        return min(ready, key=lambda queue: queue.later, default=None)


class SlotTicket:
    """A slot that is waited for from the start; ``given`` is done once it is there."""

    def __init__(self, slots: Slots, queue: Queue) -> None:
        self.queue = queue
        self.given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._slots = slots
        slots.wait(self)

    def move(self, queue: Queue) -> None:
        """Wait in another queue from now on; nothing changes for a slot that was given."""
        if queue != self.queue and not self.given.done():
            self._slots.forget(self)
            self.queue = queue
            self._slots.wait(self)

    def leave(self) -> None:
        """Give the slot back, or wait for it no longer."""
        if self.given.done() and not self.given.cancelled():
            self._slots.leave(self)
        else:
            self._slots.forget(self)
