"""What people attach in Slack, Telegram and Discord is fetched there, and only there."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from bot.channels.connecting import download
from bot.errors import ChannelError
from bot.testing.world import World, eventually
from tests.contracts.test_discord import ANA as IN_DISCORD
from tests.contracts.test_discord import DiscordDriver
from tests.contracts.test_slack import ANA as IN_SLACK
from tests.contracts.test_slack import SlackDriver
from tests.contracts.test_telegram import ANA as IN_TELEGRAM
from tests.contracts.test_telegram import TEAM, TelegramDriver
from tests.kit import files

pytestmark = pytest.mark.platform


async def hears(world: World, *words: str) -> None:
    await eventually(lambda: world.model.seen and all(w in world.model.was_told() for w in words), str(words))


async def test_in_slack(slack: SlackDriver) -> None:
    sent = [slack.slack.attach("a.csv", b"name,sum"), slack.slack.attach("b.png", files.pdf("Paid"))]
    await slack.slack.mention(IN_SLACK, "look", files=sent)
    await hears(slack.world, "look", "“a.csv”", "| name,sum", "“b.png”, a PDF document", "| Paid")


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        ("scope", "Slack refused (missing_scope)"),
        ("elsewhere", "it is kept elsewhere; download it and attach it"),
        ("gone", "Slack refused (file_not_found)"),
    ],
)
async def test_what_slack_does_not_give_is_said(slack: SlackDriver, lost: str, why: str) -> None:
    file = slack.slack.attach("a.csv", b"name,sum")
    if lost == "scope":
        slack.slack.scopes = slack.slack.scopes.replace("files:read,", "")
    elif lost == "gone":
        slack.slack.attached.clear()
    else:
        slack.slack.moved[file["id"]] = "http://localhost:1/steals-the-token"
    await slack.slack.mention(IN_SLACK, "look", files=[file])
    await hears(slack.world, f"It can't be read: {why}")
    await eventually(lambda: f"I can't read a.csv: {why}" in "\n".join(slack.texts()), "a word on it")


async def test_in_telegram(telegram: TelegramDriver) -> None:
    document = telegram.telegram.attach("a.csv", b"name,sum")
    await telegram.telegram.say(IN_TELEGRAM, None, caption="look", document=document)
    await hears(telegram.world, "look", "“a.csv”", "| name,sum")


async def test_what_came_before_the_mention_in_slack(slack: SlackDriver) -> None:
    bill = slack.slack.attach("bill.pdf", files.pdf("Paid in May"))
    root = await slack.slack.say("U8", "the bill", channel="C1", files=[bill])
    await slack.slack.mention(IN_SLACK, "what does it say?", thread=root)
    await hears(slack.world, "> (attached: bill.pdf)", "“bill.pdf”, a PDF document", "| Paid in May")


async def test_what_came_before_the_mention_in_telegram(telegram: TelegramDriver) -> None:
    telegram.telegram.privacy = False
    document = telegram.telegram.attach("a.csv", b"name,sum")
    await telegram.telegram.say(IN_TELEGRAM, None, TEAM, caption="the list", document=document)
    await telegram.say("what does it say?")
    await hears(telegram.world, "> (attached: a.csv)", "“a.csv”", "| name,sum")


async def test_in_discord(discord: DiscordDriver) -> None:
    sent = {"a.csv": b"name,sum", "b.txt": b"second"}
    await discord.discord.command(IN_DISCORD, "nod", "ask look", files=sent)
    await hears(discord.world, "look", "“a.csv”", "| name,sum", "| second")
    assert any("`a.csv`" in text for text in discord.texts())


@pytest.fixture
async def server() -> AsyncIterator[str]:
    async def serve(request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/round":
                raise web.HTTPFound("/round")
            case "/there":
                raise web.HTTPFound("/file")
            case "/away":
                raise web.HTTPFound("http://127.0.0.2/file")
            case "/file":
                return web.Response(body=b"here")
            case "/endless":
                answer = web.StreamResponse()
                await answer.prepare(request)
                while True:
                    await answer.write(bytes(100_000))
            case "/silent":
                await asyncio.sleep(3600)
        raise web.HTTPNotFound

    app = web.Application()
    app.router.add_get("/{path}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_a_download_is_bounded_and_stays_with_its_platform(server: str) -> None:
    assert await download(f"{server}/there", 10, {server}) == b"here"
    assert len(await download(f"{server}/endless", 1_000_000, {server})) == 1_000_001
    for path, why in (
        ("round", "redirects too often"),
        ("away", "is kept elsewhere"),
        ("missing", "it was deleted, or its link has expired"),
    ):
        with pytest.raises(ChannelError, match=why):
            await download(f"{server}/{path}", 10, {server})
    for address in (
        "file:///etc/passwd",
        "/etc/passwd",
        "http://127.0.0.1:1/",
        f"{server.replace('http', 'ftp')}/x",
    ):
        with pytest.raises(ChannelError, match="is kept elsewhere"):
            await download(address, 10, {server})
