"""Jobs as rows of Procrastinate's: how they wait, begin, are fetched, and end.

What is known of Procrastinate 3.10 by reading it, and why there is a `JobRows`: a worker ends, and waits for
all its running jobs before it begins again, when a fetch or a heartbeat fails; a job whose end cannot be
written stays ``doing``; jobs of dead workers are named by `get_stalled_jobs`, but taken up by no one; what is
said while a worker looks is forgotten.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from procrastinate import jobs, manager
from procrastinate.exceptions import ConnectorException, UniqueViolation

from bot.domain.jobs import Job, Queue, Work
from bot.logs import logger
from bot.store import turns
from bot.store.wire import Wire
from bot.upkeep.batches import Batches
from bot.upkeep.dispatcher import ROOMS

log = logger(__name__)

_APART: Mapping[Queue, str] = {turns.WAKE_UPS: "wake-up", turns.AFTER_A_CRASH: "turn after a crash"}
SIZES: Mapping[str, int] = {
    **{str(work): size for work, size in ROOMS.items()},
    **{name: queue.most for queue, name in _APART.items()},
}
"""How much of each queue one process does at a time."""
BEAT_SECONDS = 2.5
STALLED_SECONDS = 7.5  # without a beat; then its jobs are others'. Sooner than its process is gone
PAUSE = 1.0  # seconds until what the database refused is tried again

CHANNEL = "procrastinate_queue_v1#"
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


@dataclass(frozen=True)
class Asked:
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


class JobRows(manager.JobManager):
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
        self._ends = Batches(self._end_all)
        self.inside: Counter[str] = Counter()  # by queue; places given, to jobs or to who looks for one
        self._turned_away: set[str] = set()  # queues whose worker found no place
        self._said: Counter[str] = Counter()  # how often there may have been a job, by queue
        self.failing: set[str] = set()  # queues whose worker failed, and fetched nothing since
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
            self._wire.event(CHANNEL + queue).set()

    async def put(self, asked: Sequence[Asked], *, found: bool = False, seconds: float | None = None) -> None:
        """Let them wait, at first for so many seconds. What a look at the rows ``found`` may run already.

        Raises ConnectorException.
        """
        rows = [each.row(seconds) for each in asked]
        await self.connector.execute_query_async(_PUT, asked=rows, found=found)

    async def call(self, who: str) -> None:
        """Of those that wait for a person's place, let the next one wait no longer. Raises as `put`."""
        await self.connector.execute_query_async(_CALL, who=who)

    async def begin(self, asked: Sequence[Asked]) -> dict[str, jobs.Job]:
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
                await asyncio.sleep(PAUSE)
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
        job = jobs.Job.from_row(row) if row["id"] is not None else None
        self.failing.discard(queue)
        if job is None:
            return None
        if not row["more"]:
            self._none_since[queue] = said
        self._known.add(row["id"])
        return job

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
                await asyncio.sleep(PAUSE)
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
        if now - self._beaten_at < BEAT_SECONDS / 2:
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
            event = self._wire.event(CHANNEL + queue)
            while True:
                await event.wait()
                event.clear()
                self._said[queue] += 1
                await on_notification(channel=CHANNEL + queue, notification=_LOOK)
