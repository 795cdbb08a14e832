"""The chat platforms there are: Nod's own, and those of other packages that ``NOD_CHANNELS`` names.

All of them come in as entry points of the group ``nod.channels``; how one is written: ``docs/plugins.md``.
"""

import functools
from importlib.metadata import entry_points

from bot.channels.kind import ChannelKind
from bot.errors import SettingsError
from bot.plugins import CHANNELS, ENTRY, is_own, load
from bot.settings import Settings

_SETTING = "NOD_CHANNELS"


@functools.cache
def own_channels() -> tuple[ChannelKind, ...]:
    """Slack, Telegram and Discord, which are on where their settings are there."""
    own = (point.load() for point in entry_points(group=CHANNELS) if is_own(point))
    return tuple(sorted(own, key=lambda kind: kind.rank))


def channels_of(settings: Settings) -> tuple[ChannelKind, ...]:
    """Nod's own channels, then those that ``NOD_CHANNELS`` names.

    Raises SettingsError where a named one can't be had or is no channel.
    """
    return (*own_channels(), *map(_named, dict.fromkeys(settings.channels)))


def _named(name: str) -> ChannelKind:
    if not name.startswith(ENTRY):
        raise SettingsError(f"{_SETTING}: {name!r} is not a channel. Write entry:NAME, as its package says")
    kind = load(CHANNELS, _SETTING, name)
    if not isinstance(kind, ChannelKind):
        raise SettingsError(f"{_SETTING}: {name} leads to no ChannelKind; see docs/plugins.md")
    if kind.name != name.removeprefix(ENTRY):
        raise SettingsError(f"{_SETTING}: {name} calls its channel {kind.name!r}. Name both the same")
    return kind


def require_admin(settings: Settings) -> None:
    """Raises SettingsError where people could reach Nod and no one could set it right."""
    kinds = channels_of(settings)
    reached = settings.http_tokens or any(kind.configured(settings) for kind in kinds)
    if reached and not settings.admins:
        examples = ", ".join(kind.example for kind in kinds)
        raise SettingsError(
            f"NOD_ADMINS: name at least one account that may set the rules, such as {examples} or http:ana"
        )
