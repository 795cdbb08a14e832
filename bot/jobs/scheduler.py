"""The clock: APScheduler ticks in every process and decides nothing.

Due times live in rows and every sweep is a conditional UPDATE, so any number of tickers is safe and a
missed tick is made up for by the next. Ticks keep their pace when the system's clock is set, back or
ahead: what is due is then what the new time says.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from bot.domain.chat import Clock
from bot.jobs.recovery import Recovery
from bot.jobs.reminders import Reminders
from bot.jobs.schedules import Schedules
from bot.jobs.webhooks import Webhooks
from bot.telemetry.logs import logger
from bot.telemetry.outages import in_a_line

log = logger(__name__)

Sweep = Callable[[datetime], Awaitable[object]]

EXPIRE_SECONDS = 2
STOP_SECONDS = 1
RETRY_SECONDS = 1
RECOVER_SECONDS = 5
REMIND_SECONDS = 10
SEND_SECONDS = 2
PURGE_SECONDS = 3600
WEBHOOK_SECONDS = 2
SCHEDULE_SECONDS = 2
PUT_RIGHT_SECONDS = 60
_JUMP = timedelta(
    seconds=5
)  # a clock that is only put right slowly never gains or loses that much in a second


class _Pause(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """Due so many seconds from now, whenever it was due before.

    The interval of the library walks every run that a clock set ahead has missed, and holds the loop.
    """

    def __init__(self, seconds: float) -> None:
        self._pause = timedelta(seconds=seconds)

    def get_next_fire_time(self, _: datetime | None, now: datetime) -> datetime:
        """As the library asks for it."""
        return now + self._pause


class Scheduler:
    """Starts each sweep every few seconds, never twice at a time."""

    def __init__(
        self,
        recovery: Recovery,
        reminders: Reminders,
        webhooks: Webhooks,
        schedules: Schedules,
        clock: Clock,
    ) -> None:
        self._recovery = recovery
        self._reminders = reminders
        self._webhooks = webhooks
        self._schedules = schedules
        self._clock = clock
        self._under_way: dict[str, asyncio.Task[None]] = {}  # by the sweep's name
        self._watch: asyncio.Task[None] | None = None
        self._outage = ""
        self._ticker = AsyncIOScheduler(timezone="UTC", job_defaults={"misfire_grace_time": None})

    def start(self) -> None:
        """Begin to tick in the running loop."""
        for seconds, sweep in (
            (EXPIRE_SECONDS, self._recovery.expire_due),
            (STOP_SECONDS, self._recovery.stop),
            (RETRY_SECONDS, self._recovery.retry),
            (RECOVER_SECONDS, self._recovery.recover),
            (REMIND_SECONDS, self._reminders.remind),
            (SEND_SECONDS, self._reminders.send),
            (PURGE_SECONDS, self._recovery.purge),
            (WEBHOOK_SECONDS, self._webhooks.sweep),
            (SCHEDULE_SECONDS, self._schedules.run_due),
            (PUT_RIGHT_SECONDS, self._schedules.put_right),
        ):
            self._ticker.add_job(self._tick, _Pause(seconds), args=[sweep])
        self._ticker.start()
        self._watch = asyncio.create_task(self._watch_clock(), name="clock")

    async def stop(self) -> None:
        """Tick no more, and interrupt the sweeps under way: their rows say what is left."""
        self._ticker.shutdown(wait=False)
        under_way = [*self._under_way.values(), *filter(None, [self._watch])]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _watch_clock(self) -> None:
        """Set every job again once the clock was set: what is due in an hour by it would wait that hour."""
        before, began = self._clock(), time.monotonic()
        while True:
            await asyncio.sleep(1)
            now, at = self._clock(), time.monotonic()
            jumped = now - before - timedelta(seconds=at - began)
            before, began = now, at
            if abs(jumped) >= _JUMP:
                log.warning("the system's clock was set", by_seconds=round(jumped.total_seconds()))
                for job in self._ticker.get_jobs():
                    job.modify(next_run_time=datetime.now(UTC))

    async def _tick(self, sweep: Sweep) -> None:
        """Begin a sweep, unless its last one is still at it."""
        if sweep.__name__ not in self._under_way:
            self._under_way[sweep.__name__] = asyncio.create_task(self._sweep(sweep), name=sweep.__name__)

    async def _sweep(self, sweep: Sweep) -> None:
        try:
            await sweep(self._clock())
            if self._outage:
                self._outage = ""
                log.info("sweeps work again")
        except Exception as error:  # the next tick tries again; the log says what failed
            why = in_a_line(error)
            if not why:
                log.error("scheduled sweep failed", sweep=sweep.__name__, exc_info=error)
            elif not self._outage:  # the rest of the outage is the same line
                log.error("sweeps wait for the database", why=why)
            self._outage = why or self._outage
        finally:
            del self._under_way[sweep.__name__]
