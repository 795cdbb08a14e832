"""The clock: APScheduler ticks in every process and decides nothing.

Due times live in rows and every sweep is a conditional UPDATE, so any number of tickers is safe and a
missed tick is made up for by the next.
"""

from collections.abc import Awaitable, Callable

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from bot.assistant import Assistant
from bot.callbacks import Callbacks
from bot.domain.chat import Clock
from bot.telemetry import logger

log = logger(__name__)

EXPIRE_SECONDS = 2
RECOVER_SECONDS = 5
REMIND_SECONDS = 10
PURGE_SECONDS = 3600
CALLBACK_SECONDS = 2


class Scheduler:
    def __init__(self, assistant: Assistant, callbacks: Callbacks, clock: Clock) -> None:
        self._assistant = assistant
        self._callbacks = callbacks
        self._clock = clock
        self._ticker = AsyncIOScheduler(
            timezone="UTC",
            job_defaults={"misfire_grace_time": 60, "coalesce": True, "max_instances": 1},
        )

    def start(self) -> None:
        """Begin to tick in the running loop."""
        for seconds, sweep in (
            (EXPIRE_SECONDS, self._assistant.expire_due),
            (RECOVER_SECONDS, self._assistant.recover),
            (REMIND_SECONDS, self._assistant.remind),
            (PURGE_SECONDS, self._assistant.purge),
            (CALLBACK_SECONDS, self._callbacks.sweep),
        ):
            self._ticker.add_job(self._tick, IntervalTrigger(seconds=seconds), args=[sweep])
        self._ticker.start()

    def stop(self) -> None:
        self._ticker.shutdown(wait=False)

    async def _tick(self, sweep: Callable[..., Awaitable[object]]) -> None:
        try:
            await sweep(self._clock())
        except Exception as error:  # the next tick tries again; the log says what broke
            log.error("a tick broke", sweep=sweep.__name__, exc_info=error)
