"""The link to connect is a button that opens a page, for that person alone, in each chat."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from bot.app.app import App
from bot.app.assembly import build
from bot.channels.discord.places import INTERACTIONS
from bot.settings import Settings
from bot.testing.world import Says, ScriptedModel, eventually
from tests.fakes.discord_server import APP, CHANNEL, SERVER, FakeDiscord, Message
from tests.fakes.discord_server import TOKEN as DISCORD_TOKEN
from tests.features.connections.conftest import KEY, Browser
from tests.features.connections.office import ANA, GROUP, Office
from tests.features.connections.tracker import Tracker
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

SITE = "https://nod.example.com"
ANA_THERE, BEN_THERE = "101", "102"
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


@pytest.mark.parametrize("chat", ["slack", "telegram"])
async def test_the_agent_s_link_is_such_a_button_in_that_person_s_private_chat(
    office: Office, chat: str
) -> None:
    office.chat = chat
    wants = Says("You have none there.", (("connect", {"server": "hub"}),))
    await office.say(ANA, "what is mine at the hub?", wants, Says("I have sent you a link."))
    mine = office.slack.dm(ANA.slack)

    def find() -> list[str]:
        if chat == "telegram":
            return [b["url"] for m in office.telegram.shown(ANA.telegram) for b in m.buttons if "url" in b]
        blocks = [block for m in office.slack.in_channel(mine) for block in m.blocks]
        return [e["url"] for b in blocks if b["type"] == "actions" for e in b["elements"] if "url" in e]

    [url] = await eventually(find, "the button")
    assert url.startswith(f"{SITE}/connect/")
    everywhere = str([m.blocks for m in office.slack.in_channel("C1")]) + str(office.telegram.shown(GROUP))
    assert "/connect/" not in everywhere


async def test_where_the_address_of_nod_is_no_public_one_the_link_stands_in_the_text(
    office: Office,
) -> None:
    office.more = {}
    await office.restart()
    assert f"[{LABEL}](http://127.0.0.1" in await office.command(ANA, "/nod connections connect hub")


@contextlib.asynccontextmanager
async def in_discord(
    url: str, clock: FakeClock, model: ScriptedModel, **more: str
) -> AsyncIterator[FakeDiscord]:
    app: App
    discord = FakeDiscord(lambda: f"http://127.0.0.1:{app.web.port}{INTERACTIONS}", clock)
    await discord.start()
    for who, name in ((ANA_THERE, "Ana"), (BEN_THERE, "Ben")):
        discord.person(who, name)
    values = {
        "NOD_DATABASE_URL": url,
        "NOD_PORT": 0,
        "NOD_MCP_CONFIG": Path("mcp.json"),
        "NOD_SECRET_KEY": KEY,
        "NOD_APPROVERS": f"discord:{BEN_THERE}",
        "DISCORD_BOT_TOKEN": DISCORD_TOKEN,
        "DISCORD_PUBLIC_KEY": discord.public_key,
        "DISCORD_APPLICATION_ID": APP,
        "DISCORD_SERVERS": SERVER,
        "DISCORD_API_URL": discord.url,
        **more,
    }
    app = build(Settings(_env_file=None, **values), model=model, clock=clock)
    try:
        async with app.running(ticking=False):
            yield discord
    finally:
        await discord.stop()
    assert discord.refused == []


async def answer_to(discord: FakeDiscord, words: str) -> Message:
    """What Ana alone is answered to a command."""
    before = len(discord.messages)
    await discord.command(ANA_THERE, "nod", words, CHANNEL)

    def find() -> list[Message]:
        return [m for m in discord.messages[before:] if m.only_for == ANA_THERE]

    found = await eventually(find, "the answer")
    return Message(**vars(found[0]))


@pytest.mark.usefixtures("tracker")
async def test_in_discord_the_answer_is_for_that_person_alone_and_has_the_button(
    database_of: Urls, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_tables(url := database_of("nod"))
    async with in_discord(url, clock, ScriptedModel(), NOD_PUBLIC_URL=SITE) as discord:
        message = await answer_to(discord, "connections connect tracker")
        button = message.buttons["Connect your account at tracker"]
        assert (button["style"], button["url"].partition("/connect/")[0]) == (5, SITE)
        assert message.text.startswith(ONCE)
        assert not [m for m in discord.messages if not m.only_for]


async def test_in_discord_a_person_connects_by_commands_and_their_card_names_the_account(
    tracker: Tracker, database_of: Urls, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_tables(url := database_of("nod"))
    model = ScriptedModel()
    async with in_discord(url, clock, model) as discord:
        said = (await answer_to(discord, "connections connect tracker")).text
        link = said.partition("(")[2].partition(")")[0]
        async with httpx.AsyncClient(timeout=20) as client:
            page = await Browser(link.partition("/connect/")[0], client).sign_in(link)
        assert "Send this number in Discord" in page.text
        digits = page.text.split('class="digits"><strong>')[1][:6]
        done = await answer_to(discord, f"connections confirm {digits}")
        assert "Connected: As Ana at tracker (octocat)." in done.text
        closing = ("tracker_close_issue", {"number": 1, "approval_reason": "done"})
        model.answers.append(Says("Shall I?", (closing,)))
        await discord.command(ANA_THERE, "nod", "ask close 1", CHANNEL)

        def find() -> list[Message]:
            return [m for m in discord.seen(CHANNEL) if "Approve" in m.buttons]

        [card] = await eventually(find, "the card")
        assert "As Ana at tracker (octocat)" in card.text
        ended = await answer_to(discord, "connections end everywhere")
        assert ended.text == "Disconnected: tracker (octocat)."
