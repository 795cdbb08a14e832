"""The dispatcher of several processes: Procrastinate, in tables of its own in the same PostgreSQL.

Its jobs are wake-ups, as everywhere; the rows are the truth. Each kind of work has a queue and its own
worker, so none waits for a place that another kind holds, and a person's turns wait in another queue than
wake-ups. A job's lock lets one process at a time do it, and its queueing lock lets it wait once.

What a process wakes and has room for, it begins itself: the job's row is ``doing`` from the first, so its
lock and its worker's heartbeat hold as for any other, but it never waits, no one is told of it, and no one
looks for it. What has no room, or whose lock is taken, waits for whichever process is the first to have room.
"""

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import procrastinate
import psycopg
from procrastinate import jobs
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import DeleteJobCondition
from procrastinate.schema import SchemaManager
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from bot.domain.jobs import HERE, Job, Queue, Work
from bot.logs import logger
from bot.store import migrations
from bot.store.wire import Wire, conninfo
from bot.upkeep.batches import Batches
from bot.upkeep.dispatcher import Handler, QueueOf
from bot.upkeep.job_rows import BEAT_SECONDS, CHANNEL, PAUSE, SIZES, STALLED_SECONDS, Asked, JobRows

log = logger(__name__)

_NEAR = 4
"""Where there are other processes, one begins what it wakes in this fraction of its room, and leaves the rest
to whichever has the most time: one alone may receive everything, as from Telegram."""
_IDLE = 1.0  # seconds after which a connection may be gone
_POLL_SECONDS = 5.0  # between looks, should a notification be lost
_PUT_BACK_SECONDS = 15.0  # at most, where a person has enough at work; the end of one calls the next
_CONNECTIONS = 4
_PATIENCE = 5.0  # seconds to wait for one of them
_SLOWEST = 60.0  # seconds between two tries of a worker that fails


def prepare(engine: Engine) -> None:
    """Make Procrastinate's tables where they are missing, however many processes start at the same time.

    Raises DBAPIError.
    """
    with migrations.alone(engine), engine.begin() as connection:
        if connection.execute(text("SELECT to_regclass('procrastinate_jobs')")).scalar() is None:
            connection.exec_driver_sql(SchemaManager.get_schema(), execution_options={"no_parameters": True})


