"""The check of the channels, and of the places in which they post."""

from bot.channels.kinds import channels_of
from bot.cli.checks.database import load_rulebook
from bot.cli.checks.plugins import list_unloaded
from bot.domain.chat import Address
from bot.domain.doctor_findings import Finding, fail
from bot.errors import SettingsError
from bot.plugins import CHANNELS
from bot.settings import Settings


async def check_channels(settings: Settings) -> list[Finding]:
    places = _list_places(settings)
    unloaded = list_unloaded(CHANNELS, "NOD_CHANNELS", settings.channels)
    try:
        kinds = channels_of(settings)
    except SettingsError as error:
        return [fail("channels", error.message), *unloaded]
    findings: list[Finding] = []
    for kind in kinds:
        findings += await kind.check(settings, places)
    return findings + unloaded


def _list_places(settings: Settings) -> list[Address]:
    chats = list(settings.approver_chats)
    chats += [place for rule in load_rulebook(settings).rules for place in rule.posts_at]
    return [Address.parse(chat) for chat in dict.fromkeys(chats) if chat]
