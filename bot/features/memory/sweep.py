"""Deletes facts whose time is over, once a day."""

from datetime import datetime

from bot.features.memory import rows
from bot.jobs.daily import DailyRun
from bot.store.database import Database

SECONDS = 60


class MemorySweep:
    """Looks each minute, and does its work on the first look of a day."""

    def __init__(self, database: Database) -> None:
        self._day = DailyRun("memory", database)

    async def run(self, now: datetime) -> None:
        """Delete what has ended, unless that was done today."""
        await self._day.take(now, rows.remove_due)
