"""A team as Telegram shows it: one message, a line or two for each teammate. Pure."""

from bot.channels.telegram.text import OUTLINER, Rich
from bot.domain.teams import TeamStatus


def rendered(board: TeamStatus) -> Rich:
    return OUTLINER.team(board, "/team")
