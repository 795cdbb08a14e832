"""Slack, as an entry point of the group ``nod.channels``.

`KIND` is loaded at every start, to see if the settings ask for Slack. So the channel itself and its
libraries are imported only where they are needed, inside the functions.
"""

from collections.abc import Sequence

from bot.channels.kinds import ChannelKind, Platform
from bot.channels.slack.places import NAME
from bot.domain.chat import Address, Clock
from bot.domain.doctor_findings import Finding
from bot.settings import Settings
from bot.store.database import Database


def _is_wanted(settings: Settings) -> bool:
    return any(
        (
            settings.slack_bot_token,
            settings.slack_app_token,
            settings.slack_signing_secret,
            settings.slack_client_id,
        )
    )


def _make(settings: Settings, database: Database, clock: Clock) -> Platform:
    from bot.channels.slack.channel import SlackChannel

    return SlackChannel(settings, database, clock)


async def _examine(settings: Settings, places: Sequence[Address]) -> list[Finding]:
    from bot.channels.slack.doctor import check

    return await check(settings, places)


KIND = ChannelKind(
    NAME,
    label="Slack",
    example="slack:T0123/U0456",
    hint="SLACK_BOT_TOKEN and SLACK_APP_TOKEN turn it on",
    keys=("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"),
    configured=_is_wanted,
    make=_make,
    examine=_examine,
    libraries=("aiohttp", "slack_bolt", "slack_sdk"),
    rank=1,
)
