"""A conversation's team is shown by one message in its thread, kept up to date: the board.

As with cards, the row changes first; a board that is behind is shown at once, and again after a restart.
"""

from collections.abc import Mapping

from sqlmodel import Session

from bot.domain.chat import Channel
from bot.domain.teams import Board
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import boards, teams
from bot.store.boards import BoardCopy
from bot.store.database import Database
from bot.telemetry import logger

log = logger(__name__)

_MAX_PASSES = 5  # of one board in a row; the next tick goes on


class Boards:
    def __init__(self, channels: Mapping[str, Channel], database: Database) -> None:
        self._channels = channels
        self._database = database

    async def show(self, lead_id: str) -> None:
        """Bring the board of a conversation up to date; post it where there is none yet."""
        for _ in range(_MAX_PASSES):
            copy, board = await self._database.read(_behind, lead_id)
            if copy is None or not await self._show(copy, board):
                return

    async def _show(self, copy: BoardCopy, board: Board) -> bool:
        channel = self._channels.get(copy.address.channel)
        if channel is None:
            return False
        ref = copy.ref
        try:
            if ref:
                await channel.redraw_board(copy.address, ref, board)
            else:
                ref = await channel.post_board(copy.address, board)
        except (CopyGone, NotDeliverable):
            await self._database.write(boards.mark_gone, copy)
        except ChannelError as error:
            log.warning("a team's board stays behind for now", conversation=copy.lead_id, why=error.message)
            return False
        else:
            await self._database.write(boards.mark_shown, copy, ref)
        return True


def _behind(session: Session, lead_id: str) -> tuple[BoardCopy | None, Board]:
    copy = boards.behind(session, lead_id)
    return copy, teams.board(session, lead_id) if copy else Board(lead_id, ())
