"""Deletes facts whose time is over, once a day."""

from datetime import date, datetime

from sqlmodel import Session

from bot.features.memory import rows
from bot.store import rules
from bot.store.database import Database

SECONDS = 60
_DAILY = "memory"


class MemorySweep:
    """Looks each minute, and does its work on the first look of a day."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._done: date | None = None  # what this process knows to be done

    async def run(self, now: datetime) -> None:
        """Delete what has ended, unless that was done today."""
        if self._done == now.date():
            return
        await self._database.write(_delete_ended, now)
        self._done = now.date()


def _delete_ended(session: Session, now: datetime) -> None:
    if rules.claim_day(session, _DAILY, now.date()):
        rows.remove_due(session, now)
