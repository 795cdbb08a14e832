"""The contract of channels in which people have several places."""

from datetime import timedelta

from bot.cli.doctor import check
from bot.domain.doctor_findings import Health
from bot.testing.driver import PlacedDriver
from bot.testing.steps import approved, approved_elsewhere, note, proposed, settles
from bot.testing.world import eventually


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
