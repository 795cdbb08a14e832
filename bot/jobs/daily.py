"""Daily tasks, run by the process that looks first."""

from collections.abc import Callable
from datetime import date, datetime

from sqlmodel import Session

from bot.store import state
from bot.store.database import Database


def _do_nothing(_: Session, __: datetime) -> None:
    return


class DailyRun:
    """The run of a daily task, which one look of one process gets. ``name`` is what the rows call it."""

    def __init__(self, name: str, database: Database) -> None:
        self._name, self._database = name, database
        self._taken: date | None = None  # the day that this process knows to be taken

    def is_taken(self, now: datetime) -> bool:
        """Tell if this process knows that today's run is taken; it costs nothing to ask."""
        return self._taken == now.date()

    async def take(self, now: datetime, work: Callable[[Session, datetime], object] = _do_nothing) -> bool:
        """Take today's run; False where it was taken before. ``work`` is done in the same transaction."""
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
