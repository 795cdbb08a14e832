"""What a kind of channel says of itself: how to tell that it is wanted, to build it and to check it.

Each channel has one: an entry point of the group ``nod.channels`` (``bot/channels/table.py``).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.routing import BaseRoute

from bot.channels.base import Poster
from bot.domain.chat import Address, Clock
from bot.domain.findings import Finding, fail, ok, warn
from bot.errors import ChannelError, SettingsError
from bot.settings import Settings, require
from bot.store.database import Database


class Platform(Poster, Protocol):
    """A chat platform that may call Nod's own web server."""

    def routes(self) -> Sequence[BaseRoute]:
        """What the web server mounts for it; nothing, where it calls the platform itself."""
        return ()


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """``label`` is what people call it; ``example`` an account there, as settings and rules name it.

    ``hint``: how it is turned on; ``keys``: the settings that do so. The platform's libraries are an extra of
    its name, loaded by ``make`` and ``examine``; ``libraries`` names them as they are imported. ``rank``: its
    place in lists of Nod's own channels.
    """

    name: str
    label: str
    example: str
    hint: str
    keys: tuple[str, ...]
    configured: Callable[[Settings], bool]  # whether any setting asks for it
    make: Callable[[Settings, Database, Clock], Platform]  # raises SettingsError where a setting is wrong
    examine: Callable[[Settings, Sequence[Address]], Awaitable[list[Finding]]] | None = None
    libraries: tuple[str, ...] = ()
    rank: int = 0

    def build(self, settings: Settings, database: Database, clock: Clock) -> Platform:
        """Raises SettingsError where a setting is wrong, or a library is missing."""
        try:
            require(self.label, self.name, *self.libraries)
        except ValueError as error:
            raise SettingsError(str(error)) from None
        return self.make(settings, database, clock)

    async def check(self, settings: Settings, places: Sequence[Address] = ()) -> list[Finding]:
        """For the doctor, with the places where Nod is to post; never raises for what it finds."""
        if not self.configured(settings):
            return [ok(self.label, f"not set up; {self.hint}")]
        try:
            require(self.label, self.name, *self.libraries)
        except ValueError as error:
            return [fail(self.label, str(error))]
        if self.examine is None:
            return [ok(self.label, "set up")]
        return await self.examine(settings, [each for each in places if each.channel == self.name])


async def look_at_places(
    places: Sequence[Address], ask: Callable[[Address], Awaitable[None]]
) -> list[Finding]:
    """Whether Nod can post in each; ``ask`` raises ChannelError where it can't."""
    found = []
    for place in places:
        try:
            await ask(place)
        except ChannelError as error:
            found.append(warn(f"posting in {place}", error.message))
        else:
            found.append(ok(f"posting in {place}"))
    return found
