"""Updates by webhook, on a server as the bot has one."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import uvicorn
from starlette.applications import Starlette

from bot.channels.telegram.webhook import WEBHOOK_PATH
from tests.channels.telegram.conftest import ANA
from tests.channels.telegram.core import FakeCore
from tests.fakes.telegram_server import FakeTelegram

HEADER = "X-Telegram-Bot-Api-Secret-Token"


class Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
        self.listening = asyncio.Event()

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets)
        self.listening.set()


@pytest.fixture
async def server() -> AsyncIterator[tuple[Starlette, str]]:
    """An empty app on loopback and its address."""
    app = Starlette()
    running = Server(app)
    task = asyncio.create_task(running.serve())
    await running.listening.wait()
    port = running.servers[0].sockets[0].getsockname()[1]
    yield app, f"http://127.0.0.1:{port}"
    running.should_exit = True
    await task


@pytest.fixture
async def hooked(server, make_channel, core: FakeCore, telegram: FakeTelegram) -> AsyncIterator[str]:
    app, url = server
    telegram.local = True
    channel = make_channel(NOD_PUBLIC_URL=f"{url}/")
    app.router.routes.extend(channel.routes())
    await channel.start(core.inbox, core)
    yield url
    await channel.stop()


async def test_an_update_arrives_and_is_acknowledged(hooked, telegram: FakeTelegram, core: FakeCore):
    update = await telegram.say(ANA, "by webhook")
    await core.took()
    await telegram.until(lambda: (update, 200) in telegram.deliveries)
    assert [m.text for m in core.messages] == ["by webhook"]
    assert telegram.called("getUpdates") == []


async def test_the_same_update_again_is_acknowledged_and_not_taken_in(
    hooked, telegram: FakeTelegram, core: FakeCore
):
    update = await telegram.say(ANA, "once")
    await telegram.until(lambda: (update, 200) in telegram.deliveries)
    sent = {
        "message_id": 5,
        "date": 1,
        "chat": telegram.chats[ANA],
        "from": telegram.people[ANA],
        "text": "once",
    }
    await telegram.deliver({"update_id": update, "message": sent})
    await telegram.until(lambda: telegram.deliveries.count((update, 200)) == 2)
    await telegram.say(ANA, "next")
    await core.took(2)
    assert [m.text for m in core.messages] == ["once", "next"]


@pytest.mark.parametrize("secret", [None, "", "wrong", "é"])
async def test_without_the_secret_nothing_is_read(
    hooked: str, telegram: FakeTelegram, core: FakeCore, secret
):
    headers = {} if secret is None else {HEADER: secret}
    async with (
        aiohttp.ClientSession() as session,
        session.post(hooked + WEBHOOK_PATH, json={"update_id": 1}, headers=headers) as answer,
    ):
        assert answer.status == 403
    assert core.taken == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{", b'{"message": 1}', b'{"update_id": "x", "message": []}']
)
async def test_nonsense_is_refused(hooked: str, telegram: FakeTelegram, body: bytes):
    headers = {HEADER: telegram.webhook["secret_token"]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(hooked + WEBHOOK_PATH, data=body, headers=headers) as answer,
    ):
        assert answer.status == 400


async def test_an_update_that_cannot_be_read_is_acknowledged_and_the_next_one_arrives(
    hooked, telegram: FakeTelegram, core: FakeCore
):
    unreadable = await telegram.say_unreadable(ANA)
    await telegram.until(lambda: (unreadable, 200) in telegram.deliveries)
    await telegram.say(ANA, "next")
    await core.took()
    assert [m.text for m in core.messages] == ["next"]


async def test_what_cannot_be_kept_is_not_acknowledged(hooked: str, telegram: FakeTelegram, database):
    with database.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE event")
    update = await telegram.say(ANA, "keep me")
    await telegram.until(lambda: (update, 503) in telegram.deliveries)


async def test_a_secret_of_ones_own_is_used(make_channel, core: FakeCore, telegram: FakeTelegram):
    channel = make_channel(NOD_PUBLIC_URL="https://nod.example.com", TELEGRAM_WEBHOOK_SECRET="my-own_secret")
    await channel.start(core.inbox, core)
    assert telegram.webhook == {
        "url": f"https://nod.example.com{WEBHOOK_PATH}",
        "secret_token": "my-own_secret",
    }
    await channel.stop()
