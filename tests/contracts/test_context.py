"""What led to a card, from its button: to the one who pressed alone, and only to who may decide it."""

from typing import Any

import pytest

from bot.approvals.lookup.context import CONTEXT_NOT_YOURS_TEXT
from bot.domain.verbs import CONTEXT_LABEL
from bot.testing.driver import SeenCard
from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts.test_discord import BEN as BEN_ON_DISCORD
from tests.contracts.test_discord import EVE as EVE_ON_DISCORD
from tests.contracts.test_discord import DiscordDriver
from tests.contracts.test_slack import BEN, EVE, SlackDriver
from tests.contracts.test_telegram import BEN as BEN_THERE
from tests.contracts.test_telegram import EVE as EVE_THERE
from tests.contracts.test_telegram import TEAM, TelegramDriver
from tests.fakes.slack_state import Modal

pytestmark = pytest.mark.platform


async def asked(driver: Any, *, rows: int = 1) -> SeenCard:
    driver.world.script(Says("I note what was said.", tuple(note(f"milk {n}") for n in range(rows))))
    await driver.say("note the milk")
    await eventually(driver.cards, "a card")
    return driver.cards()[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("rows", [1, 3], ids=["a card", "a batch"])
async def test_in_slack_it_is_a_window_above_everything_it_does(slack: SlackDriver, rows: int) -> None:
    card = await asked(slack, rows=rows)

    async def opened(user: str) -> Modal:
        before = len(slack.slack.modals)
        await slack.slack.click(card.handle, "View all", user)
        window: Modal = (await eventually(lambda: slack.slack.modals[before:], "a window"))[0]
        [led] = [e for b in window.view["blocks"] if b["type"] == "actions" for e in b["elements"]]
        assert led["text"]["text"] == CONTEXT_LABEL
        await slack.slack.act(user, led)
        return window

    window = await opened(BEN)
    await eventually(lambda: len(slack.slack.modals) == 2, "what led to it")
    assert "Ana: note the milk" in slack.slack.modals[-1].words
    assert "The agent: I note what was said." in slack.slack.modals[-1].words
    assert "submit" not in slack.slack.modals[-1].view
    window.open = slack.slack.modals[-1].open = False
    await opened(EVE)
    await eventually(
        lambda: CONTEXT_NOT_YOURS_TEXT in "".join(slack.told(eve=True)), "that it is not for her"
    )


@pytest.mark.parametrize("rows", [1, 3], ids=["a card", "a batch"])
async def test_in_telegram_it_is_told_in_the_private_chat(telegram: TelegramDriver, rows: int) -> None:
    card = await asked(telegram, rows=rows)
    message, fake = card.handle.message, telegram.telegram
    if more := message.more:
        await fake.press_data(BEN_THERE, message, more)
        menu = await eventually(lambda: fake.menu(BEN_THERE, TEAM), "all its buttons")
    await fake.press(BEN_THERE, menu if more else message, CONTEXT_LABEL)
    told = await fake.see(BEN_THERE, "note the milk")
    assert "The agent: I note what was said." in told.text
    assert not fake.shown(TEAM, "The agent: I note")
    await fake.press(EVE_THERE, message, CONTEXT_LABEL)
    await eventually(lambda: CONTEXT_NOT_YOURS_TEXT in telegram.told(eve=True), "that it is not for her")


@pytest.mark.parametrize("rows", [1, 3], ids=["a card", "a batch"])
async def test_in_discord_it_is_shown_to_the_one_who_pressed(discord: DiscordDriver, rows: int) -> None:
    message = (await asked(discord, rows=rows)).handle.message
    await discord.discord.press(BEN_ON_DISCORD, message, CONTEXT_LABEL)
    [told] = await eventually(lambda: [m for m in discord.discord.messages if m.only_for], "what led to it")
    assert told.only_for == BEN_ON_DISCORD
    assert "Ana: note the milk" in told.text
    await discord.discord.press(EVE_ON_DISCORD, message, CONTEXT_LABEL)
    await eventually(lambda: CONTEXT_NOT_YOURS_TEXT in discord.told(eve=True), "that it is not for her")
