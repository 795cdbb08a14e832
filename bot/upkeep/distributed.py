"""The dispatcher of several processes: Procrastinate, in tables of its own in the same PostgreSQL.

Its jobs are wake-ups, as everywhere; the rows are the truth. Each kind of work has a queue and its own
worker, so none waits for a place that another kind holds, and a person's turns wait in another queue than
wake-ups. A job's lock lets one process at a time do it, and its queueing lock lets it wait once.

What is known of Procrastinate 3.10 by reading it, and why there is a `_Jobs`: a worker ends, and waits for
all its running jobs before it begins again, when a fetch or a heartbeat fails; a job whose end cannot be
written stays ``doing``; jobs of dead workers are named by `get_stalled_jobs`, but taken up by no one.
"""

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import procrastinate
import psycopg
from procrastinate import manager
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import DeleteJobCondition, Status
from procrastinate.schema import SchemaManager
from psycopg.errors import RaiseException
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from bot.domain.jobs import HERE, Job, Queue, Work
from bot.logs import logger
from bot.store import migrations, turns
from bot.store.engine import IDLE
from bot.store.wire import Wire, conninfo
from bot.upkeep.dispatcher import ROOMS, Handler, QueueOf

log = logger(__name__)

_APART: Mapping[Queue, str] = {turns.WAKE_UPS: "wake-up", turns.AFTER_A_CRASH: "turn after a crash"}
SIZES: Mapping[str, int] = {
    **{str(work): size for work, size in ROOMS.items()},
    **{name: queue.most for queue, name in _APART.items()},
}
"""How much of each queue one process does at a time."""
_BEAT_SECONDS = 2.5
_STALLED_SECONDS = 7.5  # without a beat; then its jobs are others'. Sooner than its process is gone
_POLL_SECONDS = 5.0  # between looks, should a notification be lost
_PAUSE = 1.0  # seconds until a worker that failed begins again
_PUT_BACK_SECONDS = 15.0  # at most, where a person has enough at work; the end of one calls the next
_CONNECTIONS = 4
_PATIENCE = 5.0  # seconds to wait for one of them

_CHANNEL = "procrastinate_queue_v1#"
_LOOK: Any = {"type": "job_inserted", "job_id": 0}  # what Procrastinate says when there may be a job

_PUT = """
WITH asked AS (
    SELECT j->>'queue' AS queue, j->>'lock' AS lock, j->>'once' AS once, j->'args' AS args,
           (j->>'seconds')::float AS seconds
    FROM unnest(%(asked)s::jsonb[]) AS j
), put AS (
    INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
    SELECT queue, 'work', 0, lock, once, args, now() + make_interval(secs => seconds) FROM asked
    WHERE NOT %(found)s OR NOT EXISTS (
        SELECT FROM procrastinate_jobs AS running
        WHERE running.lock = asked.lock AND running.status = 'doing'
    )
    ON CONFLICT (queueing_lock) WHERE status = 'todo'
    DO UPDATE SET queue_name = excluded.queue_name, args = excluded.args, scheduled_at = NULL
    WHERE excluded.queue_name = 'turn' AND procrastinate_jobs.queue_name <> 'turn'
    RETURNING queue_name, xmax::text <> '0' AS moved
)
SELECT pg_notify('procrastinate_queue_v1#' || queue_name, '{"type": "job_inserted", "job_id": 0}')
FROM put WHERE moved
"""
"""Let jobs wait, each once. One that waits with the wake-ups moves when a person begins to wait for it."""
_END = """
WITH ended AS (SELECT procrastinate_finish_job_v1(%(job_id)s, %(status)s, true))
SELECT pg_notify('procrastinate_queue_v1#' || queue_name, '{"type": "job_inserted", "job_id": 0}')
FROM ended, procrastinate_jobs
WHERE queueing_lock = ANY (%(waiting)s) AND status = 'todo'
"""
"""End a job, and tell the workers of those that waited for its lock: Procrastinate itself does not."""
_CALL = """
WITH called AS (
    UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE id = (
        SELECT id FROM procrastinate_jobs
        WHERE status = 'todo' AND scheduled_at IS NOT NULL AND args->>'who' = %(who)s
        ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING queue_name
)
SELECT pg_notify('procrastinate_queue_v1#' || queue_name, '{"type": "job_inserted", "job_id": 0}') FROM called
"""
"""Call the next one that was put back for a person."""
_UNHEARD = """
SELECT id FROM procrastinate_jobs WHERE status = 'doing'
AND worker_id = ANY (%(workers)s::bigint[]) AND NOT id = ANY (%(known)s::bigint[])
"""
_BEAT = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE VALUES (%(worker_id)s, now())
ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""
"""A worker that others took for dead, and forgot, is there again."""


