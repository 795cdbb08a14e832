"""A private channel that is shared with another company: its id changes, its rules and open cards stay."""

from collections.abc import AsyncIterator

import pytest

from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts.test_slack import SlackDriver, in_slack
from tests.fakes.slack_server import FakeSlack
from tests.fakes.slack_state import Channel, Posted
from tests.kit import FakeClock
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

OLD, NEW = "G5", "C9"


@pytest.fixture
async def driver(database_of: Urls, clock: FakeClock) -> AsyncIterator[SlackDriver]:
    slack = FakeSlack()
    slack.channels[OLD] = Channel("board", private=True)
    async with in_slack(database_of("nod"), clock, slack=slack, NOD_ADMINS="slack:T1/U7") as made:
        yield made


async def find_card(driver: SlackDriver, channel: str, text: str) -> Posted:
    def posted() -> list[Posted]:
        return [each for each in driver.slack.cards(channel) if text in each.words]

    return (await eventually(posted, "the card"))[0]  # type: ignore[no-any-return]


async def test_an_open_card_is_decided_there_and_a_rule_forbids_there_after_a_restart(
    driver: SlackDriver,
) -> None:
    driver.world.script(Says("Shall I?", (note("milk"),)), Says("It is noted."))
    await driver.slack.mention("U7", "note milk", channel=OLD)
    card = await find_card(driver, OLD, "milk")
    await driver.slack.share(OLD, NEW)
    await driver.slack.click(card, "Approve")
    await eventually(lambda: driver.world.notes == ["milk"], "the note")
    await eventually(lambda: "Approved by" in card.words, "the end on the card")
    assert card.channel == NEW

    await driver.world.restart()
    said = await driver.slack.slash(
        "U7", "/approvals", f"policy forbid for note in slack:T1/{OLD}", channel=NEW
    )
    assert "Set" in said
    driver.world.script(Says("Shall I?", (note("wine"),)), Says("It is forbidden."))
    await driver.slack.mention("U7", "note wine", channel=NEW)
    await eventually(lambda: "It is forbidden." in str(driver.slack.in_channel(NEW)), "the answer")
    assert not [each for each in driver.slack.cards(NEW) if "wine" in each.words]
    assert driver.world.notes == ["milk"]
