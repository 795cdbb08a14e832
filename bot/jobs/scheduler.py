"""The scheduler: in every process, APScheduler starts each sweep every few seconds. Each start is a *tick*.

A *sweep* looks in the rows for work that is due, and does it. A tick decides nothing: due times are in the
rows, which every sweep changes only by conditional updates. So several processes may tick at the same time,
and the next tick makes up for a missed one. Ticks keep their pace when the system's clock is set, back or
ahead: each sweep does the work that is due by the new time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from bot.domain.chat import Clock
from bot.jobs.recovery import Recovery
from bot.jobs.reminders import Reminders
from bot.jobs.webhooks import Webhooks
from bot.telemetry.logs import logger
from bot.telemetry.outages import describe_outage

log = logger(__name__)

EXPIRE_SECONDS = 2
STOP_SECONDS = 1
RETRY_SECONDS = 1
RECOVER_SECONDS = 5
REMIND_SECONDS = 10
SEND_SECONDS = 2
PURGE_SECONDS = 3600
WEBHOOK_SECONDS = 2
_JUMP = timedelta(seconds=5)  # a smaller difference within a second is the ordinary correction of a clock
_ONE_AT_A_TIME = {"max_instances": 1, "coalesce": True, "misfire_grace_time": None}
"""The options of each sweep in APScheduler: one run at a time, and a single late run for all missed ones."""


class Sweep(NamedTuple):
    """A function that is called with the time, at a fixed pace; never twice at a time in one process."""

    name: str
    seconds: float
    run: Callable[[datetime], Awaitable[object]]


class PauseTrigger(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """A trigger that is due a fixed time from now, whenever it was due before.

    The library's own interval and cron triggers go by the wall clock. If the clock is set ahead by a month,
    they compute every run that was missed, and block the event loop.
    """

    def __init__(self, seconds: float) -> None:
        self._pause = timedelta(seconds=seconds)

    def get_next_fire_time(self, _: datetime | None, now: datetime) -> datetime:
        """Return the next time, as the library asks for it."""
        return now + self._pause


class Scheduler:
    """Starts each sweep every few seconds, never twice at a time."""

    def __init__(
        self,
        recovery: Recovery,
        reminders: Reminders,
        webhooks: Webhooks,
        clock: Clock,
        sweeps: Sequence[Sweep] = (),
    ) -> None:
        """``sweeps`` are the sweeps of features."""
        self.sweeps = (
            *sweeps,  # first, so that their notices are posted with the first reminders
            Sweep("expire_due", EXPIRE_SECONDS, recovery.expire_due),
            Sweep("stop", STOP_SECONDS, recovery.stop_requested_runs),
            Sweep("retry", RETRY_SECONDS, recovery.retry_refused_posts),
            Sweep("recover", RECOVER_SECONDS, recovery.recover),
            Sweep("remind", REMIND_SECONDS, reminders.remind),
            Sweep("send", SEND_SECONDS, reminders.send),
            Sweep("purge", PURGE_SECONDS, recovery.purge),
            Sweep("sweep", WEBHOOK_SECONDS, webhooks.send_due),
        )
        self._clock = clock
        self._tasks: set[asyncio.Task[Any]] = set()  # tasks of sweeps under way
        self._clock_task: asyncio.Task[None] | None = None
        self._outage = ""  # the outage of the database that was logged, in words; empty without one
        self._ticker = AsyncIOScheduler(timezone="UTC", job_defaults=_ONE_AT_A_TIME)

    def start(self) -> None:
        """Begin to tick in the running loop."""
        for sweep in self.sweeps:
            self._ticker.add_job(self.run, PauseTrigger(sweep.seconds), args=[sweep], name=sweep.name)
        self._ticker.start()
        self._clock_task = asyncio.create_task(self._watch_clock(), name="clock")

    async def stop(self) -> None:
        """Stop the ticks, and interrupt the sweeps under way: the rows still ask for their work."""
        self._ticker.pause()
        under_way = [*self._tasks, *filter(None, [self._clock_task])]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)  # the library only cancels them
        self._ticker.shutdown(wait=False)

    async def _watch_clock(self) -> None:
        """Make every sweep due after the clock was set.

        If the clock was set back by an hour, a sweep would otherwise wait an hour longer.
        """
        last_time = self._clock()
        last_monotonic = time.monotonic()
        while True:
            await asyncio.sleep(1)
            now = self._clock()
            monotonic = time.monotonic()
            jumped = now - last_time - timedelta(seconds=monotonic - last_monotonic)
            last_time = now
            last_monotonic = monotonic
            if abs(jumped) >= _JUMP:
                log.warning("the system's clock was set", by_seconds=round(jumped.total_seconds()))
                for job in self._ticker.get_jobs():
                    job.modify(next_run_time=datetime.now(UTC))

    async def run(self, sweep: Sweep) -> None:
        """Do a sweep once. A fault is logged, an outage of the database once: the next tick tries again."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            await sweep.run(self._clock())
            if self._outage:
                self._outage = ""
                log.info("sweeps work again")
        except asyncio.CancelledError:
            # not raised, since the library would log it as an error; it only happens when Nod ends
            log.debug("sweep interrupted", sweep=sweep.name)
        except Exception as error:
            why = describe_outage(error)
            if not why:  # a fault of the sweep, which does not end an outage
                log.error("scheduled sweep failed", sweep=sweep.name, exc_info=error)
                return
            if not self._outage:  # the same outage is logged once
                log.error("sweeps wait for the database", why=why)
            self._outage = why
