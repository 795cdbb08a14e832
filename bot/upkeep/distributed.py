"""The dispatcher of several processes: Procrastinate, in tables of its own in the same PostgreSQL.

Its jobs are wake-ups, as everywhere; the rows are the truth. Each kind of work has a queue and its own
worker, so none waits for a place that another kind holds, and a person's turns wait in another queue than
wake-ups. A job's lock lets one process at a time do it, and its queueing lock lets it wait once.

What a process wakes and has room for, it begins itself: the job's row is ``doing`` from the first, so its
lock and its worker's heartbeat hold as for any other, but it never waits, no one is told of it, and no one
looks for it. What has no room, or whose lock is taken, waits for whichever process is the first to have room.

What is known of Procrastinate 3.10 by reading it, and why there is a `_Jobs`: a worker ends, and waits for
all its running jobs before it begins again, when a fetch or a heartbeat fails; a job whose end cannot be
written stays ``doing``; jobs of dead workers are named by `get_stalled_jobs`, but taken up by no one; what is
said while a worker looks is forgotten.
"""

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import procrastinate
import psycopg
from procrastinate import jobs, manager
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import DeleteJobCondition
from procrastinate.schema import SchemaManager
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
_NEAR = 4
"""Where there are other processes, one begins what it wakes in this fraction of its room, and leaves the rest
to whichever has the most time: one alone may receive everything, as from Telegram."""
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
    FROM unnest(%(asked)s::jsonb[]) AS j ORDER BY lock
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
_BEGIN = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, status, worker_id)
SELECT j->>'queue', 'work', 0, j->>'lock', j->>'once', j->'args', 'doing', %(worker_id)s
FROM unnest(%(asked)s::jsonb[]) AS j
WHERE NOT EXISTS (
    SELECT FROM procrastinate_jobs AS waiting
    WHERE waiting.queueing_lock = j->>'once' AND waiting.status = 'todo'
)
ORDER BY j->>'lock'
ON CONFLICT DO NOTHING
RETURNING *
"""
"""Have jobs under way whose lock is free and that do not wait already."""
_END = """
WITH ended AS (DELETE FROM procrastinate_jobs WHERE id = ANY (%(ended)s::bigint[]))
SELECT pg_notify('procrastinate_queue_v1#' || queue_name, '{"type": "job_inserted", "job_id": 0}')
FROM procrastinate_jobs WHERE queueing_lock = ANY (%(waiting)s) AND status = 'todo'
"""
"""End jobs, and tell the workers of those that waited for their locks: Procrastinate itself does not. What
is gone already was taken from a worker that looked dead, and others have it."""
_FETCH = """
SELECT found.*, EXISTS (
    SELECT FROM procrastinate_jobs AS other
    WHERE other.queue_name = %(queue)s AND other.status = 'todo' AND other.id <> found.id
    AND (other.scheduled_at IS NULL OR other.scheduled_at <= now())
) AS more
FROM procrastinate_fetch_job_v2(ARRAY[%(queue)s]::varchar[], %(worker_id)s) AS found
"""
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
SELECT id, lock FROM procrastinate_jobs WHERE status = 'doing'
AND worker_id = ANY (%(workers)s::bigint[]) AND NOT id = ANY (%(known)s::bigint[])
"""
_BEAT = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE
SELECT id, now() FROM unnest(%(workers)s::bigint[]) AS id ORDER BY id
ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""
"""Workers that others took for dead, and forgot, are there again."""

Given = TypeVar("Given")


def prepare(engine: Engine) -> None:
    """Make Procrastinate's tables where they are missing, however many processes start at the same time."""
    with migrations.alone(engine), engine.begin() as connection:
        if connection.execute(text("SELECT to_regclass('procrastinate_jobs')")).scalar() is None:
            driver: Any = connection.connection.driver_connection
            driver.execute(SchemaManager.get_schema())


