"""The contract of rules and admin commands."""

from datetime import timedelta

from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.testing.driver import Driver
from bot.testing.steps import becomes, cards, edited_elsewhere, hears, note, proposed, waiting
from bot.testing.world import Says, eventually


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
