"""The sweep that deletes the mutes whose time is over."""

from dataclasses import dataclass
from datetime import datetime

from bot.features.mutes import rows
from bot.features.mutes.rows import Mutes
from bot.store.database import Database

SECONDS = 30


@dataclass(frozen=True, slots=True)
class MuteSweep:
    """The sweep. It reads nothing while the copy of the mutes in memory is current and empty."""

    database: Database
    mutes: Mutes

    async def run(self, now: datetime) -> None:
        if not self.mutes.may_have_mutes():
            return
        if any(each.until <= now for each in await self.database.read(self.mutes.load_mutes)):
            await self.database.write(rows.delete_ended, now)
