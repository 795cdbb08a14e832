"""The channel against the loopback Bot API, with a hand-written core behind the seam."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.settings import Settings
from bot.store.database import Database
from tests.channels.telegram.core import FakeCore
from tests.fakes.telegram_server import TOKEN, FakeTelegram
from tests.kit import FakeClock

ANA = 101
ADMIN = 7
APPROVER = 8


class FakeTime:
    """Seconds that pass only while someone sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Processes:
    """What one of them says, all others are told, unless it is lost; ``holds`` is the one that polls."""

    def __init__(self) -> None:
        self.members: list[Process] = []
        self.holds: Process | None = None
        self.deaf = False


class Process:
    """Implements `Peers`."""

    def __init__(self, all_: Processes) -> None:
        self._all = all_
        self.told: dict[str, Callable[[Any], None]] = {}
        all_.members.append(self)

    def on(self, kind: str, handler: Callable[[Any], None]) -> None:
        self.told[kind] = handler

    def broadcast(self, kind: str, body: Any) -> None:
        for member in self._all.members:
            if member is not self and not self._all.deaf:
                member.told[kind](body)

    def on_arrival(self, handler: Callable[[], None]) -> None:
        raise NotImplementedError

    async def lease(self, name: str) -> bool:
        return self._all.holds is self


@pytest.fixture
async def telegram(seconds: FakeTime) -> AsyncIterator[FakeTelegram]:
    fake = FakeTelegram()
    fake.now = seconds
    await fake.start()
    fake.person(ANA, "Ana")
    fake.person(ADMIN, "Ada")
    fake.person(APPROVER, "Abe")
    yield fake
    await fake.stop()


@pytest.fixture
def seconds() -> FakeTime:
    return FakeTime()


@pytest.fixture
def core(database: Database, clock: FakeClock) -> FakeCore:
    return FakeCore(database, clock)


@pytest.fixture
def make_settings(telegram: FakeTelegram) -> Callable[..., Settings]:
    def make(**more: Any) -> Settings:
        values: dict[str, Any] = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_API_URL": telegram.url,
            "TELEGRAM_ALLOWED_USERS": str(ANA),
            "NOD_ADMINS": f"telegram:{ADMIN}",
            "NOD_APPROVERS": f"telegram:{APPROVER},telegram:{ADMIN}",
        }
        return Settings(_env_file=None, **(values | more))

    return make


@pytest.fixture
def make_channel(
    make_settings: Callable[..., Settings], database: Database, clock: FakeClock, seconds: FakeTime
) -> Callable[..., TelegramChannel]:
    def make(**more: Any) -> TelegramChannel:
        pace = ChatPace(seconds, seconds.sleep)
        return TelegramChannel(make_settings(**more), database, clock, pace)

    return make


@pytest.fixture
async def channel(
    make_channel: Callable[..., TelegramChannel], core: FakeCore
) -> AsyncIterator[TelegramChannel]:
    """Running, by long polling."""
    running = make_channel()
    await running.start(core.inbox, core)
    yield running
    await running.stop()
