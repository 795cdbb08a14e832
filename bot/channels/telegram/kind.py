"""Telegram, as an entry point of the group ``nod.channels``."""

from collections.abc import Sequence

from bot.channels.kinds import ChannelKind, Platform
from bot.channels.telegram.places import NAME
from bot.domain.chat import Address, Clock
from bot.domain.findings import Finding
from bot.settings import Settings
from bot.store.database import Database


def _is_wanted(settings: Settings) -> bool:
    return settings.telegram_bot_token is not None


def _make(settings: Settings, database: Database, clock: Clock) -> Platform:
    from bot.channels.telegram.channel import TelegramChannel

    return TelegramChannel(settings, database, clock)


async def _examine(settings: Settings, places: Sequence[Address]) -> list[Finding]:
    from bot.channels.telegram.doctor import check

    return await check(settings, places)


KIND = ChannelKind(
    NAME,
    "Telegram",
    "telegram:991",
    "TELEGRAM_BOT_TOKEN turns it on",
    ("TELEGRAM_BOT_TOKEN",),
    _is_wanted,
    _make,
    _examine,
    ("telegram",),
    rank=2,
)
