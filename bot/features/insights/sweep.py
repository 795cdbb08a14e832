"""The sweep that suggests rules to admins, once a day (`suggestions.py`)."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from bot.features.insights import suggestions
from bot.jobs.daily import DailyRun
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.registry import Registry

SECONDS = 10


class SuggestionSweep:
    """The sweep. It runs every few seconds, and does its work in the first run of a day without a pause.

    An admin may pause all of Nod: then no rules are suggested until it is resumed. ``redraw`` redraws the
    cards that changed.
    """

    def __init__(
        self,
        database: Database,
        policies: Policies,
        registry: Registry,
        redraw: Callable[[], Awaitable[None]],
    ) -> None:
        self._database, self._policies, self._registry = database, policies, registry
        self._redraw = redraw
        self._day = DailyRun("suggested", database)

    async def run(self, now: datetime) -> None:
        """Open the suggestions that can be made now, unless that was done today."""
        if self._day.is_taken(now):
            return
        policy = await self._database.read(self._policies.load)
        if policy.rulebook.paused:
            return
        if not await self._day.take(now):
            return
        available = await self._registry.load_tools()
        wanted = await self._database.read(suggestions.find_suggestions, self._policies, available, now)
        if wanted:
            await self._database.write(suggestions.open_suggestions, self._policies, available, wanted, now)
            await self._redraw()
