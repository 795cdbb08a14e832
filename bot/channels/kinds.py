"""The chat platforms: Nod's own, and the platforms of other packages that ``NOD_CHANNELS`` names.

Each is an entry point of the group ``nod.channels`` and leads to a `ChannelKind`, which knows if the settings
ask for it, and how to build and check it. ``docs/plugins.md`` tells how to write one.
"""

import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from starlette.routing import BaseRoute

from bot.channels.base import Poster
from bot.domain.chat import Address, Clock
from bot.domain.findings import Finding, fail, ok, warn
from bot.errors import ChannelError, SettingsError
from bot.plugins import CHANNELS, ENTRY, is_own, load_entry_point
from bot.settings import Settings, require
from bot.store.database import Database

_SETTING = "NOD_CHANNELS"


class Platform(Poster):
    """A chat platform that may call Nod's own web server."""

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes to mount in the web server; empty for a channel that connects by itself."""
        return ()


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """A chat platform, before it is built.

    Its libraries are an extra of the platform's name. Only ``make`` and ``examine`` load them.
    """

    name: str
    label: str  # the name that people read
    example: str  # an account there, as settings and rules name it
    hint: str  # tells people how the channel is turned on
    keys: tuple[str, ...]  # the settings that turn it on
    configured: Callable[[Settings], bool]  # True if any setting asks for it
    make: Callable[[Settings, Database, Clock], Platform]  # raises SettingsError where a setting is wrong
    examine: Callable[[Settings, Sequence[Address]], Awaitable[list[Finding]]] | None = None
    libraries: tuple[str, ...] = ()  # the names of the modules to import
    rank: int = 0  # its position in lists of Nod's own channels

    def build(self, settings: Settings, database: Database, clock: Clock) -> Platform:
        """Raise SettingsError where a setting is wrong, or a library is missing."""
        missing = self._find_missing_library()
        if missing:
            raise SettingsError(missing)
        return self.make(settings, database, clock)

    def _find_missing_library(self) -> str:
        """Return which library is missing and how to get it; empty if none is."""
        try:
            require(self.label, self.name, *self.libraries)
        except ValueError as error:
            return str(error)
        return ""

    async def check(self, settings: Settings, places: Sequence[Address] = ()) -> list[Finding]:
        """Check the channel for the doctor, with the places where Nod is to post.

        Never raises for a finding.
        """
        if not self.configured(settings):
            return [ok(self.label, f"not set up; {self.hint}")]
        missing = self._find_missing_library()
        if missing:
            return [fail(self.label, missing)]
        if self.examine is None:
            return [ok(self.label, "set up")]
        return await self.examine(settings, [place for place in places if place.channel == self.name])


async def look_at_places(
    places: Sequence[Address], ask: Callable[[Address], Awaitable[None]]
) -> list[Finding]:
    """Check that Nod can post in each place; ``ask`` raises ChannelError where it can't."""
    findings = []
    for place in places:
        try:
            await ask(place)
        except ChannelError as error:
            findings.append(warn(f"posting in {place}", error.message))
        else:
            findings.append(ok(f"posting in {place}"))
    return findings


@functools.cache
def own_channels() -> tuple[ChannelKind, ...]:
    """Return Slack, Telegram and Discord, whether or not they are turned on."""
    own_kinds = [point.load() for point in entry_points(group=CHANNELS) if is_own(point)]
    return tuple(sorted(own_kinds, key=lambda kind: kind.rank))


def channels_of(settings: Settings) -> tuple[ChannelKind, ...]:
    """Return Nod's own channels, then those that ``NOD_CHANNELS`` names.

    Raises SettingsError where a named one can't be had or is no channel.
    """
    return (*own_channels(), *map(_find_kind, dict.fromkeys(settings.channels)))


def _find_kind(name: str) -> ChannelKind:
    if not name.startswith(ENTRY):
        raise SettingsError(f"{_SETTING}: {name!r} is not a channel. Write entry:NAME, as its package says")
    kind = load_entry_point(CHANNELS, _SETTING, name)
    if not isinstance(kind, ChannelKind):
        raise SettingsError(f"{_SETTING}: {name} leads to no ChannelKind; see docs/plugins.md")
    if kind.name != name.removeprefix(ENTRY):
        raise SettingsError(f"{_SETTING}: {name} calls its channel {kind.name!r}. Name both the same")
    return kind


def require_admin(settings: Settings) -> None:
    """Raise SettingsError if people could reach Nod and no one could set its rules."""
    kinds = channels_of(settings)
    is_reachable = settings.http_tokens or any(kind.configured(settings) for kind in kinds)
    if is_reachable and not settings.admins:
        examples = ", ".join(kind.example for kind in kinds)
        raise SettingsError(
            f"NOD_ADMINS: name at least one account that may set the rules, such as {examples} or http:ana"
        )
