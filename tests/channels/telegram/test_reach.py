"""A start while Telegram cannot be reached: Nod continues, and the channel comes up when it can."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from structlog.testing import capture_logs

from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.domain.chat import Address
from bot.errors import ChannelError, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.testing.world import eventually
from tests.channels.telegram.conftest import ANA, FakeTime
from tests.channels.telegram.core import FakeCore
from tests.fakes.telegram_server import FakeTelegram
from tests.kit import FakeClock

HERE = Address("telegram", str(ANA))


class Pauses:
    """Every pause ends immediately, until ``hold``."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.held = False

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await (asyncio.Event().wait() if self.held else asyncio.sleep(0))


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def make(
    make_settings: Callable[..., Settings],
    database: Database,
    clock: FakeClock,
    seconds: FakeTime,
    pauses: Pauses,
) -> AsyncIterator[Callable[..., TelegramChannel]]:
    made: list[TelegramChannel] = []

    def make(**more: str) -> TelegramChannel:
        pace = ChatPace(seconds, seconds.sleep)
        made.append(TelegramChannel(make_settings(**more), database, clock, pace, pauses))
        return made[-1]

    yield make
    for channel in made:
        await channel.stop()


async def test_it_comes_up_when_telegram_does_and_each_fault_is_logged_once(
    make, telegram: FakeTelegram, core: FakeCore, pauses: Pauses
):
    telegram.fail("getMe", 502, "Bad Gateway", 9)
    with capture_logs() as logs:
        await make().start(core.inbox, core)
        await telegram.until(lambda: telegram.called("getUpdates"), "it polls")
        await telegram.say(ANA, "at last")
        await core.took()
    wanted = ["telegram can't be reached, retrying", "telegram connected"]
    assert [line["event"] for line in logs if line["event"] in wanted] == wanted
    assert pauses.asked == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_what_fails_after_the_first_call_is_tried_again_too(
    make, telegram: FakeTelegram, core: FakeCore
):
    telegram.fail("deleteWebhook", 500, "Internal Server Error", 2)
    await make().start(core.inbox, core)
    await telegram.until(lambda: telegram.called("getUpdates"), "it polls")
    await telegram.say(ANA, "at last")
    await core.took()
    assert len(core.messages) == 1


async def test_in_the_meantime_a_post_is_refused_as_by_any_channel_that_is_down(
    make, core: FakeCore, pauses: Pauses
):
    pauses.held = True
    channel = make(TELEGRAM_API_URL="http://127.0.0.1:9")
    await channel.start(core.inbox, core)
    with pytest.raises(ChannelError):
        await channel.post(HERE, "hello")


async def test_a_wrong_token_still_stops_the_start(make, core: FakeCore):
    with pytest.raises(SettingsError, match="TELEGRAM_BOT_TOKEN"):
        await make(TELEGRAM_BOT_TOKEN="1:wrong").start(core.inbox, core)


async def test_a_webhook_that_telegram_refuses_stops_the_start(make, core: FakeCore):
    with pytest.raises(SettingsError, match="NOD_PUBLIC_URL: Telegram refuses http://nod"):
        await make(NOD_PUBLIC_URL="http://nod.example").start(core.inbox, core)


async def test_a_webhook_without_https_is_refused_before_anything_starts(make):
    with pytest.raises(SettingsError, match="NOD_PUBLIC_URL: Telegram takes a webhook over https only"):
        make(NOD_PUBLIC_URL="http://nod.example", TELEGRAM_API_URL="https://api.telegram.org")


async def test_a_name_that_telegram_cannot_resolve_yet_is_tried_again(
    make, telegram: FakeTelegram, core: FakeCore
):
    telegram.fail("setWebhook", 400, "Bad Request: bad webhook: failed to resolve host: Name not known", 2)
    await make(NOD_PUBLIC_URL="https://nod.example").start(core.inbox, core)
    await telegram.until(lambda: telegram.webhook, "the webhook is set")


async def test_a_token_that_proves_wrong_later_is_said_in_one_line(
    make, telegram: FakeTelegram, core: FakeCore, pauses: Pauses
):
    telegram.fail("getMe", 502, "Bad Gateway")
    telegram.fail("getMe", 401, "Unauthorized")
    channel = make()
    with capture_logs() as logs:
        await channel.start(core.inbox, core)
        await eventually(lambda: logs[-1]["log_level"] == "error", "the refusal")
    assert [line["event"] for line in logs][-1] == "TELEGRAM_BOT_TOKEN: Telegram does not know this token"
    assert telegram.called("getUpdates") == []
