"""What people open of a card is noted in each chat, where insights go by people."""

from collections.abc import AsyncIterator

import pytest
from sqlmodel import Session, select

from bot.features.insights.reading_notes import CardPart
from bot.features.insights.tables import OpenedCardRow
from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts.test_discord import DiscordDriver, in_discord
from tests.contracts.test_slack import SlackDriver, in_slack
from tests.contracts.test_telegram import TelegramDriver, in_telegram
from tests.kit import FakeClock
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

Chat = SlackDriver | TelegramDriver | DiscordDriver


@pytest.fixture(params=[in_slack, in_telegram, in_discord], ids=["slack", "telegram", "discord"])
async def driver(
    request: pytest.FixtureRequest, database_of: Urls, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Chat]:
    monkeypatch.setenv("NOD_INSIGHTS", "people")
    async with request.param(database_of("nod"), clock) as driver:
        yield driver


async def test_view_all_is_noted_for_the_one_who_opened_it(driver: Chat) -> None:
    driver.world.script(Says("Shall I?", (note("milk and honey " * 400),)))
    await driver.say("note it")
    await eventually(driver.cards, "the card")
    assert list_opened(driver) == []
    assert "milk and honey" in await driver.read_all(driver.cards()[0])
    await eventually(lambda: list_opened(driver), "the note of it")
    [(account, part)] = list_opened(driver)
    [channel] = driver.world.app.channels.keys() - {"http"}
    assert (account.partition(":")[0], part) == (channel, CardPart.ALL)


def list_opened(driver: Chat) -> list[tuple[str, str]]:
    def read(session: Session) -> list[tuple[str, str]]:
        return [(row.account, row.part) for row in session.exec(select(OpenedCardRow))]

    return driver.world.app.database.read_now(read)
