"""The chat platforms: Nod's own, and the platforms of other packages that ``NOD_CHANNELS`` names.

Each platform is an entry point of the group ``nod.channels`` and leads to a `ChannelKind`. A kind knows if
the settings ask for its platform, how to build the channel, and how to check it for the doctor. (The doctor
is ``nod doctor``, the command that looks for faults of the set-up.) ``docs/plugins.md`` tells how to write
one.
"""

import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from starlette.routing import BaseRoute

from bot.channels.base import Poster
from bot.domain.chat import Address, Clock
from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.errors import ChannelError, SettingsError
from bot.plugins import CHANNELS, ENTRY, is_own, load_entry_point
from bot.settings import Settings, require_libraries
from bot.store.database import Database

_SETTING = "NOD_CHANNELS"


class Platform(Poster):
    """A channel to a chat platform, which may call Nod's own web server."""

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes to mount in the web server; empty for a channel that connects by itself."""
        return ()


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """A chat platform, before its channel is built.

    Its libraries are installed by an extra of the package with the platform's name. Only ``make`` and
    ``examine`` import them.
    """

    name: str
    label: str  # the name that people read
    example: str  # an account of the platform, as settings and rules name it
    hint: str  # tells people how the channel is turned on
    keys: tuple[str, ...]  # the settings that turn it on
    configured: Callable[[Settings], bool]  # True if any setting asks for it
    make: Callable[[Settings, Database, Clock], Platform]  # raises SettingsError where a setting is wrong
    examine: Callable[[Settings, Sequence[Address]], Awaitable[list[Finding]]] | None = None
    """Checks the settings, and whether Nod can post at these addresses; None: there is nothing to check."""
    libraries: tuple[str, ...] = ()  # the names of the modules to import
    rank: int = 0  # its position in lists of Nod's own channels

    def build(self, settings: Settings, database: Database, clock: Clock) -> Platform:
        """Build the channel. Raises SettingsError where a setting is wrong, or a library is missing."""
        missing = self._find_missing_library()
        if missing:
            raise SettingsError(missing)
        return self.make(settings, database, clock)

    def _find_missing_library(self) -> str:
        """Return a sentence on the missing library and how to install it; empty if none is missing."""
        try:
            require_libraries(self.label, self.name, *self.libraries)
        except ValueError as error:
            return str(error)
        return ""

    async def check(self, settings: Settings, places: Sequence[Address] = ()) -> list[Finding]:
        """Check the platform for the doctor, with those of the ``places`` where Nod is to post on it."""
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
    """Return Nod's own platforms by rank: Slack, Telegram, Discord; also those that are not turned on."""
    own_kinds = [point.load() for point in entry_points(group=CHANNELS) if is_own(point)]
    return tuple(sorted(own_kinds, key=lambda kind: kind.rank))


def channels_of(settings: Settings) -> tuple[ChannelKind, ...]:
    """Return Nod's own platforms, then those that ``NOD_CHANNELS`` names, each once.

    Raises SettingsError where a named platform can't be loaded or leads to no `ChannelKind`.
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
