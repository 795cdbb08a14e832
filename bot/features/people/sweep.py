"""The sweep that ends the absences whose time is over, and tells the people whom that concerns."""

from datetime import datetime

from sqlmodel import Session

from bot.domain.chat import Address
from bot.features.people import rows
from bot.store import notices, posted_cards
from bot.store.database import Database
from bot.store.rules import Policies

SECONDS = 10


class AbsenceSweep:
    """The sweep. It looks at the absences in memory, and uses the database only if one of them is over."""

    def __init__(self, database: Database, policies: Policies) -> None:
        self._database, self._policies = database, policies

    async def run(self, now: datetime) -> None:
        """End the absences that are over, and have open cards redrawn without the stand-ins."""
        if any(each.until <= now for each in self._policies.latest_policy.absences):
            await self._database.write(_end_due, now)


def _end_due(session: Session, now: datetime) -> None:
    for each in rows.end_past(session, now):
        over = f"{each.absent.label} is back. {each.stand_in.label} no longer decides for them."
        for actor in (each.absent, each.stand_in):
            notices.store_notice(session, Address(actor.channel, actor.key), over, now)
    posted_cards.mark_open_outdated(session)
