"""One proposal, seen and decided in Slack and in Telegram: one execution, and everybody sees its end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.app.app import App
from bot.channels.slack.channel import SlackChannel
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.settings import Settings
from bot.testing.steps import note
from bot.testing.world import Says, World, eventually
from tests.contracts.test_slack import ANA as SLACK_ANA
from tests.contracts.test_slack import SlackDriver
from tests.contracts.test_telegram import ANA, EVE, TEAM, FakeSeconds, TelegramDriver
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, FakeSlack
from tests.fakes.telegram_server import TOKEN, FakeTelegram
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

BEN = EVE  # in these tests the second person in Telegram is an approver


class Both:
    def __init__(self, slack: FakeSlack, telegram: FakeTelegram, world: World) -> None:
        self.slack = SlackDriver(slack, world)
        self.telegram = TelegramDriver(telegram, world)
        self.world = world

    async def cards(self) -> tuple[Any, Any]:
        await eventually(lambda: self.slack.cards() and self.telegram.cards(), "a card in each channel")
        return self.slack.cards()[0].handle, self.telegram.cards()[0].handle.message

    async def both_say(self, words: str) -> None:
        await eventually(
            lambda: words in self.slack.cards()[0].words and words in self.telegram.cards()[0].words,
            f"{words!r} on both cards",
        )


@pytest.fixture
async def both(database_of: Urls, clock: FakeClock) -> AsyncIterator[Both]:
    slack, telegram = FakeSlack(), FakeTelegram()
    await slack.start()
    await telegram.start()
    telegram.person(ANA, "Ana")
    telegram.person(BEN, "Ben")
    telegram.group(TEAM)

    def settings() -> Settings:
        values: dict[str, Any] = {
            "NOD_DATABASE_URL": database_of("nod"),
            "NOD_PORT": 0,
            "NOD_APPROVERS": f"telegram:{BEN}, slack:T1/{SLACK_ANA}",
            "NOD_APPROVER_CHATS": f"telegram:{TEAM}, slack:T1/C1",
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": slack.url,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_API_URL": telegram.url,
        }
        return Settings(_env_file=None, **values)

    def add(app: App) -> None:
        seconds = FakeSeconds()
        app.channels["slack"] = SlackChannel(app.settings, app.database, app.clock)
        app.channels["telegram"] = TelegramChannel(
            app.settings, app.database, app.clock, ChatPace(seconds, seconds.sleep)
        )

    world = World(settings, add, clock, make_tables)
    await world.start()
    await slack.until(lambda: slack._socket)
    yield Both(slack, telegram, world)
    await world.stop()
    await telegram.stop()
    await slack.stop()


async def test_raised_in_slack_it_is_approved_in_telegram(both: Both) -> None:
    both.world.script(Says("Shall I?", (note("milk"),)), Says("It is noted."))
    await both.slack.say("note milk")
    _, there = await both.cards()
    await both.telegram.telegram.press(BEN, there, "Approve")
    await both.both_say("Done. Approved by Ben")
    await eventually(lambda: "It is noted." in "\n".join(both.slack.texts()), "the end in the thread")
    assert both.world.notes == ["milk"]


async def test_raised_in_telegram_it_is_approved_in_slack(both: Both) -> None:
    both.world.script(Says("Shall I?", (note("milk"),)), Says("It is noted."))
    await both.telegram.say("note milk")
    here, _ = await both.cards()
    await both.slack.slack.click(here, "Approve", SLACK_ANA)
    await both.both_say("Done. Approved by")
    await eventually(lambda: "It is noted." in "\n".join(both.telegram.texts()), "the end in the group")
    assert both.world.notes == ["milk"]


async def test_pressed_in_both_at_the_same_time_it_runs_once(both: Both) -> None:
    both.world.script(Says("Shall I?", (note("milk"),)), Says("It is noted."))
    await both.telegram.say("note milk")
    here, there = await both.cards()
    await asyncio.gather(
        both.slack.slack.click(here, "Approve", SLACK_ANA),
        both.telegram.telegram.press(BEN, there, "Approve"),
    )
    await both.both_say("Done. Approved by")
    assert both.world.notes == ["milk"]
