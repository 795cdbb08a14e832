"""Schedules on each platform: a run is seen where it was asked for, and none is once its person has left."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.domain.verbs import Verb
from bot.features.schedules import rows as schedules
from bot.features.schedules.schedule import ScheduleState
from bot.testing.steps import cards
from bot.testing.world import Says, eventually
from tests.contracts import test_discord, test_slack, test_telegram
from tests.fakes.discord_server import SERVER

pytestmark = pytest.mark.platform

DAILY = ("schedule_task", {"task": "water the plants", "at": "tomorrow 9:00", "every": "day"})
DAY = timedelta(days=1)


def leaves_slack(driver: test_slack.SlackDriver) -> None:
    driver.slack.records[test_slack.ANA] = {"deleted": True}


def leaves_telegram(driver: test_telegram.TelegramDriver) -> None:
    driver.telegram.left.add((test_telegram.TEAM, test_telegram.ANA))


def leaves_discord(driver: test_discord.DiscordDriver) -> None:
    driver.discord.members[SERVER].remove(test_discord.ANA)


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("driver", "leaves"),
    [("slack", leaves_slack), ("telegram", leaves_telegram), ("discord", leaves_discord)],
    indirect=["driver"],
)
async def test_a_run_is_seen_and_ends_with_its_person(driver: Any, leaves: Callable[[Any], None]) -> None:
    driver.world.script(Says("I would.", (DAILY,)), Says("It is set."), Says("They are watered."))
    await driver.say("every day at 9, water the plants")
    [card] = await cards(driver)
    assert "water the plants" in card.words
    assert "every day at 09:00 (UTC)" in card.words
    await driver.press(card, Verb.APPROVE)
    await eventually(lambda: any("It is set." in each for each in driver.texts()), "the answer")
    await driver.world.restart()
    await driver.world.let_pass(DAY)
    await eventually(lambda: any("They are watered." in each for each in driver.texts()), "the run")
    assert any("Scheduled for Ana: water the plants." in each for each in driver.texts())
    leaves(driver)
    await driver.world.let_pass(DAY)
    await driver.world.let_pass(timedelta(minutes=2))
    [found] = driver.world.app.database.read_now(schedules.list_of_people, None, ended=True)
    assert (found.runs, found.state, found.why) == (1, ScheduleState.ENDED, "Ana is no longer there")
    await eventually(lambda: any("has ended." in each for each in driver.texts()), "the word")