def prepare(engine: Engine) -> None:
    """Make Procrastinate's tables where they are missing, however many processes start at the same time."""
    with migrations.alone(engine), engine.begin() as connection:
        if connection.execute(text("SELECT to_regclass('procrastinate_jobs')")).scalar() is None:
            driver: Any = connection.connection.driver_connection
            driver.execute(SchemaManager.get_schema())


class DistributedDispatcher:
    """Implements `Dispatcher` for all processes that work on one database.

    What is woken before `open` is dropped; the rows still ask for it.
    """

    def __init__(self, url: str, wire: Wire, *, works: bool = True) -> None:
        """``works`` False: this process does none of it, but tells the others what it wakes."""
        self._wire = wire
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
        self._jobs = self._app.job_manager = _Jobs(connector, wire)
        self._app.task(name="work")(self._take)
        self._handler: Handler | None = None
        self._queue_of: QueueOf | None = None
        self._tasks: dict[Job, asyncio.Task[tuple[Job, ...]]] = {}
        self._inside: Counter[str] = Counter()  # by the name that `queue_of` gives
        self._put_back: Counter[str] = Counter()
        self._workers: list[asyncio.Task[None]] = []
        self._open = False
        for queue in SIZES:
            wire.event(_CHANNEL + queue)

    async def open(self) -> None:
        """Connect; from now on what is woken is done by whichever process has room."""
        await self._app.open_async()
        self._open = True

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

    async def wake(self, *jobs: Job) -> None:
        here = [job for job in jobs if await self._is_here(job) and job not in self._tasks]
        for job in here:
            self._begin(job)
        await self._put([job for job in jobs if job not in here])

    async def find(self, *jobs: Job) -> None:
        """As above; first, what dead workers had is free again, and what was given to ours and never came."""
        with self._told("what dead workers had"):
            stalled = await self._jobs.get_stalled_jobs(seconds_since_heartbeat=_STALLED_SECONDS)
            for each in stalled:
                await self._jobs.finish_job(each, Status.ABORTED, delete_job=True)
            await self._jobs.drop_unheard()
        await self._put(jobs, found=True)

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
        self._open = False
        await self._app.close_async()

    async def _is_here(self, job: Job) -> bool:
        """Whether only this process can do it now, to show what its own running turn asks, or should."""
        if job.work is Work.DELIVER:
            return Job(Work.TURN, job.key) in self._tasks
        cheap = job.work is Work.REDRAW and await self._queue(job) is HERE
        return cheap and self._open and not self._stops()

    async def _put(self, jobs: Sequence[Job], *, found: bool = False, seconds: float | None = None) -> None:
        if not (self._open and jobs):
            return
        with self._told("wake-ups"):
            asked = [await self._asked(job, seconds) for job in dict.fromkeys(jobs)]
            await self._app.connector.execute_query_async(_PUT, asked=asked, found=found)

    async def _queue(self, job: Job) -> Queue:
        return await self._queue_of(job) if self._queue_of else Queue("", SIZES[job.work])

    async def _asked(self, job: Job, seconds: float | None) -> dict[str, Any]:
        queue = await self._queue(job)
        args = {"work": str(job.work), "key": job.key, "who": queue.name, "most": queue.most}
        return {
            "queue": _APART.get(queue, str(job.work)),
            "lock": _lock(job),
            "once": f"{job.work}:{job.key}",
            "args": args,
            "seconds": seconds,
        }

    async def _work(self, queue: str) -> None:
        while not self._jobs.paused:  # a fault on the way out takes the place of what cancelled it
            with self._told(f"the worker of {queue}"):
                await self._app.run_worker_async(
                    queues=[queue],
                    name=queue,
                    concurrency=SIZES[queue],
                    fetch_job_polling_interval=_POLL_SECONDS,
                    update_heartbeat_interval=_BEAT_SECONDS,
                    stalled_worker_timeout=_STALLED_SECONDS,
                    delete_jobs=DeleteJobCondition.ALWAYS,
                    install_signal_handlers=False,
                )
            await asyncio.sleep(_PAUSE)

    async def _take(self, work: str, key: str, who: str, most: int) -> None:
        """One job of Procrastinate's. Its end is written in any case: the rows say what is left."""
        job = Job(Work(work), key)
        if job in self._tasks:
            await asyncio.wait({self._tasks[job]})
        if self._stops():
            await self._put([job])
            return
        if who and self._inside[who] >= most:
            self._put_back[who] += 1
            await self._put([job], seconds=_PUT_BACK_SECONDS)
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
            await self._put([job])  # for another process
        if self._put_back[who]:
            self._put_back -= Counter([who])
            with self._told("wake-ups"):
                await self._app.connector.execute_query_async(_CALL, who=who)

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


