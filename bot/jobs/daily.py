"""Daily tasks, such as forgetting old rows, of which one process gets the run of each day.

A sweep asks every few seconds, in every process. The first one after midnight (UTC) claims the day in a row
and does the task in the same transaction.
"""

from collections.abc import Callable
from datetime import date, datetime

from sqlmodel import Session

from bot.store import state
from bot.store.database import Database


def _do_nothing(_: Session, __: datetime) -> None:
    return


class DailyRun:
    """The runs of one daily task."""

    def __init__(self, name: str, database: Database) -> None:
        """``name``: the task's name in the rows."""
        self._name, self._database = name, database
        self._taken: date | None = None  # the last day whose run is known here to be taken

    def is_taken(self, now: datetime) -> bool:
        """Return whether this process knows that today's run is taken. Reads no row."""
        return self._taken == now.date()

    async def take(self, now: datetime, work: Callable[[Session, datetime], object] = _do_nothing) -> bool:
        """Take today's run, and do ``work`` in the same transaction; False if the run was taken before."""
        if self.is_taken(now):
            return False
        first = await self._database.write(self._take, now, work)
        self._taken = now.date()
        return first

    def _take(self, session: Session, now: datetime, work: Callable[[Session, datetime], object]) -> bool:
        first = state.claim_day(session, self._name, now.date())
        if first:
            work(session, now)
        return first
