"""The contract of teammates and their plans."""

from typing import Any

from bot.domain.verbs import Verb
from bot.testing.driver import Driver, SeenCard
from bot.testing.steps import becomes, cards, hears, note
from bot.testing.world import Says, eventually


class PlansContract:
    """Tests of teammates and their plans."""

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
