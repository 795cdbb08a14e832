"""Telegram, as an entry point of the group ``nod.channels``.

`KIND` is loaded at every start, to see if the settings ask for Telegram. So the channel itself and its
libraries are imported only where they are needed, inside the functions.
"""

from collections.abc import Sequence

from bot.channels.kinds import ChannelKind, Platform
from bot.channels.telegram.places import NAME
from bot.domain.chat import Address, Clock
from bot.domain.doctor_findings import Finding
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
    label="Telegram",
    example="telegram:991",
    hint="TELEGRAM_BOT_TOKEN turns it on",
    keys=("TELEGRAM_BOT_TOKEN",),
    configured=_is_wanted,
    make=_make,
    examine=_examine,
    libraries=("telegram",),
    rank=2,
)
