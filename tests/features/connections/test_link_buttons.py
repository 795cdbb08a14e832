"""The link to connect is a button that opens a page, for that person alone, in each chat."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.channels.discord.places import INTERACTIONS
from bot.settings import Settings
from bot.testing.world import World, eventually
from tests.fakes.discord_server import APP, CHANNEL, SERVER, FakeDiscord
from tests.fakes.discord_server import TOKEN as DISCORD_TOKEN
from tests.features.connections.conftest import KEY
from tests.features.connections.office import ANA, GROUP, Office
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

SITE = "https://nod.example.com"
LABEL = "Connect your account at hub"
ONCE = "The page works once, for 10 minutes, for you alone."


@pytest.fixture
async def office(
    database_of: Urls, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Office]:
    monkeypatch.chdir(tmp_path)
    make_tables(url := database_of("nod"))
    made = Office(url, clock, tmp_path, more={"NOD_PUBLIC_URL": SITE})
    try:
        await made.open()
        yield made
    finally:
        await made.close()


async def test_in_slack_the_answer_to_the_command_has_a_button_that_opens_the_page(office: Office) -> None:
    said = await office.command(ANA, "/nod connections connect hub")
    assert said.startswith(ONCE)
    assert SITE not in said
    [answer] = office.slack.whispered.popitem()[1]
    [button] = answer["blocks"][1]["elements"]
    assert (button["text"]["text"], button["url"].partition("/connect/")[0]) == (LABEL, SITE)


async def test_in_slack_home_leads_to_a_message_with_that_button_and_pressing_it_says_nothing(
    office: Office,
) -> None:
    mine = office.slack.dm(ANA.slack)
    home = {"type": "app_home_opened", "user": ANA.slack, "channel": mine, "tab": "home"}
    await office.slack.deliver_event(home)
    await eventually(lambda: "Connect hub" in str(office.slack.homes.get(ANA.slack)), "the offer")
    await office.slack.click_home(ANA.slack, "Connect hub")
    [post] = await eventually(lambda: office.slack.in_channel(mine), "the link")
    assert [each["url"].partition("/connect/")[0] for each in post.blocks[1]["elements"]] == [SITE]
    before = len(office.slack.posted)
    assert (await office.slack.click(post, LABEL, ANA.slack)).status == 200
    await office.idle()
    assert len(office.slack.posted) == before


async def test_in_telegram_the_button_is_in_the_private_chat_also_where_a_group_asks(office: Office) -> None:
    office.chat = "telegram"
    for place in (ANA.telegram, GROUP):
        before = len(office.telegram.shown(ANA.telegram))
        await office.telegram.say(ANA.telegram, "/nod connections connect hub", place)

        def find(after: int = before) -> list[dict[str, str]]:
            return [b for m in office.telegram.shown(ANA.telegram)[after:] for b in m.buttons]

        [button] = await eventually(find, "the button")
        assert (button["text"], button["url"].partition("/connect/")[0]) == (LABEL, SITE)
    assert not [b for m in office.telegram.shown(GROUP) for b in m.buttons if "url" in b]


async def test_where_the_address_of_nod_is_no_public_one_the_link_stands_in_the_text(
    office: Office,
) -> None:
    office.more = {}
    await office.restart()
    assert f"[{LABEL}](http://127.0.0.1" in await office.command(ANA, "/nod connections connect hub")


@contextlib.asynccontextmanager
async def in_discord(url: str, clock: FakeClock) -> AsyncIterator[FakeDiscord]:
    world: World
    discord = FakeDiscord(lambda: f"http://127.0.0.1:{world.app.web.port}{INTERACTIONS}", clock)
    await discord.start()
    discord.person("101", "Ana")
    values = {
        "NOD_DATABASE_URL": url,
        "NOD_PORT": 0,
        "NOD_PUBLIC_URL": SITE,
        "NOD_MCP_CONFIG": Path("mcp.json"),
        "NOD_SECRET_KEY": KEY,
        "NOD_APPROVERS": "discord:101",
        "DISCORD_BOT_TOKEN": DISCORD_TOKEN,
        "DISCORD_PUBLIC_KEY": discord.public_key,
        "DISCORD_APPLICATION_ID": APP,
        "DISCORD_SERVERS": SERVER,
        "DISCORD_API_URL": discord.url,
    }
    world = World(lambda: Settings(_env_file=None, **values), lambda _: None, clock, make_tables)
    await world.start()
    try:
        yield discord
    finally:
        await world.stop()
        await discord.stop()
    assert discord.refused == []


@pytest.mark.usefixtures("tracker")
async def test_in_discord_the_answer_is_for_that_person_alone_and_has_the_button(
    database_of: Urls, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with in_discord(database_of("nod"), clock) as discord:
        await discord.command("101", "nod", "connections connect tracker", CHANNEL)
        [message] = await eventually(lambda: [m for m in discord.messages if m.only_for], "the answer")
        button = message.buttons["Connect your account at tracker"]
        assert (button["style"], button["url"].partition("/connect/")[0]) == (5, SITE)
        assert message.text.startswith(ONCE)
        assert not [m for m in discord.messages if not m.only_for]