class DistributedDispatcher:
    """Implements `Dispatcher` for all processes that work on one database.

    What is woken before `open` is dropped; the rows still ask for it.
    """

    def __init__(
        self,
        url: str,
        wire: Wire,
        *,
        works: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``works`` False: this process does none of it, but tells the others what it wakes.

        ``sleep`` takes seconds, between two tries of a worker.
        """
        self._wire = wire
        self._sleep = sleep
        self._works = works
        connector = procrastinate.PsycopgConnector(
            # to lose a wake-up costs seconds; to wait for the disk for each would cost more
            conninfo=conninfo(url, hasty=True),
            pool_factory=_pool,
            kwargs={
                "autocommit": True
            },  # each statement is a transaction anyway: BEGIN, COMMIT are two trips
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_PATIENCE,
        )
        self._app = procrastinate.App(connector=connector)
        self._jobs = self._app.job_manager = JobRows(connector, wire)
        self._app.task(name="work")(self._take)
        self._handler: Handler | None = None
        self._queue_of: QueueOf | None = None
        self._tasks: dict[Job, asyncio.Task[tuple[Job, ...]]] = {}
        self._inside: Counter[str] = Counter()  # by the name that `queue_of` gives
        self._put_back: Counter[str] = Counter()
        self._workers: list[asyncio.Task[None]] = []
        self._starts = Batches(self._start_all)
        self._carried: set[asyncio.Task[None]] = set()  # what was begun here without waiting
        self._open = False
        for queue in SIZES:
            wire.event(CHANNEL + queue)

    async def open(self) -> None:
        """Connect; from now on what is woken is done by whichever process has room."""
        await self._app.open_async()
        self._open = True
        if self._works:
            await self._jobs.enlist()

    def start(self, handler: Handler, queue_of: QueueOf | None = None) -> None:
        """As `EmbeddedDispatcher.start`."""
        self._handler = handler
        self._queue_of = queue_of
        if self._works and not self._workers:
            self._workers = [asyncio.create_task(self._work(q), name=f"worker {q}") for q in SIZES]

    @property
    def tasks(self) -> Mapping[Job, asyncio.Task[tuple[Job, ...]]]:
        """What is at work in this process."""
        return self._tasks

    @property
    def fault(self) -> str | None:
        """What keeps this process from its work; None where nothing does."""
        failing = ", ".join(sorted(self._jobs.failing))
        return f"work can't be taken up, see the log: {failing}" if failing else None

    async def wake(self, *jobs: Job) -> None:
        here = [job for job in jobs if await self._is_here(job) and job not in self._tasks]
        for job in here:
            self._begin(job)
        if not self._open:
            return
        with self._told("wake-ups"):
            asked = [await self._asked(job) for job in dict.fromkeys(jobs) if job not in here]
            near = [each for each in asked if self._is_near(each) and self._jobs.enter(each.name)]
            rounds = {self._starts.add(each) for each in near}
            await self._put([each for each in asked if each not in near])
            for each in rounds:
                await asyncio.shield(each)

    async def find(self, *jobs: Job) -> None:
        """As above; first, what dead workers had is free again, and what was given to ours and never came."""
        with self._told("what dead workers had"):
            await self._jobs.end(await self._jobs.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS))
            await self._jobs.drop_unheard()
            await self._put([await self._asked(job) for job in dict.fromkeys(jobs)], found=True)

    async def stop_turn(self, conversation_id: str) -> None:
        self.interrupt(conversation_id)
        self._wire.say("stop", conversation_id)

    def interrupt(self, conversation_id: str) -> bool:
        task = self._tasks.get(Job(Work.TURN, conversation_id))
        return task is not None and task.cancel()

    async def idle(self) -> None:
        """Return when nothing runs here."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self, seconds: float) -> None:
        """Let running executions end for up to ``seconds``; others take up the rest."""
        self._jobs.paused = True
        for job, task in self._tasks.items():
            if job.work is Work.TURN:
                task.cancel()
        running = [task for job, task in self._tasks.items() if job.work is Work.EXECUTE]
        if running:
            await asyncio.wait(running, timeout=seconds)
        for task in self._tasks.values():
            task.cancel()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, *self._tasks.values(), return_exceptions=True)
        await self._starts.idle()
        while self._carried:
            await asyncio.wait(self._carried)
        with self._told("its end"):
            await self._jobs.resign()
        self._open = False
        await self._app.close_async()

    async def _is_here(self, job: Job) -> bool:
        """Whether only this process can do it now, to show what its own running turn asks, or should."""
        if job.work is Work.DELIVER:
            return Job(Work.TURN, job.key) in self._tasks
        cheap = job.work is Work.REDRAW and await self._queue(job) is HERE
        return cheap and self._open and not self._stops()

    def _is_near(self, asked: Asked) -> bool:
        """Whether this process should do it, rather than the first one that has room."""
        at_work = self._open and self._workers and not self._stops() and asked.job not in self._tasks
        size = max(SIZES[asked.name] // _NEAR, 1) if self._wire.others else SIZES[asked.name]
        room = self._jobs.inside[asked.name] < size
        return bool(at_work) and room and self._inside[asked.queue.name] < asked.queue.most

    async def _start_all(self, all_asked: Sequence[Asked]) -> None:
        """Begin here what has its place already. What runs elsewhere, or waits, waits."""
        begun: dict[str, jobs.Job] = {}
        elsewhere: list[Asked] = []
        with self._told("what begins"):
            begun = await self._jobs.begin(all_asked)
            elsewhere = [each for each in all_asked if each.once not in begun]
        for asked in all_asked:
            if job := begun.pop(asked.once, None):
                task = asyncio.create_task(self._carry(job))
                self._carried.add(task)
                task.add_done_callback(self._carried.discard)
            else:  # or it was asked for twice, and did not look at the rows yet
                self._jobs.leave(asked.name)
        with self._told("wake-ups"):
            await self._put(elsewhere)

    async def _carry(self, job: jobs.Job) -> None:
        """As Procrastinate's worker does with what it fetched."""
        try:
            kwargs: Any = job.task_kwargs
            await self._take(**kwargs)
        finally:
            await self._jobs.finish_job(job)

    async def _put(
        self, asked: Sequence[Asked], *, found: bool = False, seconds: float | None = None
    ) -> None:
        if self._open and asked:
            await self._jobs.put(asked, found=found, seconds=seconds)

    async def _put_again(self, job: Job, seconds: float | None = None) -> None:
        with self._told("wake-ups"):
            await self._put([await self._asked(job)], seconds=seconds)

    async def _asked(self, job: Job) -> Asked:
        return Asked(job, await self._queue(job))

    async def _queue(self, job: Job) -> Queue:
        return await self._queue_of(job) if self._queue_of else Queue("", SIZES[job.work])

    async def _work(self, queue: str) -> None:
        """Procrastinate's worker of one queue, until the end; one that failed begins again."""
        pause = PAUSE
        while not self._jobs.paused:  # a fault on the way out takes the place of what cancelled it
            try:
                with self._told(f"the worker of {queue}"):
                    await self._app.run_worker_async(
                        queues=[queue],
                        name=queue,
                        concurrency=SIZES[queue],
                        fetch_job_polling_interval=_POLL_SECONDS,
                        update_heartbeat_interval=BEAT_SECONDS,
                        stalled_worker_timeout=STALLED_SECONDS,
                        delete_jobs=DeleteJobCondition.ALWAYS,
                        install_signal_handlers=False,
                    )
            except Exception as error:  # it met rows that it does not understand, or has a fault of its own
                log.error("a worker failed, and begins again", queue=queue, exc_info=error)
                pause = min(2 * pause, _SLOWEST) if queue in self._jobs.failing else PAUSE
                self._jobs.failing.add(queue)
                await self._sleep(pause)
            else:
                await self._sleep(PAUSE)

    async def _take(self, work: str, key: str, who: str, most: int) -> None:
        """One job of Procrastinate's. Its end is written in any case: the rows say what is left."""
        job = Job(Work(work), key)
        if job in self._tasks:
            await asyncio.wait({self._tasks[job]})
        if self._stops():
            await self._put_again(job)
            return
        if who and self._inside[who] >= most:
            self._put_back[who] += 1
            await self._put_again(job, _PUT_BACK_SECONDS)
            return
        self._inside[who] += 1
        task = self._begin(job)
        try:
            await asyncio.wait({task})
        finally:
            self._inside -= Counter([who])
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if task.cancelled() and self._stops():
            await self._put_again(job)  # for another process
        if self._put_back[who]:
            self._put_back -= Counter([who])
            with self._told("wake-ups"):
                await self._jobs.call(who)

    def _stops(self) -> bool:
        return self._jobs.paused

    def _begin(self, job: Job) -> asyncio.Task[tuple[Job, ...]]:
        task = asyncio.create_task(self._do(job), name=":".join(job))
        self._tasks[job] = task
        task.add_done_callback(lambda _: self._tasks.pop(job, None))
        return task

    async def _do(self, job: Job) -> tuple[Job, ...]:
        if self._handler is None:
            return ()
        try:
            made = await self._handler(job)
        except Exception as error:  # the rows still say what to do; the next tick finds it
            log.error("job failed", work=job.work, key=job.key, exc_info=error)
            return ()
        await self.wake(*made)
        return made

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Without the database nothing is woken; the rows ask for it when it is back."""
        try:
            yield
        except (ConnectorException, SQLAlchemyError) as error:
            log.warning("the database could not be asked", what=what, why=str(error.__cause__ or error))


class _Connection(psycopg.AsyncConnection[Any]):
    """Knows when it was last asked whether it is there."""

    asked_at = -math.inf  # of time.monotonic()


async def _ask(connection: Any) -> None:
    """Procrastinate would ask before each statement; a connection in use tells by itself."""
    if time.monotonic() - connection.asked_at > _IDLE:
        await AsyncConnectionPool.check_connection(connection)
    connection.asked_at = time.monotonic()


def _pool(**options: Any) -> AsyncConnectionPool[Any]:
    return AsyncConnectionPool(**options | {"check": _ask, "connection_class": _Connection})
