"""Discord, as an entry point of the group ``nod.channels``."""

from collections.abc import Sequence

from bot.channels.discord.places import NAME
from bot.channels.kinds import ChannelKind, Platform
from bot.domain.chat import Address, Clock
from bot.domain.findings import Finding
from bot.settings import Settings
from bot.store.database import Database


def _is_wanted(settings: Settings) -> bool:
    return any((settings.discord_bot_token, settings.discord_public_key, settings.discord_application_id))


def _make(settings: Settings, database: Database, clock: Clock) -> Platform:
    from bot.channels.discord.channel import DiscordChannel

    return DiscordChannel(settings, database, clock)


async def _examine(settings: Settings, places: Sequence[Address]) -> list[Finding]:
    from bot.channels.discord.doctor import check

    return await check(settings, places)


KIND = ChannelKind(
    NAME,
    "Discord",
    "discord:80351110224678912",
    "docs/discord.md tells how",
    ("DISCORD_BOT_TOKEN", "DISCORD_PUBLIC_KEY", "DISCORD_APPLICATION_ID"),
    _is_wanted,
    _make,
    _examine,
    rank=3,
)
