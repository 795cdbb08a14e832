"""Delivery of the team's status: one message in a conversation's thread that shows its teammates.

A team is the lead agent of a conversation, with whom people speak, and the teammates that it started. A
change is first stored in the team's row, then shown in the message. A message that shows an earlier state of
its row is outdated. It is redrawn right away, or after a restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlmodel import Session

from bot.channels.base import Channel
from bot.channels.delivery.pauses import Pauses
from bot.domain.chat import Address, Clock
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import teams
from bot.store.database import Database
from bot.store.processes import Leases
from bot.store.tables.conversations import TeamStatusRow
from bot.telemetry.logs import logger

log = logger(__name__)

_MAX_PASSES = 5  # redraws of one message in a row; a later job continues


class _OutdatedMessage(NamedTuple):
    """A status message that is outdated, and the status that it is to show."""

    row: TeamStatusRow
    status: TeamStatus


@dataclass(eq=False)
class TeamStatusDelivery:
    """Posts the status message of a team and keeps it up to date."""

    channels: Mapping[str, Channel]
    database: Database
    clock: Clock
    leases: Leases

    def __post_init__(self) -> None:
        self._pauses: Pauses[str] = Pauses(self.clock)  # by the id of the lead agent's conversation

    async def show(self, lead_id: str) -> None:
        """Bring a conversation's status message up to date; post it if there isn't one yet.

        Raises LeasedElsewhere if another process is doing so.
        """
        async with self.leases.hold(f"team of {lead_id}"):
            for _ in range(_MAX_PASSES):
                outdated = await self.database.read(_find_outdated, lead_id)
                if outdated is None or not await self._draw(outdated.row, outdated.status):
                    return

    async def _draw(self, row: TeamStatusRow, status: TeamStatus) -> bool:
        """Draw the message. Returns True if the status has changed again since it was read."""
        channel = self.channels.get(row.channel)
        if channel is None or self._pauses.is_backing_off(row.lead_id):
            return False
        has_changed = False
        try:
            ref = await channel.show_team(Address(row.channel, row.key), row.ref, status)
        except (CopyGone, NotDeliverable):
            await self.database.write(teams.mark_gone, row)
        except ChannelError as error:
            log.warning("team status not updated yet", conversation=row.lead_id, why=error.message)
            self._pauses.note_refusal(row.lead_id)
            return False
        else:
            has_changed = await self.database.write(teams.mark_shown, row, ref)
        self._pauses.end(row.lead_id)
        return has_changed


def _find_outdated(session: Session, lead_id: str) -> _OutdatedMessage | None:
    row = teams.find_outdated_message(session, lead_id)
    if row is None:
        return None
    return _OutdatedMessage(row, teams.load_status(session, lead_id))
