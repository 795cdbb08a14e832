"""What is remembered, in Slack and in Telegram: the card, the list, and after a restart."""

import pytest

from bot.domain.verbs import Verb
from bot.testing.world import Says, eventually
from tests.contracts.test_slack import SlackDriver
from tests.contracts.test_telegram import TelegramDriver

pytestmark = pytest.mark.platform

DESK = "The desk is at the window."
ASKED = Says("Shall I?", (("remember", {"fact": DESK, "about": "person", "until": "2026-12-24"}),))


async def test_in_slack_a_card_says_it_and_it_is_listed(slack: SlackDriver) -> None:
    await _remembered(slack)


async def test_in_telegram_a_card_says_it_and_it_is_listed(telegram: TelegramDriver) -> None:
    await _remembered(telegram)


async def _remembered(driver: SlackDriver | TelegramDriver) -> None:
    driver.world.script(ASKED)
    await driver.say("remember where my desk is")
    await eventually(driver.cards, "a card")
    words = driver.cards()[0].words
    assert "Remember for the person who asked" in words
    assert words.count(DESK) == 1
    assert "2026-12-24" in words
    assert "can't undo" not in words
    await driver.press(driver.cards()[0], Verb.APPROVE)
    told = f"Remembered for the person who asked: “{DESK}”"
    await eventually(lambda: told in driver.cards()[0].words, "the end")
    await driver.world.app.dispatcher.wait_until_idle()
    said = await driver.command("/nod memory")
    assert f"{DESK} (until 24 Dec 2026)" in said
