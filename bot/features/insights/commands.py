"""The command ``/approvals insights``: the cost of asking for approval, in a few lines of chat.

With the word ``people`` it shows the signs of how people decide instead (`reading_signs.py`).
"""

from datetime import timedelta
from functools import partial

from bot.approvals.commands.operands import parse_seconds
from bot.approvals.commands.subcommands import CommandParts, Subcommand
from bot.domain.chat import Command
from bot.domain.insights import Facet
from bot.features.insights import cost_report, reading_notes, reading_signs
from bot.features.insights.reading_signs import BY_PEOPLE
from bot.settings import Settings


class InsightCommands:
    def __init__(self, settings: Settings, parts: CommandParts) -> None:
        self._setting = settings.insights  # NOD_INSIGHTS: empty where insights are off
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self.words = [
            Subcommand(
                "insights [tool|place|person|connection] [30d], or insights people [30d]",
                "how often people were asked, how it ended, how long it took; for admins everyone's; "
                "people: signs of how people decide, your own or for admins everyone's",
                self._insights,
            ),
        ]

    async def _insights(self, command: Command, text: str) -> str:
        """Return the report in words. Each word of ``text`` is a facet, ``people`` or a length of time."""
        facet, length, is_about_people = Facet.TOOL, cost_report.MONTH, False
        for word in text.split():
            if word == BY_PEOPLE:
                is_about_people = True
            elif word in set(Facet):
                facet = Facet(word)
            else:
                length = timedelta(seconds=parse_seconds(word))
        if not self._setting:
            return cost_report.OFF_TEXT
        now = self._clock()
        if is_about_people:
            since = now - min(length, reading_notes.RETENTION)
            find_signs = partial(reading_signs.find_signs, has_notes=self._setting == BY_PEOPLE)
            signs = await self._database.read(find_signs, self._policies, command.actor, since)
            return reading_signs.format_signs(signs, now)
        since = now - length
        found = await self._database.read(
            cost_report.count_visible_insights, self._policies, command.actor, since
        )
        return cost_report.format_insights(found, facet, now)
