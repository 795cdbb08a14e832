"""A team as Discord shows it: one embed, a line or two for each teammate. Pure."""

from typing import Any

from bot.channels.discord.text import OUTLINER
from bot.domain.teams import TeamStatus


def rendered(board: TeamStatus) -> dict[str, Any]:
    return {"embeds": [{"description": OUTLINER.team(board, "/nod team")}]}
