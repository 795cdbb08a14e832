"""A flood in each chat: one table in private, whose rows open their cards; and a kind that someone mutes."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from bot.testing.driver import SeenCard
from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts.test_discord import BEN as IN_DISCORD
from tests.contracts.test_discord import DiscordDriver, in_discord
from tests.contracts.test_slack import BEN as IN_SLACK
from tests.contracts.test_slack import SlackDriver, in_slack
from tests.contracts.test_telegram import BEN as IN_TELEGRAM
from tests.contracts.test_telegram import TelegramDriver, in_telegram
from tests.kit import FakeClock
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

Chat = SlackDriver | TelegramDriver | DiscordDriver
HALF_HOUR = timedelta(minutes=30)
HOSTILE = "<@U1> <!here> **all** https://evil.test"


@pytest.fixture(params=[in_slack, in_telegram, in_discord], ids=["slack", "telegram", "discord"])
async def driver(request: pytest.FixtureRequest, database_of: Urls, clock: FakeClock) -> AsyncIterator[Chat]:
    async with request.param(database_of("nod"), clock) as driver:
        yield driver


async def set_rules(driver: Chat, *rules: str) -> None:
    for words in rules:
        answer = await driver.command(f"/approvals {words}")
        assert answer.startswith("Set:"), answer


async def flood(driver: Chat, many: int = 4) -> list[SeenCard]:
    """Ana has so many things noted, each in a message of its own."""
    for number in range(many):
        driver.world.script(Says("Shall I?", (note(f"{number} {HOSTILE}"),)))
        await driver.say(f"note {number}")
        await eventually(lambda number=number: len(driver.cards()) > number, "the card")
        await driver.world.app.dispatcher.wait_until_idle()
    return list(driver.cards())


def list_in_private(driver: Chat) -> list[Any]:
    """The messages in Ben's private chat with Nod."""
    if isinstance(driver, SlackDriver):
        return list(driver.slack.in_channel(driver.slack.dm(IN_SLACK)))
    if isinstance(driver, TelegramDriver):
        return list(driver.telegram.shown(IN_TELEGRAM))
    return list(driver.discord.seen(driver.discord.dm(IN_DISCORD)))


def read_words(message: Any) -> str:
    return str(message.words if hasattr(message, "words") else message.text)


async def open_first(driver: Chat, table: Any) -> None:
    """Ben presses the button of the first row."""
    if isinstance(driver, SlackDriver):
        accessory = next(block["accessory"] for block in table.blocks if "accessory" in block)
        await driver.slack.press(table, accessory, IN_SLACK)
    elif isinstance(driver, TelegramDriver):
        await driver.telegram.press(IN_TELEGRAM, table, "Open 1")
    else:
        await driver.discord.press(IN_DISCORD, table, "Open 1")


async def test_a_flood_comes_in_one_table_in_private_and_each_row_opens_its_card(driver: Chat) -> None:
    if isinstance(driver, TelegramDriver):
        await driver.telegram.say(IN_TELEGRAM, "hello")
    await set_rules(driver, f"approvers {driver.ben} for note", f"attention 1 an hour for {driver.ben}")
    cards = await flood(driver)
    assert ["will be told at" in each.words for each in cards] == [False, False, True, True]
    await driver.world.let_pass(HALF_HOUR)
    await driver.world.app.core.reminders.remind(driver.world.clock())

    def find_table() -> list[Any]:
        return [each for each in list_in_private(driver) if "2 cards waited for you" in read_words(each)]

    [table] = await eventually(find_table, "the table")
    assert ":T1/" not in read_words(table)
    await open_first(driver, table)
    await driver.world.app.dispatcher.wait_until_idle()
    await driver.world.app.core.reminders.remind(driver.world.clock())
    await eventually(
        lambda: any("Note 2" in read_words(each) for each in list_in_private(driver)), "the card"
    )
