"""The dispatcher of several processes, which share jobs by Procrastinate, a job queue in their PostgreSQL.

A process runs the jobs that it wakes in its local dispatcher, as a single process does. If there are other
processes, it keeps some slots free for their jobs. A job for which it has no room is *deferred*: it is put
into Procrastinate's queue, from which workers in each process take jobs. Jobs hold no locks: turns,
executions and posts are claimed in Nod's own rows, so a job that is lost, late or doubled does no harm.

Some words come from the local dispatcher (``bot/jobs/dispatcher.py``). A job is *woken* when there is new
work for it, and *found* by a sweep of the rows. To *begin* a job is to start its task, which waits for a
slot. Each job also belongs to a `Queue`, such as that of one person's turns. A `Queue` is *crowded* if as
many of its jobs run in this process as it may have.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import DeleteJobCondition
from sqlalchemy.exc import SQLAlchemyError

from bot.domain.jobs import LOCAL_QUEUE, Job, Queue, Work
from bot.errors import LeasedElsewhere, SettingsError
from bot.jobs.dispatcher import SLOTS, EmbeddedDispatcher, Handler, QueueOf
from bot.store.notifications import Wire, build_conninfo
from bot.store.refusals import explain_refusal
from bot.telemetry.logs import logger

log = logger(__name__)

_SLOTS_FOR_OWN_JOBS: Mapping[Work, int] = {work: size // 4 for work, size in SLOTS.items()}
"""By kind of work, the slots for jobs that a process wakes itself, where there are other processes.

