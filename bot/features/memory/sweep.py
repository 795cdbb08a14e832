"""The sweep that deletes the facts whose time is over, once a day."""

from datetime import datetime

from bot.features.memory import rows
from bot.jobs.daily import DailyRun
from bot.store.database import Database

SECONDS = 60


class MemorySweep:
    """The sweep. It runs each minute, and does its work in the first run of a day."""

    def __init__(self, database: Database) -> None:
        self._day = DailyRun("memory", database)

    async def run(self, now: datetime) -> None:
        """Delete the facts that no longer hold, unless that was done today."""
        await self._day.take(now, rows.remove_ended)