def _lock(job: Job) -> str:
    """What one process at a time may do: two that post in one conversation would post things twice."""
    return f"turn:{job.key}" if job.work is Work.DELIVER else f"{job.work}:{job.key}"


class _Connection(psycopg.AsyncConnection[Any]):
    """Knows when it was last asked whether it is there."""

    asked_at = -math.inf  # of time.monotonic()


async def _ask(connection: Any) -> None:
    """Procrastinate would ask before each statement; a connection in use tells by itself."""
    if time.monotonic() - connection.asked_at > IDLE:
        await AsyncConnectionPool.check_connection(connection)
    connection.asked_at = time.monotonic()


def _pool(**options: Any) -> AsyncConnectionPool[Any]:
    return AsyncConnectionPool(**options | {"check": _ask, "connection_class": _Connection})


class _Jobs(manager.JobManager):
    """Procrastinate's own, but no fault of the database ends a worker or leaves a job ``doing``."""

    def __init__(self, connector: Any, wire: Wire) -> None:
        super().__init__(connector)
        self._wire = wire
        self._workers: list[int] = []
        self._known: set[int] = set()  # ids of what was fetched and has not ended
        self._suspects: set[int] = set()
        self.paused = False

    async def register_worker(self) -> int:
        ident = await super().register_worker()
        self._workers.append(ident)
        return ident

    async def drop_unheard(self) -> None:
        """End what the database gave to a worker of this process whose connection was lost in that moment.

        Seen twice in a row, so that it is not what is just on its way.
        """
        asked = {"workers": self._workers, "known": list(self._known)}
        found = {row["id"] for row in await self.connector.execute_query_all_async(_UNHEARD, **asked)}
        lost, self._suspects = found & self._suspects, found - self._suspects
        for ident in lost:
            log.warning("a job was given to this process and did not arrive", job=ident)
            await self.finish_job_by_id_async(ident, Status.ABORTED, delete_job=True)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Any:
        while not self.paused:
            try:
                job = await super().fetch_job(queues, worker_id)
            except UniqueViolation:
                continue  # another worker took a job with the same lock at the same moment
            except ConnectorException as error:
                log.warning("no job could be fetched", why=str(error.__cause__ or error))
                await asyncio.sleep(_PAUSE)
                return None
            if job is not None and job.id is not None:
                self._known.add(job.id)
            return job
        return None

    async def finish_job(self, job: Any, status: Status, delete_job: bool) -> None:  # noqa: ARG002, FBT001
        try:
            await self._finish(job, status)
        finally:
            self._known.discard(job.id)

    async def _finish(self, job: Any, status: Status) -> None:
        of_same_lock = [f"{work}{job.lock.removeprefix('turn')}" for work in (Work.TURN, Work.DELIVER)]
        waiting = of_same_lock if job.lock.startswith("turn:") else [job.lock]
        while True:
            try:
                await self.connector.execute_query_async(
                    _END, job_id=job.id, status=status.value, waiting=waiting
                )
            except ConnectorException as error:
                if isinstance(error.__cause__, RaiseException):
                    return  # this worker was taken for dead, and others have its job
                log.warning("the end of a job is not written yet", why=str(error.__cause__ or error))
                await asyncio.sleep(_PAUSE)
            else:
                return

    async def update_heartbeat(self, worker_id: int) -> None:
        try:
            await self.connector.execute_query_async(_BEAT, worker_id=worker_id)
        except ConnectorException as error:
            log.warning("no heartbeat", why=str(error.__cause__ or error))

    async def listen_for_jobs(self, *, on_notification: Any, queues: Iterable[str] | None = None) -> None:
        """By the one connection that listens to everything else."""
        for queue in queues or ():
            event = self._wire.event(_CHANNEL + queue)
            while True:
                await event.wait()
                event.clear()
                await on_notification(channel=_CHANNEL + queue, notification=_LOOK)
