"""Nod on each platform, over the fakes."""

from collections.abc import AsyncIterator

import pytest

from tests.contracts.test_discord import DiscordDriver, in_discord
from tests.contracts.test_slack import SlackDriver, in_slack
from tests.contracts.test_telegram import TelegramDriver, in_telegram
from tests.kit import FakeClock
from tests.kit.urls import Urls


@pytest.fixture
async def slack(database_of: Urls, clock: FakeClock) -> AsyncIterator[SlackDriver]:
    async with in_slack(database_of("nod"), clock) as driver:
        yield driver


@pytest.fixture
async def telegram(database_of: Urls, clock: FakeClock) -> AsyncIterator[TelegramDriver]:
    async with in_telegram(database_of("nod"), clock) as driver:
        yield driver


@pytest.fixture
async def discord(database_of: Urls, clock: FakeClock) -> AsyncIterator[DiscordDriver]:
    async with in_discord(database_of("nod"), clock) as driver:
        yield driver
