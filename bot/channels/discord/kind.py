"""Discord, as an entry point of the group ``nod.channels``.

`KIND` is loaded at every start, to see if the settings ask for Discord. So the channel itself and its
libraries are imported only where they are needed, inside the functions.
"""

from collections.abc import Sequence

from bot.channels.discord.places import CHANNEL_NAME
from bot.channels.kinds import ChannelKind, Platform
from bot.domain.chat import Address, Clock
from bot.domain.doctor_findings import Finding
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
    CHANNEL_NAME,
    label="Discord",
    example="discord:80351110224678912",
    hint="docs/discord.md tells how",
    keys=("DISCORD_BOT_TOKEN", "DISCORD_PUBLIC_KEY", "DISCORD_APPLICATION_ID"),
    configured=_is_wanted,
    make=_make,
    examine=_examine,
    rank=3,
)
