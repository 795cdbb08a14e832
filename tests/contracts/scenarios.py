"""What every channel must get right, whatever it looks like; driven as people would, over the real core."""

from datetime import timedelta

import pytest

from bot.domain.cards import Action
from tests.contracts.driver import Driver, Seen
from tests.contracts.world import Says, eventually


def note(text: str) -> tuple[str, dict[str, str]]:
    return ("note", {"text": text})


async def cards(driver: Driver, count: int = 1) -> list[Seen]:
    """Wait for so many cards."""
    await eventually(lambda: len(driver.cards()) >= count, f"{count} cards")
    return list(driver.cards())


async def becomes(driver: Driver, position: int, words: str) -> Seen:
    """Wait until a card says so."""
    await eventually(lambda: words in driver.cards()[position].words, f"{words!r} on card {position}")
    return driver.cards()[position]


async def hears(driver: Driver, words: str) -> None:
    """Wait until Nod wrote so in the conversation."""
    await eventually(lambda: words in "\n".join(driver.texts()), f"{words!r} in the conversation")


class Contract:
    """Inherit it in a channel's tests and give it a ``driver`` fixture."""

    async def test_a_message_is_answered(self, driver: Driver) -> None:
        driver.world.script(Says("Good morning, Ana."))
        await driver.say("Good morning")

        await hears(driver, "Good morning, Ana.")

    async def test_an_approved_proposal_runs_once_and_everybody_sees_how_it_ended(
        self, driver: Driver
    ) -> None:
        driver.world.script(Says("I will note it.", (note("milk"),)), Says("It is noted."))
        await driver.say("note milk")
        (card,) = await cards(driver)
        assert "milk" in card.words
        assert driver.world.notes == []

        await driver.press(card, Action.APPROVE)
        done = await becomes(driver, 0, "Done. Approved by")
        assert done.actions == ()
        assert driver.world.notes == ["milk"]
        await hears(driver, "It is noted.")

    async def test_a_declined_proposal_does_not_run_and_the_model_hears_it(self, driver: Driver) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)), Says("Then not."))
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.press(card, Action.DECLINE)

        assert (await becomes(driver, 0, "Declined by")).actions == ()
        await hears(driver, "Then not.")
        assert driver.world.notes == []
        assert "declined" in "\n".join(driver.world.model.results()).lower()

    async def test_of_two_open_proposals_the_second_is_decided_alone(self, driver: Driver) -> None:
        driver.world.script(Says("Two things.", (note("milk"), note("bread"))))
        await driver.say("note milk and bread")
        first, second = await cards(driver, 2)
        assert "milk" in first.words
        assert "bread" in second.words

        await driver.press(second, Action.APPROVE)
        await becomes(driver, 1, "Done. Approved by")
        assert driver.world.notes == ["bread"]
        assert Action.APPROVE in driver.cards()[0].actions

    async def test_a_group_can_be_approved_as_a_whole(self, driver: Driver) -> None:
        driver.world.script(Says("Two things.", (note("milk"), note("bread"))))
        await driver.say("note milk and bread")
        _, last = await cards(driver, 2)
        await driver.press(last, Action.APPROVE_ALL)

        await becomes(driver, 0, "Done. Approved by")
        assert (await becomes(driver, 1, "Done. Approved by")).actions == ()
        assert sorted(driver.world.notes) == ["bread", "milk"]

    async def test_a_double_press_runs_once_and_the_second_is_told(self, driver: Driver) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)))
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.press(card, Action.APPROVE)
        await driver.press_remembered(card, Action.APPROVE)

        await becomes(driver, 0, "Done. Approved by")
        told = await eventually(driver.told, "a word about the second press")
        assert "already" in told[-1].lower()
        assert driver.world.notes == ["milk"]

    async def test_a_stranger_is_refused_alone_and_the_proposal_stays_open(self, driver: Driver) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)))
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.press(card, Action.APPROVE, eve=True)

        assert await eventually(lambda: driver.told(eve=True), "a word to the stranger")
        assert driver.told() == []
        assert driver.world.notes == []
        await driver.press(driver.cards()[0], Action.APPROVE)
        await becomes(driver, 0, "Done. Approved by")
        assert driver.world.notes == ["milk"]

    async def test_a_late_press_changes_nothing_and_says_why(self, driver: Driver) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)))
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.world.let_pass(timedelta(hours=25))
        assert (await becomes(driver, 0, "Expired")).actions == ()

        await driver.press_remembered(card, Action.APPROVE)
        told = await eventually(driver.told, "a word about the late press")
        assert "expired" in told[-1].lower()
        assert driver.world.notes == []

    async def test_five_thousand_hostile_characters_are_readable_and_run_as_shown(
        self, driver: Driver
    ) -> None:
        text = ("_*[<&`😀>]~|\\" * 500)[:5000]
        driver.world.script(Says("Long one.", (note(text),)))
        await driver.say("note this")
        (card,) = await cards(driver)

        assert "".join(text.split()) in "".join((await driver.read_all(card)).split())
        await driver.press(card, Action.APPROVE)
        await becomes(driver, 0, "Done. Approved by")
        assert driver.world.notes == [text]

    async def test_a_card_that_cannot_be_posted_ends_its_proposal_and_the_model_hears_it(
        self, driver: Driver
    ) -> None:
        driver.refuse_cards()
        driver.world.script(Says("Shall I?", (note("milk"),)), Says("Nobody could see it."))
        await driver.say("note milk")

        await eventually(lambda: len(driver.world.model.seen) > 1, "a second turn")
        assert "deliver" in driver.world.model.was_told().lower()
        assert driver.world.notes == []

    async def test_a_redraw_that_fails_is_made_up_for_later(self, driver: Driver) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)))
        await driver.say("note milk")
        (card,) = await cards(driver)
        driver.fail_redraws(3)
        await driver.press(card, Action.APPROVE)
        await eventually(lambda: driver.world.notes, "the note")

        for _ in range(4):
            await driver.world.let_pass(timedelta(minutes=1))
        assert (await becomes(driver, 0, "Done. Approved by")).actions == ()
        assert driver.world.notes == ["milk"]

    async def test_a_restart_between_proposal_and_press_loses_nothing(self, driver: Driver) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)), Says("It is noted."))
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.world.restart()
        await driver.press(card, Action.APPROVE)

        await becomes(driver, 0, "Done. Approved by")
        assert driver.world.notes == ["milk"]
        await hears(driver, "It is noted.")

    async def test_a_resolved_card_offers_nothing(self, driver: Driver) -> None:
        driver.world.script(Says("Shall I?", (note("milk"),)))
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.press(card, Action.DECLINE)
        gone = await becomes(driver, 0, "Declined by")

        with pytest.raises(LookupError):
            await driver.press(gone, Action.APPROVE)
