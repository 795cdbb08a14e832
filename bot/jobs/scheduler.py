"""The clock: APScheduler ticks in every process and decides nothing.

Due times live in rows and every sweep is a conditional UPDATE, so any number of tickers is safe and a
missed tick is made up for by the next. Ticks keep their pace when the system's clock is set, back or
ahead: what is due is then what the new time says.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from bot.domain.chat import Clock
from bot.jobs.recovery import Recovery
from bot.jobs.reminders import Reminders
from bot.jobs.webhooks import Webhooks
from bot.telemetry.logs import logger
from bot.telemetry.outages import in_a_line

log = logger(__name__)


EXPIRE_SECONDS = 2
STOP_SECONDS = 1
RETRY_SECONDS = 1
RECOVER_SECONDS = 5
REMIND_SECONDS = 10
SEND_SECONDS = 2
PURGE_SECONDS = 3600
WEBHOOK_SECONDS = 2
_JUMP = timedelta(
    seconds=5
)  # a clock that is only put right slowly never gains or loses that much in a second


class Sweep(NamedTuple):
    """Work that begins every so many seconds, given the time; never twice at a time in one process."""

    name: str
    seconds: float
    run: Callable[[datetime], Awaitable[object]]


class _Pause(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """A trigger that fires a fixed time after now, whenever it was due before.

    The interval of the library walks every run that a clock set ahead has missed, and holds the loop.
    """

    def __init__(self, seconds: float) -> None:
        self._pause = timedelta(seconds=seconds)

    def get_next_fire_time(self, _: datetime | None, now: datetime) -> datetime:
        """Return the next tick. The signature is the library's."""
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
        """``sweeps`` are those of features."""
        self._sweeps = (
            *sweeps,  # first, so that what they have to say goes out with the first reminders
            Sweep("expire_due", EXPIRE_SECONDS, recovery.expire_due),
            Sweep("stop", STOP_SECONDS, recovery.stop),
            Sweep("retry", RETRY_SECONDS, recovery.retry),
            Sweep("recover", RECOVER_SECONDS, recovery.recover),
            Sweep("remind", REMIND_SECONDS, reminders.remind),
            Sweep("send", SEND_SECONDS, reminders.send),
            Sweep("purge", PURGE_SECONDS, recovery.purge),
            Sweep("sweep", WEBHOOK_SECONDS, webhooks.sweep),
        )
        self._clock = clock
        self._under_way: dict[str, asyncio.Task[None]] = {}  # by the sweep's name
        self._watch: asyncio.Task[None] | None = None
        self._outage = ""
        self._ticker = AsyncIOScheduler(timezone="UTC", job_defaults={"misfire_grace_time": None})

    def start(self) -> None:
        """Begin to tick in the running loop."""
        for sweep in self._sweeps:
            self._ticker.add_job(self._tick, _Pause(sweep.seconds), args=[sweep])
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
        if sweep.name not in self._under_way:
            self._under_way[sweep.name] = asyncio.create_task(self._sweep(sweep), name=sweep.name)

    async def _sweep(self, sweep: Sweep) -> None:
        try:
            await sweep.run(self._clock())
            if self._outage:
                self._outage = ""
                log.info("sweeps work again")
        except Exception as error:  # the next tick tries again; the log says what failed
            why = in_a_line(error)
            if not why:
                log.error("scheduled sweep failed", sweep=sweep.name, exc_info=error)
            elif not self._outage:  # the rest of the outage is the same line
                log.error("sweeps wait for the database", why=why)
            self._outage = why or self._outage
        finally:
            del self._under_way[sweep.name]
