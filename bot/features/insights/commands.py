"""``/approvals insights``: the cost of asking, in a few lines."""

from datetime import timedelta

from bot.approvals.commands.values import seconds
from bot.approvals.commands.words import CommandParts, Subcommand
from bot.domain.chat import Command
from bot.domain.insights import Facet
from bot.features.insights import counting
from bot.settings import Settings


class InsightCommands:
    def __init__(self, settings: Settings, parts: CommandParts) -> None:
        self._is_on = settings.insights
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self.words = [
            Subcommand(
                "insights [tool|place|person|connection] [30d]",
                "how often people were asked, how it ended, how long it took; for admins everyone's",
                self._insights,
            ),
        ]

    async def _insights(self, command: Command, text: str) -> str:
        facet, length = Facet.TOOL, counting.MONTH
        for word in text.split():
            if word in set(Facet):
                facet = Facet(word)
            else:
                length = timedelta(seconds=seconds(word))
        if not self._is_on:
            return counting.OFF_TEXT
        now = self._clock()
        found = await self._database.read(counting.find_insights, self._policies, command.actor, now - length)
        return counting.format_insights(found, facet, now)
