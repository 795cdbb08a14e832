"""The contract of channels as a test suite, which every channel must pass, over the real core of Nod.

A channel's tests inherit `Contract`, and `PlacesContract` if people have several places in the channel. The
tests act as three people through a `Driver`: Ana, an admin, asks in a conversation; Ben, an approver, and
Eve, a stranger, see it. The steps that tests share are in ``steps.py``. Plugins import all of it from here,
so what is imported ``as`` its own name stays importable.
"""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.testing.driver import Driver
from bot.testing.places_contract import PlacesContract as PlacesContract
from bot.testing.plans_contract import PlansContract
from bot.testing.plans_contract import plan as plan
from bot.testing.plans_contract import planned as planned
from bot.testing.rules_contract import RulesContract as RulesContract
from bot.testing.steps import approved as approved
from bot.testing.steps import approved_elsewhere as approved_elsewhere
from bot.testing.steps import becomes as becomes
from bot.testing.steps import cards as cards
from bot.testing.steps import edited_elsewhere as edited_elsewhere
from bot.testing.steps import hears as hears
from bot.testing.steps import note as note
from bot.testing.steps import proposed as proposed
from bot.testing.steps import refused as refused
from bot.testing.steps import settles as settles
from bot.testing.steps import tried as tried
from bot.testing.steps import waiting as waiting
from bot.testing.world import Says, eventually


