"""What a kind of channel says of itself: how to tell that it is wanted, to build it and to check it.

Each channel's folder has one, and `bot/channels/table.py` lists them.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.routing import BaseRoute

from bot.channels.seam import Poster
from bot.domain.chat import Clock
from bot.domain.findings import Finding, ok
from bot.settings import Settings
from bot.store.database import Database


class Platform(Poster, Protocol):
    """A chat platform that may call Nod's own web server."""

    def routes(self) -> Sequence[BaseRoute]:
        """What the web server mounts for it."""


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """``label`` is what people call it; ``example`` an account there, as settings and rules name it.

    ``hint``: how it is turned on; ``keys``: the settings that do so. The platform's libraries are loaded by
    ``build`` and ``examine``.
    """

    name: str
    label: str
    example: str
    hint: str
    keys: tuple[str, ...]
    configured: Callable[[Settings], bool]  # whether any setting asks for it
    build: Callable[[Settings, Database, Clock], Platform]  # raises SettingsError where a setting is wrong
    examine: Callable[[Settings], Awaitable[list[Finding]]]

    async def check(self, settings: Settings) -> list[Finding]:
        """For the doctor; never raises for what it finds."""
        if not self.configured(settings):
            return [ok(self.label, f"not set up; {self.hint}")]
        return await self.examine(settings)