@dataclass(frozen=True)
class _Asked:
    """A job, and where it would wait."""

    job: Job
    queue: Queue

    @property
    def name(self) -> str:
        """Of the queue, as Procrastinate knows it."""
        return _APART.get(self.queue, str(self.job.work))

    @property
    def once(self) -> str:
        """One job of this name waits at a time."""
        return f"{self.job.work}:{self.job.key}"

    @property
    def lock(self) -> str:
        """What one process at a time may do: two that post in one conversation would post things twice."""
        return f"turn:{self.job.key}" if self.job.work is Work.DELIVER else self.once

    def row(self, seconds: float | None = None) -> dict[str, Any]:
        args = {
            "work": str(self.job.work),
            "key": self.job.key,
            "who": self.queue.name,
            "most": self.queue.most,
        }
        return {"queue": self.name, "lock": self.lock, "once": self.once, "args": args, "seconds": seconds}


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
        self._starts = _Batches(self._start_all)
        self._carried: set[asyncio.Task[None]] = set()  # what was begun here without waiting
        self._open = False
        for queue in SIZES:
            wire.event(_CHANNEL + queue)

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
            await self._jobs.end(await self._jobs.get_stalled_jobs(seconds_since_heartbeat=_STALLED_SECONDS))
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

    def _is_near(self, asked: _Asked) -> bool:
        """Whether this process should do it, rather than the first one that has room."""
        at_work = self._open and self._workers and not self._stops() and asked.job not in self._tasks
        size = max(SIZES[asked.name] // _NEAR, 1) if self._wire.others else SIZES[asked.name]
        room = self._jobs.inside[asked.name] < size
        return bool(at_work) and room and self._inside[asked.queue.name] < asked.queue.most

    async def _start_all(self, all_asked: Sequence[_Asked]) -> None:
        """Begin here what has its place already. What runs elsewhere, or waits, waits."""
        begun: dict[str, jobs.Job] = {}
        elsewhere: list[_Asked] = []
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
        self, asked: Sequence[_Asked], *, found: bool = False, seconds: float | None = None
    ) -> None:
        if self._open and asked:
            rows = [each.row(seconds) for each in asked]
            await self._app.connector.execute_query_async(_PUT, asked=rows, found=found)

    async def _put_again(self, job: Job, seconds: float | None = None) -> None:
        with self._told("wake-ups"):
            await self._put([await self._asked(job)], seconds=seconds)

    async def _asked(self, job: Job) -> _Asked:
        return _Asked(job, await self._queue(job))

    async def _queue(self, job: Job) -> Queue:
        return await self._queue_of(job) if self._queue_of else Queue("", SIZES[job.work])

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


