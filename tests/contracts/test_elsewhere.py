"""What people do in a chat arrives at one process, and another one works: both on one PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from bot.domain.verbs import Verb
from bot.testing.contract import Contract
from bot.testing.steps import cards, hears, note
from bot.testing.world import Says
from tests.contracts.test_slack import SlackDriver, in_slack
from tests.contracts.test_telegram import TelegramDriver, in_telegram
from tests.kit import FakeClock, Hold
from tests.kit.urls import POSTGRES_URL, schema
from tests.tiers import MORE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not POSTGRES_URL, reason="NOD_TEST_POSTGRES_URL names no PostgreSQL"),
]

Chat = SlackDriver | TelegramDriver


# who works and who receives is the same in each channel: Slack's are for the day
@pytest.fixture(params=[in_slack, pytest.param(in_telegram, marks=MORE)], ids=["slack", "telegram"])
async def driver(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Chat]:
    with schema() as url:
        async with request.param(url, clock, elsewhere=True) as driver:
            yield driver


class TestElsewhere:
    """Of the contract's scenarios, one for each thing that a process may receive for another."""

    test_a_press = Contract.test_an_approved_proposal_runs_once_and_everybody_sees_how_it_ended
    test_an_edit = Contract.test_an_edit_voids_the_votes_and_every_card_says_who_edited
    test_a_stop_of_what_runs = Contract.test_what_runs_is_stopped_from_its_card_and_told_as_stopped
    test_an_answer_to_a_question = (
        Contract.test_a_question_back_is_filled_in_and_sent_and_the_call_continues_with_the_answer
    )

    async def test_a_stop_while_an_answer_is_written_ends_it(self, driver: Chat) -> None:
        hold = Hold()
        driver.world.script(Says("Too late.", hold=hold), Says("Here I am."))
        await driver.say("think")
        await hold.reached.wait()
        await driver.stop()
        await hears(driver, driver.stopped)  # where the answer was to stand
        await driver.say("and now?")
        await hears(driver, "Here I am.")
        assert "Too late." not in "\n".join(driver.texts())

    async def test_a_message_while_an_answer_is_written_joins_it(self, driver: Chat) -> None:
        hold = Hold()
        driver.world.script(Says("Let me see.", (note("milk"),), hold=hold), Says("Both."))
        await driver.say("note milk")
        await hold.reached.wait()
        await driver.say("and bread")
        hold.go.set()
        (card,) = await cards(driver)
        await driver.press(card, Verb.APPROVE)
        await hears(driver, "Both.")
        assert "and bread" in driver.world.model.was_told()

    async def test_what_is_edited_while_an_answer_is_written_begins_no_other_and_changes_nothing(
        self, driver: Chat
    ) -> None:
        hold = Hold()
        driver.world.script(Says("Shall I?", (note("milk"),), hold=hold), Says("Here I am."))
        await driver.say("note milk")
        await hold.reached.wait()
        await driver.edit("note bread")
        hold.go.set()
        (card,) = await cards(driver)
        await driver.edit("note beer")  # and while the card waits
        await driver.say("and now?")
        await hears(driver, "Here I am.")
        (card,) = driver.cards()
        assert "bread" not in driver.world.model.was_told()
        assert "beer" not in driver.world.model.was_told()
        assert len(driver.world.model.seen) == 2
        await driver.press(card, Verb.APPROVE)
        await hears(driver, "Noted.")
        assert driver.world.notes == ["milk"]