class Contract(RulesContract, PlansContract):
    """All tests that every channel must pass. A channel's tests inherit it, and have a fixture ``driver``."""

    async def test_a_message_is_answered(self, driver: Driver) -> None:
        driver.world.script(Says("Good morning, Ana."))
        await driver.say("Good morning")

        await hears(driver, "Good morning, Ana.")

    async def test_a_turn_that_failed_says_what_to_send_and_that_continues_it(self, driver: Driver) -> None:
        driver.world.script(Says("Let me see.", fails=True), Says("There it is."))
        await driver.say("where is it?")
        await hears(driver, "Send “continue” to try again.")

        await driver.say("continue")
        await hears(driver, "There it is.")

    async def test_an_approved_proposal_runs_once_and_everybody_sees_how_it_ended(
        self, driver: Driver
    ) -> None:
        card = await proposed(driver, note("milk"), "It is noted.")
        assert "milk" in card.words
        assert driver.world.notes == []

        await driver.press(card, Verb.APPROVE)
        done = await becomes(driver, 0, "Done. Approved by")
        assert done.verbs == ()
        assert driver.world.notes == ["milk"]
        await hears(driver, "It is noted.")

    async def test_a_result_too_long_for_a_card_reaches_people_whole_as_one_file(
        self, driver: Driver
    ) -> None:
        card = await proposed(driver, ("print_lines", {"count": 1000}), "It is printed.")
        await driver.press(card, Verb.APPROVE)

        done = await becomes(driver, 0, "Done. Approved by")
        assert "All of it is in a file" in done.words
        await hears(driver, "It is printed.")
        (file,) = await eventually(driver.files, "the file")
        assert file.splitlines() == [f"line {n}" for n in range(1000)]

    async def test_a_declined_proposal_does_not_run_and_the_model_is_told(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"), "Then not.")
        await driver.press(card, Verb.DECLINE)

        assert (await becomes(driver, 0, "Declined by")).verbs == ()
        await hears(driver, "Then not.")
        assert driver.world.notes == []
        assert "declined" in "\n".join(driver.world.model.results()).lower()

    async def test_of_two_open_proposals_the_second_is_decided_alone(self, driver: Driver) -> None:
        driver.world.script(Says("Two things.", (note("milk"), note("bread"))))
        await driver.say("note milk and bread")
        first, second = await cards(driver, 2)
        assert "milk" in first.words
        assert "bread" in second.words

        await driver.press(second, Verb.APPROVE)
        await becomes(driver, 1, "Done. Approved by")
        assert driver.world.notes == ["bread"]
        assert Verb.APPROVE in driver.cards()[0].verbs

    async def test_a_group_can_be_approved_as_a_whole(self, driver: Driver) -> None:
        driver.world.script(Says("Two things.", (note("milk"), note("bread"))))
        await driver.say("note milk and bread")
        await cards(driver, 2)
        await eventually(lambda: Verb.APPROVE_ALL in driver.cards()[0].verbs, "the buttons for all")
        first, last = driver.cards()
        assert "milk" in first.words
        assert Verb.APPROVE_ALL not in last.verbs
        await driver.press(first, Verb.APPROVE_ALL)

        await becomes(driver, 0, "Done. Approved by")
        assert (await becomes(driver, 1, "Done. Approved by")).verbs == ()
        assert sorted(driver.world.notes) == ["bread", "milk"]

    async def test_a_double_press_runs_once_and_the_second_is_told(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        await driver.press(card, Verb.APPROVE)
        await driver.press_remembered(card, Verb.APPROVE)

        await becomes(driver, 0, "Done. Approved by")
        told = await eventually(driver.told, "a word about the second press")
        assert "already" in told[-1].lower()
        assert driver.world.notes == ["milk"]

    async def test_a_stranger_is_refused_alone_and_the_proposal_stays_open(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        await driver.press(card, Verb.APPROVE, eve=True)

        assert await eventually(lambda: driver.told(eve=True), "a word to the stranger")
        assert driver.told() == []
        assert driver.world.notes == []
        await approved(driver, ["milk"])

    async def test_a_late_press_changes_nothing_and_says_why(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        await driver.world.let_pass(timedelta(hours=25))
        assert (await becomes(driver, 0, "Expired")).verbs == ()

        await driver.press_remembered(card, Verb.APPROVE)
        told = await eventually(driver.told, "a word about the late press")
        assert "expired" in told[-1].lower()
        assert driver.world.notes == []

    async def test_five_thousand_hostile_characters_are_readable_and_run_as_shown(
        self, driver: Driver
    ) -> None:
        text = ("_*[<&`😀>]~|\\" * 500)[:5000]
        card = await proposed(driver, note(text))

        assert "".join(text.split()) in "".join((await driver.read_all(card)).split())
        await approved(driver, [text])

    async def test_a_card_that_cannot_be_posted_ends_its_proposal_and_the_model_is_told(
        self, driver: Driver
    ) -> None:
        driver.refuse_cards()
        driver.world.script(Says("Should I?", (note("milk"),)), Says("No one could see it."))
        await driver.say("note milk")

        await eventually(lambda: len(driver.world.model.seen) > 1, "a second turn")
        assert "deliver" in driver.world.model.was_told().lower()
        assert driver.world.notes == []

    async def test_a_redraw_that_fails_is_made_up_for_later(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        driver.fail_redraws(3)
        await driver.press(card, Verb.APPROVE)
        await eventually(lambda: driver.world.notes, "the note")

        for _ in range(4):
            await driver.world.let_pass(timedelta(minutes=1))
            await driver.world.app.dispatcher.wait_until_idle()
        assert (await becomes(driver, 0, "Done. Approved by")).verbs == ()
        assert driver.world.notes == ["milk"]

    async def test_a_restart_between_proposal_and_press_loses_nothing(self, driver: Driver) -> None:
        await proposed(driver, note("milk"), "It is noted.")
        await driver.world.restart()
        await approved(driver, ["milk"])
        await hears(driver, "It is noted.")

    async def test_a_resolved_card_offers_nothing(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        await driver.press(card, Verb.DECLINE)
        gone = await becomes(driver, 0, "Declined by")

        with pytest.raises(LookupError):
            await driver.press(gone, Verb.APPROVE)

    async def test_approve_similar_lets_the_next_such_call_run_and_shows_by_whose_grant(
        self, driver: Driver
    ) -> None:
        driver.world.script(
            Says("Should I?", (note("milk"),)), Says("Noted."), Says("Again.", (note("bread"),)), Says("Too.")
        )
        await driver.say("note milk")
        (card,) = await cards(driver)
        read = await driver.approve_similar(card, GrantScope.TOOL, GrantDuration.HOUR)
        assert "note with any arguments" in read
        assert "note with exactly these arguments" in read
        assert (await becomes(driver, 0, "Done. Approved by")).verbs == ()
        await hears(driver, "Noted.")

        await driver.say("note bread")
        await cards(driver, 2)
        await becomes(driver, 1, "grant G-1")
        await eventually(lambda: driver.cards()[1].verbs == (), "its end, after which nothing is offered")
        await hears(driver, "Too.")
        assert driver.world.notes == ["milk", "bread"]

    async def test_a_grant_ends_with_its_time(self, driver: Driver) -> None:
        driver.world.script(
            Says("Should I?", (note("milk"),)), Says("Noted."), Says("Again.", (note("milk"),))
        )
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.approve_similar(card, GrantScope.EXACT, GrantDuration.HOUR)
        await hears(driver, "Noted.")
        await driver.world.let_pass(timedelta(minutes=61))

        await driver.say("note milk again")
        _, second = await cards(driver, 2)
        assert Verb.APPROVE in second.verbs
        assert driver.world.notes == ["milk"]

    async def test_a_wait_that_was_extended_is_not_over_at_its_first_end(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        await driver.world.let_pass(timedelta(hours=20))
        await driver.press(card, Verb.EXTEND)
        await eventually(lambda: driver.cards()[0].words != card.words, "the new end on the card")
        await driver.world.let_pass(timedelta(hours=20))

        await approved(driver, ["milk"])

    async def test_a_late_press_asks_again_with_a_fresh_card(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        await driver.world.let_pass(timedelta(hours=25))
        await becomes(driver, 0, "Expired")
        await driver.press_remembered(card, Verb.APPROVE)

        await eventually(lambda: Verb.APPROVE in driver.cards()[-1].verbs, "buttons again")
        assert driver.world.notes == []
        await approved(driver, ["milk"], -1)

    async def test_a_question_back_is_filled_in_and_sent_and_the_call_continues_with_the_answer(
        self, driver: Driver
    ) -> None:
        driver.world.script(Says("Let me ask.", (("inquire", {}),)), Says("Red it is."))
        asking = asyncio.create_task(driver.say("paint the lamp"))
        (card,) = await cards(driver)
        assert "lamps asks: Which color?" in card.words
        assert set(card.verbs) == {Verb.APPROVE, Verb.DECLINE, Verb.EDIT}

        await driver.fill_in(card, "color", "red")
        answered = await becomes(driver, 0, "Answered by")
        assert "red" in answered.words
        assert answered.verbs == ()
        await hears(driver, "Red it is.")
        assert driver.world.model.results()[-1].splitlines()[-2:] == ["accept: red"]  # and no line before
        await asking

    async def test_a_question_back_that_is_declined_or_pressed_by_a_stranger_gives_no_answer(
        self, driver: Driver
    ) -> None:
        driver.world.script(Says("Let me ask.", (("inquire", {}),)), Says("Then not."))
        asking = asyncio.create_task(driver.say("paint the lamp"))
        (card,) = await cards(driver)
        await refused(driver, card, Verb.DECLINE)
        assert Verb.DECLINE in driver.cards()[0].verbs

        await driver.press(driver.cards()[0], Verb.DECLINE)
        await becomes(driver, 0, "Declined by")
        await hears(driver, "Then not.")
        assert "decline: nothing" in driver.world.model.results()[-1]
        await asking

    async def test_the_agents_question_is_answered_by_a_choice_or_in_words_and_approves_nothing(
        self, driver: Driver
    ) -> None:
        asks = ("ask_person", {"question": "Which color?", "choices": ["deep red", "sky blue"]})
        driver.world.script(Says("Let me ask.", (asks,)), Says("And the door?", (asks,)), Says("So be it."))
        await driver.say("paint the lamp")
        (card,) = await cards(driver)
        assert "Which color?" in card.words
        assert set(card.verbs) == {Verb.FIRST, Verb.SECOND, Verb.ANSWER, Verb.DECLINE}
        await refused(driver, card, Verb.FIRST)
        await driver.world.restart()

        await driver.press(driver.cards()[0], Verb.SECOND)
        answered = await becomes(driver, 0, "Answered by")
        assert answered.verbs == ()
        _, card = await cards(driver, 2)
        assert "ANSWERED by" in driver.world.model.results()[-1]
        assert "“sky blue”" in driver.world.model.results()[-1]
        await driver.write(card, Verb.ANSWER, "Whatever you like.")
        await becomes(driver, 1, "Answered by")
        await hears(driver, "So be it.")
        assert "“Whatever you like.”. An answer approves nothing." in driver.world.model.results()[-1]

    async def test_a_question_about_a_card_is_answered_by_the_agent_and_decides_nothing(
        self, driver: Driver
    ) -> None:
        card = await proposed(driver, note("milk"), "The list has none yet.")
        await driver.write(card, Verb.ASK, "why milk?\nAnd I approve it.")

        await hears(driver, "The list has none yet.")
        assert "about: Note milk" in "\n".join(driver.texts())
        assert "> why milk? And I approve it." in driver.world.model.was_told()
        assert 'Arguments: {"text":"milk"}' in driver.world.model.was_told()
        assert driver.world.notes == []
        driver.world.script(Says("Noted."))
        await approved(driver, ["milk"])

    async def test_a_stranger_cannot_ask_about_a_card(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        await refused(driver, card, Verb.ASK)
        assert "Question from" not in "\n".join(driver.texts())

    async def test_what_runs_is_stopped_from_its_card_and_told_as_stopped(self, driver: Driver) -> None:
        card = await proposed(driver, ("brood", {}), "Then not.")
        await driver.press(card, Verb.APPROVE)
        runs = await becomes(driver, 0, "an egg\nanother egg")
        assert "Running" in runs.words
        assert Verb.STOP in runs.verbs
        await refused(driver, runs, Verb.STOP)
        await driver.press(driver.cards()[0], Verb.STOP)

        stopped = await becomes(driver, 0, "Stopped while it ran")
        assert "stopped it. What it did until then is unknown." in stopped.words
        assert stopped.verbs == (Verb.RETRY,)
        await hears(driver, "Then not.")

    async def test_what_was_done_is_read_again_and_undone_from_its_card(self, driver: Driver) -> None:
        driver.world.notes.append("milk")
        card = await proposed(driver, ("rewrite", {"text": "bread"}), "Rewritten.")
        assert "Can be undone for 30 min" in card.words
        await driver.press(card, Verb.APPROVE)
        done = await becomes(driver, 0, "Checked: first note is bread")
        assert done.verbs == (Verb.UNDO,)
        await refused(driver, done, Verb.UNDO)
        assert driver.world.notes == ["bread"]
        await driver.press(driver.cards()[0], Verb.UNDO)
        # a platform may have limited the rate for a moment
        await driver.world.let_pass(timedelta(seconds=30))

        assert (await becomes(driver, 0, "Undone by")).verbs == ()
        assert driver.world.notes == ["milk"]
        await hears(driver, "Undo pressed by")

    async def test_what_was_tried_is_applied_as_shown(self, driver: Driver) -> None:
        await tried(driver)
        await approved(driver, ["bread"])

    async def test_what_was_tried_is_run_for_real_where_people_say_so(self, driver: Driver) -> None:
        card = await tried(driver)
        await refused(driver, card, Verb.FOR_REAL)
        assert driver.world.notes == []
        await driver.press(driver.cards()[0], Verb.FOR_REAL)
        await becomes(driver, 0, "It ran for real")
        assert driver.world.notes == ["bread", "sent"]

    async def test_all_of_a_batch_is_undone_by_one_press(self, driver: Driver) -> None:
        calls = tuple(("pin", {"text": text}) for text in ("bread", "milk", "tea"))
        driver.world.script(Says("Should I?", calls))
        await driver.say("pin all three")
        (card, *_) = await cards(driver)
        await driver.press(card, Verb.APPROVE_ALL)
        await eventually(lambda: Verb.UNDO_ALL in driver.cards()[0].verbs, "Undo all")
        assert len(driver.world.notes) == 3
        await driver.press(driver.cards()[0], Verb.UNDO_ALL)
        await eventually(lambda: driver.world.notes == [], "that all are undone")
        await eventually(lambda: Verb.UNDO_ALL not in driver.cards()[0].verbs, "the end of Undo all")
        await hears(driver, "for all of a batch")
