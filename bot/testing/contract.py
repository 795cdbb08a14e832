"""The contract of channels as a test suite, which every channel must pass, over the real core of Nod.

A channel's tests inherit `Contract`, and `PlacesContract` if people have several places in the channel. The
tests act as three people through a `Driver`: Ana, an admin, asks in a conversation; Ben, an approver, and
Eve, a stranger, see it. In the functions below, ``position`` counts the cards of the conversation from 0.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from bot.cli.doctor import check
from bot.domain.chat import Answer, Press
from bot.domain.doctor_findings import Health
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store import proposals
from bot.testing.driver import Driver, PlacedDriver, SeenCard
from bot.testing.world import Says, eventually


def note(text: str) -> tuple[str, dict[str, str]]:
    """Return a call of the tool `note` (`notebook.py`), for the scripted model."""
    return ("note", {"text": text})


async def cards(driver: Driver, count: int = 1) -> list[SeenCard]:
    """Wait until the conversation has at least ``count`` cards, and return all of them."""
    await eventually(lambda: len(driver.cards()) >= count, f"{count} cards")
    return list(driver.cards())


def waiting(driver: Driver) -> list[Proposal]:
    """Return the open proposals, newest first."""
    return driver.world.app.database.read_now(proposals.list_in_states, [State.PROPOSED])


async def proposed(driver: Driver, call: tuple[str, dict[str, Any]], *answers: str) -> SeenCard:
    """Have the model propose a call to Ana, and return the card.

    ``call``: the tool's name and the arguments. ``answers``: the model's next answers. The first of them
    follows the end of the call.
    """
    driver.world.script(Says("Should I?", (call,)), *map(Says, answers))
    await driver.say("please do it")
    (card,) = await cards(driver)
    return card


async def approved(driver: Driver, notes: list[str], position: int = 0) -> None:
    """Approve a card as Ana, wait for the end of its call, and check that the notes are now ``notes``."""
    await driver.press(driver.cards()[position], Verb.APPROVE)
    await becomes(driver, position, "Done. Approved by")
    assert driver.world.notes == notes


async def refused(driver: Driver, card: SeenCard, verb: Verb) -> None:
    """Press a button as Eve, and wait until she is told in private that she may not."""
    await driver.press(card, verb, eve=True)
    await eventually(lambda: driver.told(eve=True), "a refusal for Eve alone")


async def edited_elsewhere(driver: Driver, text: str) -> None:
    """Edit the open proposal as Ana, in another place than its conversation: the note becomes ``text``."""
    (proposal,) = waiting(driver)
    press = Press(proposal.requester, Verb.EDIT, proposal.id, proposal.round, arguments={"text": text})
    assert (await driver.world.app.core.assistant.handle(press)).answer is Answer.ACCEPTED


async def tried(driver: Driver) -> SeenCard:
    """Have a call proposed that Nod tries first in a closed copy, and return its card."""
    card = await proposed(driver, ("tidy", {"text": "bread"}), "Tidied.")
    assert "Tried in a closed copy" in card.words
    assert "tidied a copy" in card.words
    assert {Verb.APPROVE, Verb.FOR_REAL} <= set(card.verbs)
    return card


async def becomes(driver: Driver, position: int, words: str) -> SeenCard:
    """Wait until a card has these words, and return the card."""
    await eventually(lambda: words in driver.cards()[position].words, f"{words!r} on card {position}")
    return driver.cards()[position]


async def hears(driver: Driver, words: str) -> None:
    """Wait until Nod has written these words in the conversation."""
    await eventually(lambda: words in "\n".join(driver.texts()), f"{words!r} in the conversation")


class RulesContract:
    """Tests of rules and admin commands: who may decide, and how many must."""

    async def test_where_two_must_approve_the_card_counts_and_one_alone_is_not_enough(
        self, driver: Driver
    ) -> None:
        assert "quorum 2" in await driver.command("/approvals quorum 2")
        card = await proposed(driver, note("milk"))
        assert "0 of 2 approvals" in card.words
        await driver.press(card, Verb.APPROVE)

        counted = await becomes(driver, 0, "1 of 2 approvals")
        assert driver.world.notes == []
        await driver.ben_presses(counted, Verb.APPROVE)
        await becomes(driver, 0, "Done. Approved by")
        assert driver.world.notes == ["milk"]

    async def test_what_cannot_be_undone_is_not_approved_by_the_one_who_asked(self, driver: Driver) -> None:
        driver.world.notes.append("milk")
        card = await proposed(driver, ("erase", {"text": "milk"}))
        assert "but not" in card.words
        await driver.press(card, Verb.APPROVE)

        told = await eventually(driver.told, "a word to the one who asked")
        assert "four eyes" in told[-1].lower()
        assert driver.world.notes == ["milk"]
        await driver.ben_presses(driver.cards()[0], Verb.APPROVE)
        await becomes(driver, 0, "Done. Approved by")
        assert driver.world.notes == []

    async def test_while_paused_nothing_runs_and_afterwards_it_continues(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        assert "Execution is paused" in await driver.command("/approvals pause")
        await driver.press(card, Verb.APPROVE)
        await becomes(driver, 0, "It has not run yet")
        await driver.world.let_pass(timedelta(hours=25))
        assert driver.world.notes == []

        assert "added to their deadlines" in await driver.command("/approvals resume")
        await driver.world.let_pass(timedelta(minutes=1))
        await becomes(driver, 0, "Done. Approved by")
        assert driver.world.notes == ["milk"]

    async def test_an_admin_can_ask_what_the_policy_would_do(self, driver: Driver) -> None:
        would = await driver.command('/approvals policy test note {"text": "milk"}')
        assert "It would ask for one approval" in would

        assert "policy never" in await driver.command("/approvals policy never for note")
        would = await driver.command('/approvals policy test note {"text": "milk"}')
        assert "It would run immediately" in would

    async def test_who_is_not_an_admin_is_refused_privately(self, driver: Driver) -> None:
        said = len(driver.texts())

        assert "for admins" in await driver.command("/approvals pause", eve=True)
        assert len(driver.texts()) == said
        assert "By default" in await driver.command("/approvals rules")
        assert "Paused." not in await driver.command("/approvals rules")

    async def test_it_takes_as_many_declines_as_make_the_approvals_impossible(self, driver: Driver) -> None:
        assert "quorum 2 of 3" in await driver.command("/approvals quorum 2 of 3")
        card = await proposed(driver, note("milk"))
        await driver.press(card, Verb.DECLINE)
        await eventually(lambda: waiting(driver)[0].votes, "Ana's vote")
        assert Verb.APPROVE in driver.cards()[0].verbs

        await driver.ben_presses(driver.cards()[0], Verb.DECLINE)
        assert (await becomes(driver, 0, "Declined by")).verbs == ()
        assert driver.world.notes == []

    async def test_anyone_who_votes_twice_is_told_and_counted_once(self, driver: Driver) -> None:
        await driver.command("/approvals quorum 2")
        card = await proposed(driver, note("milk"))
        await driver.press(card, Verb.APPROVE)
        counted = await becomes(driver, 0, "1 of 2 approvals")
        await driver.press(counted, Verb.APPROVE)

        await eventually(
            lambda: "already been counted" in "".join(driver.told()), "a word about the second vote"
        )
        assert driver.world.notes == []

    async def test_an_edit_voids_the_votes_and_every_card_says_who_edited(self, driver: Driver) -> None:
        await driver.command("/approvals quorum 2")
        card = await proposed(driver, note("milk"))
        await driver.press(card, Verb.APPROVE)
        await becomes(driver, 0, "1 of 2 approvals")
        await edited_elsewhere(driver, "bread")

        anew = await becomes(driver, 0, "0 of 2 approvals")
        assert "bread" in anew.words
        assert "milk → bread" in anew.words

    async def test_who_presses_on_what_someone_edited_is_told_what_changed(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        await edited_elsewhere(driver, "bread")
        await becomes(driver, 0, "bread")
        await driver.press_remembered(card, Verb.APPROVE)

        told = await eventually(driver.told, "a word about the edit")
        assert "changed text: milk → bread" in told[-1]
        assert driver.world.notes == []

    async def test_what_was_reassigned_is_decided_by_those_who_were_named_only(self, driver: Driver) -> None:
        card = await proposed(driver, note("milk"))
        (proposal,) = waiting(driver)
        assert "Reassigned" in await driver.command(f"/approvals reassign {proposal.id} {driver.ben}")
        await eventually(lambda: driver.cards()[0].words != card.words, "who may decide now")
        await driver.press(driver.cards()[0], Verb.APPROVE)
        assert "may not decide" in (await eventually(driver.told, "a word to Ana"))[-1]

        await driver.ben_presses(driver.cards()[0], Verb.APPROVE)
        await becomes(driver, 0, "Done. Approved by")
        assert driver.world.notes == ["milk"]

    async def test_an_admin_can_end_the_waiting(self, driver: Driver) -> None:
        await proposed(driver, note("milk"))
        (proposal,) = waiting(driver)
        assert "Expired." in await driver.command(f"/approvals expire {proposal.id[:8]}")

        assert (await becomes(driver, 0, "Expired")).verbs == ()

    async def test_a_revoked_grant_allows_nothing_more(self, driver: Driver) -> None:
        driver.world.script(
            Says("Should I?", (note("milk"),)), Says("Noted."), Says("Again.", (note("bread"),))
        )
        await driver.say("note milk")
        (card,) = await cards(driver)
        await driver.approve_similar(card, GrantScope.TOOL, GrantDuration.DAY)
        await hears(driver, "Noted.")
        assert "G-1 by" in await driver.command("/approvals grants")
        assert "Ended: 1 grant." in await driver.command("/approvals revoke G-1")

        await driver.say("note bread")
        _, second = await cards(driver, 2)
        assert Verb.APPROVE in second.verbs
        assert driver.world.notes == ["milk"]

    async def test_a_wrong_word_changes_nothing_and_gets_the_near_one(self, driver: Driver) -> None:
        said = await driver.command("/approvals puase")
        plain = said.replace("`", "")  # the command line shows commands without backquotes
        assert "Did you mean" in plain
        assert "approvals pause?" in plain
        assert "Paused." not in await driver.command("/approvals rules")

    async def test_who_changed_a_rule_is_in_the_record(self, driver: Driver) -> None:
        await driver.command("/approvals ttl 4h for note")
        shown = await driver.command("/approvals audit note")
        assert "rule ttl for note in *: set by" in shown
        assert "nothing missing or altered" in await driver.command("/approvals audit verify")


def plan(summary: str) -> tuple[str, dict[str, Any]]:
    """Return a call, for the scripted model, by which the teammate noter submits a plan."""
    steps = [{"description": "Write it down", "tools": ["note"], "estimated_tokens": 300}]
    return ("plan_submit", {"summary": summary, "steps": steps, "risks": "It may be noted twice"})


async def planned(driver: Driver, *answers: Says) -> SeenCard:
    """Have the lead agent start the teammate noter, who submits a plan, and return the plan's card.

    ``answers``: the teammate's next answers, once the plan is decided.
    """
    spawn = {"role": "noter", "task": "Note milk.", "require_plan_approval": True}
    driver.world.script(Says("I start one.", (("spawn_teammate", spawn),)), Says("It works on it."))
    driver.world.script_teammate("noter", Says("My plan.", (plan("Milk is noted"),)), *answers)
    await driver.say("have milk noted, plan first")
    return (await cards(driver))[0]


async def approved_elsewhere(driver: Driver) -> None:
    """Approve the open proposal as Ana in another place than its conversation."""
    (proposal,) = waiting(driver)
    press = Press(proposal.requester, Verb.APPROVE, proposal.id, proposal.round)
    assert (await driver.world.app.core.assistant.handle(press)).answer is Answer.ACCEPTED


class PlacesContract:
    """Tests of places: the place of a conversation may go away while something is asked there."""

    async def test_an_answer_to_a_place_that_is_gone_goes_to_the_person_who_asked_and_says_why(
        self, driver: PlacedDriver
    ) -> None:
        await proposed(driver, note("milk"), "It is noted.")
        driver.lose_place()
        await approved_elsewhere(driver)
        await eventually(lambda: driver.world.notes, "the note")
        await settles(driver)

        (answer,) = driver.privately("It is noted.")
        (notice,) = driver.privately("I can't answer where you asked.")
        assert "It is noted." not in notice
        assert "I can't answer" not in answer

    async def test_a_file_for_a_place_that_is_gone_is_told_to_the_person_who_asked(
        self, driver: PlacedDriver
    ) -> None:
        await proposed(driver, ("print_lines", {"count": 1000}), "It is printed.")
        driver.lose_place()
        await approved_elsewhere(driver)
        await settles(driver)

        assert driver.privately("It is printed.")
        (told,) = driver.privately("I could not post the file")
        assert "nod show" in told

    async def test_a_waiting_card_that_someone_deleted_is_there_again_when_it_is_reminded_of(
        self, driver: PlacedDriver
    ) -> None:
        await driver.command("/approvals remind 1h")
        driver.delete_card(await proposed(driver, note("milk")))
        await driver.world.let_pass(timedelta(hours=1))
        await settles(driver)

        assert len(driver.cards()) == 1
        await approved(driver, ["milk"])

    async def test_a_rule_that_names_a_place_where_nod_can_not_post_says_so_when_it_is_set(
        self, driver: PlacedDriver
    ) -> None:
        for rule in ("route", "escalate 4h", "digest 09:00"):
            said = await driver.command(f"/approvals {rule} {driver.closed}")
            assert "Set: rule" in said
            assert "Nod can't post there." in said
            said = await driver.command(f"/approvals {rule} here")
            assert "Set: rule" in said
            assert "can't post" not in said

    async def test_the_doctor_asks_about_the_places_of_rules_and_settings(self, driver: PlacedDriver) -> None:
        await driver.command(f"/approvals route {driver.closed}")
        await driver.command("/approvals digest 09:00 here")
        findings = await check(driver.world.settings())

        posting = {
            finding.name: finding.health for finding in findings if finding.name.startswith("posting in ")
        }
        assert posting.pop(f"posting in {driver.closed}") is Health.WARN
        assert list(posting.values()) == [Health.OK]


async def settles(driver: Driver) -> None:
    """Let three minutes pass, so that all posts are made, also those that were refused at first."""
    for _ in range(3):
        await driver.world.let_pass(timedelta(minutes=1))
        await driver.world.app.core.reminders.remind(driver.world.clock())
        await driver.world.app.dispatcher.wait_until_idle()


class Contract(RulesContract):
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

    async def test_an_approved_plan_lets_its_teammate_propose_and_its_result_comes_back(
        self, driver: Driver
    ) -> None:
        card = await planned(driver, Says("Now.", (note("milk"),)), Says("Milk is noted, boss."))
        for words in ("Plan: Milk is noted", "Write it down", "about 300 tokens", "twice"):
            assert words in card.words
        assert {Verb.APPROVE, Verb.DECLINE, Verb.REVISE, Verb.APPROVE_STEPS} <= set(card.verbs)
        driver.world.script(Says("It tells me that it is done."))
        await driver.press(card, Verb.APPROVE)

        assert (await becomes(driver, 0, "Plan approved by")).verbs == ()
        _, change = await cards(driver, 2)
        assert driver.world.notes == []
        await driver.press(change, Verb.APPROVE)
        await hears(driver, "It tells me that it is done.")
        assert driver.world.notes == ["milk"]
        await eventually(lambda: "Milk is noted, boss." in driver.boards()[0], "its result on the board")
        assert len(driver.boards()) == 1

    async def test_a_rejected_plan_leaves_its_teammate_locked(self, driver: Driver) -> None:
        card = await planned(driver, Says("All the same.", (note("milk"),)), Says("Then I end."))
        await driver.press(card, Verb.DECLINE)

        assert (await becomes(driver, 0, "Plan rejected by")).verbs == ()
        await eventually(lambda: driver.boards() and "Then I end." in driver.boards()[0], "its end")
        assert driver.world.notes == []
        assert len(driver.cards()) == 1

    async def test_a_plan_sent_back_comes_again_with_what_changed(self, driver: Driver) -> None:
        card = await planned(driver, Says("Again.", (plan("Only milk is noted"),)))
        await driver.write(card, Verb.REVISE, "nothing but milk")

        assert (await becomes(driver, 0, "Sent back for changes by")).verbs == ()
        assert "nothing but milk" in driver.cards()[0].words
        _, anew = await cards(driver, 2)
        for words in ("Plan, version 2: Only milk is noted", "Milk is noted"):
            assert words in anew.words
        assert Verb.APPROVE in anew.verbs

    async def test_a_plan_approved_with_its_steps_asks_no_more_for_them(self, driver: Driver) -> None:
        card = await planned(driver, Says("Now.", (note("milk"),)), Says("Milk is noted, boss."))
        await driver.press(card, Verb.APPROVE_STEPS)

        await becomes(driver, 0, "Plan approved by")
        await cards(driver, 2)
        done = await becomes(driver, 1, "Done. Approved by")
        assert "grant G-1" in done.words
        assert done.verbs == ()
        assert driver.world.notes == ["milk"]

    async def test_a_stranger_can_neither_approve_a_plan_nor_its_steps(self, driver: Driver) -> None:
        card = await planned(driver)
        await driver.press(card, Verb.APPROVE, eve=True)
        await driver.press(card, Verb.APPROVE_STEPS, eve=True)

        assert await eventually(lambda: len(driver.told(eve=True)) > 1, "words to the stranger")
        assert Verb.APPROVE in driver.cards()[0].verbs

    async def test_the_team_and_its_plans_can_be_asked_for(self, driver: Driver) -> None:
        await planned(driver)

        told = await driver.command("/nod team")
        assert "noter" in told
        assert "waiting for its plan to be approved" in told