It defers further jobs to Procrastinate's queue, since one process may receive all messages, as from Telegram.
The process's workers, which take jobs from that queue, have the other slots.
"""
_WORKERS: Mapping[str, Sequence[Work]] = {
    "turns": [Work.TURN],
    "executions": [Work.EXECUTE],
    "posts": [Work.REDRAW, Work.DELIVER, Work.TEAM],
}
"""The workers of each process by name, with the kinds of work that they take from the queue."""
_POLL_SECONDS = 2.0  # the time between two reads of a queue, in case a notification is lost
_BEAT_SECONDS = 3.0  # the time between two heartbeats of a worker
_STALLED_SECONDS = 10.0  # the time without a heartbeat after which a worker's jobs are given to others
_STEADY_SECONDS = 5.0  # after this time without a failure, a worker counts as healthy again
_FIRST_PAUSE_SECONDS = 1.0  # the time before a worker that failed begins again, doubled at each failure
_MAX_PAUSE_SECONDS = 60.0
_CONNECTIONS = 2  # the connections that all workers share; each worker has a further one that listens
_PATIENCE_SECONDS = 5.0  # the longest wait for a free connection, and for the workers to end


def prepare(url: str) -> None:
    """Make Procrastinate's tables where they are missing, however many processes start at the same time.

    Raises SettingsError.
    """
    connector = procrastinate.SyncPsycopgConnector(conninfo=build_conninfo(url), min_size=1, max_size=1)
    try:
        with procrastinate.App(connector=connector).open() as app:
            if not app.check_connection():
                try:
                    app.schema_manager.apply_schema()
                except ConnectorException:
                    if not app.check_connection():  # otherwise another process has made the tables
                        raise
    except ConnectorException as error:
        raise SettingsError(explain_refusal(error.__cause__ or error)) from None


class DistributedDispatcher:
    """Implements `Dispatcher` for all processes that work on one database.

    Jobs woken before `start` are dropped; the rows still ask for them.
    """

    def __init__(
        self,
        url: str,
        wire: Wire,
        *,
        does_jobs: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``wire``: sends messages to the other processes, and tells if there are any.

        ``does_jobs`` False: this process does no jobs, and defers all that it wakes to the others. ``sleep``:
        waits for some seconds, between two tries of a worker.
        """
        self._wire = wire
        self._does_jobs = does_jobs
        self._sleep = sleep
        self._local = EmbeddedDispatcher()
        self._app = procrastinate.App(
            connector=procrastinate.PsycopgConnector(
                # without waiting for the disk at each commit: a lost wake-up costs only seconds
                conninfo=build_conninfo(url, without_sync=True),
                min_size=1,
                max_size=_CONNECTIONS,
                timeout=_PATIENCE_SECONDS,
            )
        )
        self._procrastinate_task = self._app.task(name="work")(self._run_deferred)
        self._handler: Handler | None = None
        self._workers: list[asyncio.Task[None]] = []
        self._failing: set[str] = set()  # names of workers that failed and have not run steadily since
        self._closing = False
        wire.on("wake", self._repeat_leased)

    async def open(self) -> None:
        """Connect. Raises ConnectorException."""
        await self._app.open_async()

    def start(self, handler: Handler, queue_of: QueueOf | None = None) -> None:
        """Start the local dispatcher and the workers that take jobs from PostgreSQL."""
        self._handler = handler
        self._local.start(self._do_job, queue_of)
        if self._does_jobs and not self._workers:
            self._workers = [asyncio.create_task(self._run_worker(name), name=name) for name in _WORKERS]

    @property
    def tasks(self) -> Mapping[Job, asyncio.Task[None]]:
        """The jobs that run or wait for a slot in this process."""
        return self._local.tasks

    @property
    def fault(self) -> str | None:
        """The reason why this process can't do its work; None while it can."""
        failing = ", ".join(sorted(self._failing))
        if failing:
            return f"work can't be taken up, see the log: {failing}"
        return None

    @property
    def takes_work(self) -> bool:
        """Always False, since another process may run the jobs that are woken here.

        It is True only for a process that runs all of its jobs itself.
        """
        return False

    async def wake(self, *jobs: Job) -> None:
        """Run these jobs, for which there is new work, here or in another process."""
        if self._handler is None or self._closing:
            return
        with _log_outage("wake-ups"):
            for job in dict.fromkeys(jobs):
                if job in self.tasks:
                    await self._local.wake(job)
                elif job.work is Work.DELIVER and Job(Work.TURN, job.key) in self.tasks:
                    self._local.begin(job)  # only the process that runs a turn can show the turn's questions
                else:
                    queue = await self._local.find_queue(job)
                    if self._is_local(job, queue):
                        self._local.begin(job, queue)
                    else:
                        await self._defer(job, queue)

    async def find(self, *jobs: Job) -> None:
        """Put the jobs of dead workers back into Procrastinate's queue, then run these jobs here.

        A process that does no jobs does neither.
        """
        if not self._does_jobs:
            return
        with _log_outage("the jobs of dead workers"):
            manager = self._app.job_manager
            for stalled in await manager.get_stalled_jobs(seconds_since_heartbeat=_STALLED_SECONDS):
                with contextlib.suppress(ConnectorException):  # another process returned the jobs first
                    await manager.retry_job(stalled)
        await self._local.find(*jobs)

    async def stop_turn(self, conversation_id: str) -> None:
        """Stop a turn, in whichever process it runs."""
        self.interrupt(conversation_id)
        self._wire.broadcast("stop", conversation_id)  # each other process stops the turn if it has it

    def interrupt(self, conversation_id: str) -> bool:
        """Cancel the turn of a conversation; return False if none runs in this process."""
        return self._local.interrupt(conversation_id)

    async def wait_until_idle(self) -> None:
        """Return when nothing runs here."""
        await self._local.wait_until_idle()

    async def close(self, seconds: float) -> None:
        """Let running executions end for up to ``seconds``; other processes take up all other work."""
        self._closing = True
        for worker in self._workers:
            worker.cancel()
        await self._local.close(seconds)
        if self._workers:
            _, late = await asyncio.wait(self._workers, timeout=_PATIENCE_SECONDS)
            for worker in late:  # Python before 3.12 may lose a cancel in the moment in which the wait ends
                worker.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)
        await self._app.close_async()

    def _is_local(self, job: Job, queue: Queue) -> bool:
        """Return whether this process runs a job that it wakes itself, instead of deferring it."""
        if queue is LOCAL_QUEUE:  # the queue of jobs that cost next to nothing
            return True
        if not self._does_jobs:
            return False
        if not self._wire.has_others:
            return True
        is_crowded = self._local.is_crowded(job.work, queue)
        return not is_crowded and self._local.count_taken(job.work) < _SLOTS_FOR_OWN_JOBS[job.work]

    async def _defer(self, job: Job, queue: Queue) -> None:
        """Put a job into Procrastinate's queue, once, for any worker.

        It comes after all other jobs if no person waits for it (`Queue.runs_last`), or if its own queue, such
        as that of one person's turns, is crowded.
        """
        priority = -1 if queue.runs_last or self._local.is_crowded(job.work, queue) else 0
        deferrer = self._procrastinate_task.configure(
            queue=job.work, queueing_lock=f"{job.work}:{job.key}:{priority}", priority=priority
        )
        with contextlib.suppress(AlreadyEnqueued):
            await deferrer.defer_async(work=job.work, key=job.key)

    async def _run_deferred(self, work: str, key: str) -> None:
        """Run a job that a worker took from Procrastinate's queue, by the local dispatcher.

        The worker is busy until the job ends. If the job's queue is crowded, the job would only wait for its
        turn, so the worker takes the next job instead.
        """
        job = Job(Work(work), key)
        for name, kinds in _WORKERS.items():
            if job.work in kinds:
                self._failing.discard(name)  # the worker has taken this job, so it works again
        with _log_outage(f"{work} {key}"):
            queue = await self._local.find_queue(job)
            is_crowded = self._local.is_crowded(job.work, queue)
            if job in self.tasks:
                await self._local.wake(job)
            else:
                self._local.begin(job, queue)
                if not is_crowded and job in self.tasks:
                    await asyncio.wait({self.tasks[job]})

    async def _run_worker(self, name: str) -> None:
        """Run one of Procrastinate's workers until this process ends; a worker that fails begins again."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            mark_healthy = asyncio.get_running_loop().call_later(_STEADY_SECONDS, self._failing.discard, name)
            try:
                await self._app.run_worker_async(
                    queues=_WORKERS[name],
                    name=name,
                    concurrency=sum(SLOTS[work] - _SLOTS_FOR_OWN_JOBS[work] for work in _WORKERS[name]),
                    fetch_job_polling_interval=_POLL_SECONDS,
                    update_heartbeat_interval=_BEAT_SECONDS,
                    stalled_worker_timeout=_STALLED_SECONDS,
                    shutdown_graceful_timeout=0,  # the jobs that it began continue, and `close` ends them
                    delete_jobs=DeleteJobCondition.ALWAYS,
                    install_signal_handlers=False,
                )
            except ConnectorException as error:
                log.error("a worker failed, and begins again", worker=name, why=_first_line(error))
            except Exception as error:
                log.error("a worker failed, and begins again", worker=name, exc_info=error)
            finally:
                mark_healthy.cancel()
            # a worker may also end without an error, after it logged that its heartbeat or listener failed
            if self._closing:  # the worker failed while it was cancelled, so no CancelledError was raised
                return
            if name in self._failing:
                pause = min(2 * pause, _MAX_PAUSE_SECONDS)
            else:
                pause = _FIRST_PAUSE_SECONDS
            self._failing.add(name)
            await self._sleep(pause)

    async def _do_job(self, job: Job) -> tuple[Job, ...]:
        """Do a job, and wake the jobs that follow; each may run in another process.

        If another process has the lease on the job, that process is asked to do the job once more. Returns no
        jobs, so that the local dispatcher wakes none itself.
        """
        if self._handler is None:
            return ()
        try:
            follow_ups = await self._handler(job)
        except LeasedElsewhere as leased:
            self._wire.broadcast("wake", [leased.owner, job.work, job.key])
            return ()
        await self.wake(*follow_ups)
        return ()

    def _repeat_leased(self, message: list[str]) -> None:
        """Do a job that another process could not do, if this process has the lease on it.

        ``message``: the id of the process that has the lease, the kind of work and the key of the job. All
        processes get the message.
        """
        owner, work, key = message
        if owner == self._wire.process:
            self._local.begin_or_repeat(Job(Work(work), key))


@contextlib.contextmanager
def _log_outage(what: str) -> Iterator[None]:
    """Log an outage of the database instead of raising. The rows still ask for the work afterwards."""
    try:
        yield
    except (ConnectorException, SQLAlchemyError) as error:
        log.warning("the database could not be asked", what=what, why=_first_line(error))


def _first_line(error: Exception) -> str:
    return str(error.__cause__ or error).strip().partition("\n")[0]
