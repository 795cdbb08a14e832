"""The table of chat platforms: what each says of itself is what the rest of Nod goes by."""

from pathlib import Path

import pytest

from bot.channels.kinds import ChannelKind, own_channels, require_admin
from bot.domain.people import Actor, name_of_channel
from bot.errors import SettingsError
from bot.plugins import list_channel_names
from bot.settings import Settings


def test_every_platform_has_one_name_and_an_account_as_example():
    assert len({kind.name for kind in own_channels()}) == len(own_channels())
    for kind in own_channels():
        assert Actor.parse(kind.example).channel == kind.name
        assert name_of_channel(kind.name) == kind.label
    assert {"http", "cli", *(kind.name for kind in own_channels())} == list_channel_names()


@pytest.mark.parametrize(
    "given",
    [
        {"TELEGRAM_BOT_TOKEN": "1:a"},
        {"SLACK_BOT_TOKEN": "xoxb-1"},
        {"DISCORD_BOT_TOKEN": "a"},
        {"NOD_HTTP_TOKENS": f"ana:{16 * 'a'}"},
    ],
)
def test_where_people_reach_nod_someone_has_to_be_an_admin(given: dict[str, str]):
    settings = Settings.load(**given)
    with pytest.raises(
        SettingsError, match="slack:T0123/U0456, telegram:991, discord:80351110224678912 or http:ana"
    ):
        require_admin(settings)
    require_admin(Settings.load(**given, NOD_ADMINS="http:ana"))


async def test_a_platform_that_is_not_set_up_is_no_failure():
    settings = Settings.load()
    for kind in own_channels():
        assert not kind.configured(settings)
        assert not any(finding.failed for finding in await kind.check(settings))


JOBS = [
    "card",
    "channel",
    "doctor",
    "forms",
    "inbound",
    "kind",
    "places",
    "presses",
    "stream",
    "text",
]


@pytest.mark.parametrize("kind", own_channels(), ids=lambda kind: kind.name)
def test_every_platform_has_the_same_file_for_the_same_job(kind: ChannelKind):
    folder = Path(__file__).parents[2] / "bot" / "channels" / kind.name
    assert [job for job in JOBS if not (folder / f"{job}.py").exists()] == []