class _Batches(Generic[Given]):
    """What is added while a statement is on its way goes with the next one."""

    def __init__(self, do: Callable[[Sequence[Given]], Awaitable[None]]) -> None:
        self._do = do
        self._waiting: list[Given] = []
        self._next: asyncio.Task[None] | None = None
        self._last: asyncio.Task[None] | None = None

    def add(self, given: Given) -> asyncio.Task[None]:
        """The task that does it; who waits for it shields it, since it does the same for others."""
        self._waiting.append(given)
        if self._next is None:
            self._next = self._last = asyncio.create_task(self._run(self._last))
        return self._next

    async def idle(self) -> None:
        """Return when nothing is on its way."""
        while self._last and not self._last.done():
            await asyncio.wait({self._last})

    async def _run(self, before: asyncio.Task[None] | None) -> None:
        if before:
            await asyncio.wait({before})
        given, self._waiting, self._next = self._waiting, [], None
        await self._do(given)


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
    """Procrastinate's own, but no fault of the database ends a worker or leaves a job ``doing``.

    Knows what this process has under way, however it came by it.
    """

    def __init__(self, connector: Any, wire: Wire) -> None:
        super().__init__(connector)
        self._wire = wire
        self._own: int | None = None  # the worker of what is begun without waiting
        self._workers: list[int] = []
        self._beaten_at = -math.inf  # of time.monotonic()
        self._known: set[int] = set()  # ids of what was begun or fetched, and has not ended
        self._suspects: set[int] = set()
        self._ends = _Batches(self._end_all)
        self.inside: Counter[str] = Counter()  # by queue; places given, to jobs or to who looks for one
        self._turned_away: set[str] = set()  # queues whose worker found no place
        self._said: Counter[str] = Counter()  # how often there may have been a job, by queue
        self._none_since: dict[str, int] = {}  # that count when there was no other job
        self.paused = False

    async def enlist(self) -> None:
        """From now on this process may begin jobs."""
        self._own = await self.register_worker()

    async def resign(self) -> None:
        """What it began and could not end is free now."""
        own, self._own = self._own, None
        if own is not None:
            await self.unregister_worker(own)

    async def register_worker(self) -> int:
        ident = await super().register_worker()
        self._workers.append(ident)
        return ident

    async def unregister_worker(self, worker_id: int) -> None:
        self._workers.remove(worker_id)
        await super().unregister_worker(worker_id)

    def enter(self, queue: str) -> bool:
        """Take a place of this process's; False where all are taken."""
        if self.inside[queue] >= SIZES[queue]:
            return False
        self.inside[queue] += 1
        return True

    def leave(self, queue: str) -> None:
        self.inside[queue] -= 1
        if queue in self._turned_away:
            self._turned_away.discard(queue)
            self._wire.event(_CHANNEL + queue).set()

    async def begin(self, asked: Sequence[_Asked]) -> dict[str, jobs.Job]:
        """Those that neither run nor wait, by their names. Raises ConnectorException."""
        rows = {each.once: each.row() for each in asked}
        begun = await self.connector.execute_query_all_async(
            _BEGIN, asked=list(rows.values()), worker_id=self._own
        )
        self._known.update(row["id"] for row in begun)
        return {row["queueing_lock"]: jobs.Job.from_row(row) for row in begun}

    async def drop_unheard(self) -> None:
        """End what the database gave to a worker of this process whose connection was lost in that moment.

        Seen twice in a row, so that it is not what is just on its way.
        """
        asked = {"workers": self._workers, "known": list(self._known)}
        rows = await self.connector.execute_query_all_async(_UNHEARD, **asked)
        found = {row["id"]: row["lock"] for row in rows}
        lost = self._suspects & found.keys()
        self._suspects = found.keys() - lost
        if lost:
            log.warning("jobs were given to this process and did not arrive", jobs=sorted(lost))
            await self._end({ident: found[ident] for ident in lost})

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> jobs.Job | None:
        [queue] = queues or ()
        while not self.paused:
            said = self._said[queue]
            if self._none_since.pop(queue, None) == said:
                return None
            if not self.enter(queue):
                self._turned_away.add(queue)
                return None
            job = None
            try:
                job = await self._fetch(queue, worker_id)
            except UniqueViolation:
                continue  # another worker took a job with the same lock at the same moment
            except ConnectorException as error:
                log.warning("no job could be fetched", why=str(error.__cause__ or error))
                await asyncio.sleep(_PAUSE)
                return None
            finally:
                if job is None:
                    self.leave(queue)
            if job is not None or self._said[queue] == said:
                return job
        return None

    async def _fetch(self, queue: str, worker_id: int) -> jobs.Job | None:
        said = self._said[queue]
        row = await self.connector.execute_query_one_async(_FETCH, queue=queue, worker_id=worker_id)
        if row["id"] is None:
            return None
        if not row["more"]:
            self._none_since[queue] = said
        self._known.add(row["id"])
        return jobs.Job.from_row(row)

    async def finish_job(self, job: jobs.Job, *_: Any, **__: Any) -> None:
        """However it ended: the rows say what is left."""
        try:
            await asyncio.shield(self._ends.add(job))
        finally:
            self._known.discard(job.id or 0)
            self.leave(job.queue)

    async def _end_all(self, ended: Sequence[jobs.Job]) -> None:
        while True:
            try:
                await self.end(ended)
            except ConnectorException as error:
                log.warning("the end of a job is not written yet", why=str(error.__cause__ or error))
                if self.paused:
                    return  # to others it is a dead worker's
                await asyncio.sleep(_PAUSE)
            else:
                return

    async def end(self, ended: Iterable[jobs.Job]) -> None:
        """Raises ConnectorException."""
        await self._end({each.id or 0: each.lock or "" for each in ended})

    async def _end(self, locks: Mapping[int, str]) -> None:
        if not locks:
            return
        waiting = set(locks.values())
        for lock in locks.values():
            work, _, key = lock.partition(":")
            if work == Work.TURN:
                waiting.add(f"{Work.DELIVER}:{key}")
        await self.connector.execute_query_async(_END, ended=list(locks), waiting=sorted(waiting))

    async def update_heartbeat(self, worker_id: int) -> None:  # noqa: ARG002 - Procrastinate's
        """Of all workers of this process, whichever of them comes first."""
        now = time.monotonic()
        if now - self._beaten_at < _BEAT_SECONDS / 2:
            return
        before, self._beaten_at = self._beaten_at, now
        try:
            await self.connector.execute_query_async(_BEAT, workers=self._workers)
        except ConnectorException as error:
            self._beaten_at = before
            log.warning("no heartbeat", why=str(error.__cause__ or error))

    async def listen_for_jobs(self, *, on_notification: Any, queues: Iterable[str] | None = None) -> None:
        """By the one connection that listens to everything else."""
        for queue in queues or ():
            event = self._wire.event(_CHANNEL + queue)
            while True:
                await event.wait()
                event.clear()
                self._said[queue] += 1
                await on_notification(channel=_CHANNEL + queue, notification=_LOOK)
