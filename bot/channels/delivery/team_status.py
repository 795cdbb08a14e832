"""A conversation's team is shown by one message in its thread, kept up to date: the board.

As with cards, the row changes first; a message that is behind is redrawn immediately, and after a restart.
"""

from collections.abc import Mapping

from sqlmodel import Session

from bot.channels.base import Channel
from bot.channels.delivery.leases import Leases
from bot.channels.delivery.pauses import Pauses
from bot.domain.chat import Clock
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import team_status, teams
from bot.store.database import Database
from bot.store.team_status import TeamStatusCopy
from bot.telemetry.logs import logger

log = logger(__name__)

_MAX_PASSES = 5  # of one board in a row; the next tick continues


class TeamStatusDelivery:
    def __init__(
        self, channels: Mapping[str, Channel], database: Database, clock: Clock, leases: Leases
    ) -> None:
        self._channels = channels
        self._pauses: Pauses[str] = Pauses(clock)  # by lead conversation
        self._database = database
        self._leases = leases

    async def show(self, lead_id: str) -> None:
        """Bring the board of a conversation up to date; post it if there isn't one yet.

        Raises LeasedElsewhere where another process is doing so.
        """
        async with self._leases.held(f"team of {lead_id}"):
            for _ in range(_MAX_PASSES):
                copy, board = await self._database.read(_behind, lead_id)
                if copy is None or not await self._show(copy, board):
                    return

    async def _show(self, copy: TeamStatusCopy, board: TeamStatus) -> bool:
        channel = self._channels.get(copy.address.channel)
        if channel is None or self._pauses.holds(copy.lead_id):
            return False
        try:
            ref = await channel.show_team(copy.address, copy.ref, board)
        except (CopyGone, NotDeliverable):
            await self._database.write(team_status.mark_gone, copy)
        except ChannelError as error:
            log.warning("team status not updated yet", conversation=copy.lead_id, why=error.message)
            self._pauses.refused(copy.lead_id)
            return False
        else:
            await self._database.write(team_status.mark_shown, copy, ref)
        self._pauses.over(copy.lead_id)
        return True


def _behind(session: Session, lead_id: str) -> tuple[TeamStatusCopy | None, TeamStatus]:
    copy = team_status.behind(session, lead_id)
    return copy, teams.board(session, lead_id) if copy else TeamStatus(lead_id, ())
