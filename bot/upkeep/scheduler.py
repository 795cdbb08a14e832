"""The clock: APScheduler ticks in every process and decides nothing.

Due times live in rows and every sweep is a conditional UPDATE, so any number of tickers is safe and a
missed tick is made up for by the next.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from bot.domain.chat import Clock
from bot.logs import logger
from bot.upkeep.recovery import Recovery
from bot.upkeep.reminders import Reminders
from bot.upkeep.webhooks import Callbacks

log = logger(__name__)

Sweep = Callable[[datetime], Awaitable[object]]

EXPIRE_SECONDS = 2
STOP_SECONDS = 1
RETRY_SECONDS = 1
RECOVER_SECONDS = 5
REMIND_SECONDS = 10
PURGE_SECONDS = 3600
CALLBACK_SECONDS = 2


class Scheduler:
    def __init__(self, recovery: Recovery, reminders: Reminders, callbacks: Callbacks, clock: Clock) -> None:
        self._recovery = recovery
        self._reminders = reminders
        self._callbacks = callbacks
        self._clock = clock
        self._under_way: dict[str, asyncio.Task[None]] = {}  # by the sweep's name
        self._ticker = AsyncIOScheduler(
            timezone="UTC",
            job_defaults={"misfire_grace_time": 60, "coalesce": True, "max_instances": 1},
        )

    def start(self) -> None:
        """Begin to tick in the running loop."""
        for seconds, sweep in (
            (EXPIRE_SECONDS, self._recovery.expire_due),
            (STOP_SECONDS, self._recovery.stop),
            (RETRY_SECONDS, self._recovery.retry),
            (RECOVER_SECONDS, self._recovery.recover),
            (REMIND_SECONDS, self._reminders.remind),
            (PURGE_SECONDS, self._recovery.purge),
            (CALLBACK_SECONDS, self._callbacks.sweep),
        ):
            self._ticker.add_job(self._tick, IntervalTrigger(seconds=seconds), args=[sweep])
        self._ticker.start()

    async def stop(self) -> None:
        """Tick no more, and interrupt the sweeps under way: their rows say what is left."""
        self._ticker.shutdown(wait=False)
        under_way = list(self._under_way.values())
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _tick(self, sweep: Sweep) -> None:
        """Begin a sweep, unless its last one is still at it."""
        if sweep.__name__ not in self._under_way:
            self._under_way[sweep.__name__] = asyncio.create_task(self._sweep(sweep), name=sweep.__name__)

    async def _sweep(self, sweep: Sweep) -> None:
        try:
            await sweep(self._clock())
        except Exception as error:  # the next tick tries again; the log says what failed
            log.error("scheduled sweep failed", sweep=sweep.__name__, exc_info=error)
        finally:
            del self._under_way[sweep.__name__]
