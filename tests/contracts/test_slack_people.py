"""Guests and people of another company in Slack, as those who ask, decide and rule."""

from collections.abc import AsyncIterator

import pytest

from bot.features.schedules import rows as schedules
from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts.test_slack import SlackDriver, in_slack
from tests.fakes.slack_server import FakeSlack
from tests.fakes.slack_state import Posted
from tests.kit import FakeClock
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

ANA, BEN, CLEO, EVE = "U7", "U8", "U9", "UEVE"
OUTSIDE = {
    "another company": {"team_id": "T2"},
    "a stranger": {"team_id": "T2", "is_stranger": True},
    "guest": {"is_restricted": True},
    "a guest of one channel": {"is_restricted": True, "is_ultra_restricted": True},
}
CALLED = {"a stranger": "another company", "a guest of one channel": "guest"}


@pytest.fixture
async def driver(database_of: Urls, clock: FakeClock) -> AsyncIterator[SlackDriver]:
    async with in_slack(database_of("nod"), clock) as driver:
        driver.slack.users |= {EVE: "Eve"}
        yield driver


@pytest.fixture(params=OUTSIDE)
def eve(request: pytest.FixtureRequest, driver: SlackDriver) -> str:
    """What Eve is, as cards call it."""
    driver.slack.records[EVE] = OUTSIDE[request.param]
    return CALLED.get(request.param, request.param)


def whispered(slack: FakeSlack, user: str) -> list[str]:
    return [m.words for m in slack.posted if m.only_for == user]


async def card(driver: SlackDriver, text: str, by: str) -> Posted:
    """The card of a note that one asks for in the channel."""
    driver.world.script(Says("Shall I?", (note(text),)))
    await driver.slack.mention(by, f"note {text}")

    def posted() -> list[Posted]:
        return [m for m in driver.slack.cards("C1") if m.only_for is None and text in m.words]

    found = await eventually(posted, "the card")
    return found[0]  # type: ignore[no-any-return]


async def test_who_is_from_outside_is_not_heard_and_is_told_why(driver: SlackDriver, eve: str) -> None:
    await driver.slack.mention(EVE, "note milk")
    await eventually(lambda: whispered(driver.slack, EVE), "a word for Eve")
    assert "people of this team" in whispered(driver.slack, EVE)[0]
    assert "people of this team" in await driver.slack.slash(EVE, "/nod", "pending")
    assert driver.world.model.seen == []


async def test_who_is_from_outside_and_was_never_seen_here_stands_in_for_no_one(
    driver: SlackDriver, eve: str
) -> None:
    said = await driver.command("/nod away @Eve for 3d")
    assert f"Eve ({eve}) is not part of this team, so they can't decide for you." in said


async def test_who_is_from_outside_does_not_change_what_nod_reads_in_a_thread(
    driver: SlackDriver, eve: str
) -> None:
    driver.world.script(Says("Hello."), Says("I heard that."))
    await driver.say("good morning")
    first = await eventually(lambda: [m for m in driver.slack.in_channel("C1") if m.buttons], "the button")
    await driver.slack.click(first[0], "Only when mentioned", EVE)
    await eventually(lambda: "of this team" in "".join(whispered(driver.slack, EVE)), "a word for Eve")
    await driver.slack.say(BEN, "and now?", channel="C1", thread=first[0].thread)
    await eventually(lambda: "I heard that." in "".join(driver.texts()), "an answer without a mention")


async def test_who_is_from_outside_is_heard_where_a_rule_says_so_and_decides_nothing(
    driver: SlackDriver, eve: str
) -> None:
    assert "Set" in await driver.command("/approvals outsiders talk in #general")
    shown = await card(driver, "milk", EVE)
    assert f"Eve ({eve})" in shown.words
    await driver.slack.click(shown, "Approve", EVE)
    await eventually(lambda: "may not decide" in "".join(whispered(driver.slack, EVE)), "a word for Eve")
    assert driver.world.notes == []
    await driver.slack.click(shown, "Approve", BEN)
    await eventually(lambda: driver.world.notes == ["milk"], "the note")
    said = await driver.command("/approvals audit")
    assert f"Eve ({eve})" in said


async def test_anyone_in_the_channel_is_anyone_of_the_team(driver: SlackDriver, eve: str) -> None:
    await driver.command("/approvals approvers member")
    shown = await card(driver, "milk", ANA)
    await driver.slack.click(shown, "Approve", EVE)
    await eventually(lambda: "may not decide" in "".join(whispered(driver.slack, EVE)), "a word for Eve")
    assert driver.world.notes == []
    await driver.slack.click(shown, "Approve", CLEO)
    await eventually(lambda: driver.world.notes == ["milk"], "the note")


async def test_who_is_from_outside_decides_where_an_admin_names_their_account(
    driver: SlackDriver, eve: str
) -> None:
    assert "Set" in await driver.command("/approvals approvers @Eve")
    shown = await card(driver, "milk", ANA)
    await driver.slack.click(shown, "Approve", EVE)
    await eventually(lambda: driver.world.notes == ["milk"], "the note")
    await eventually(lambda: f"Approved by Eve ({eve})" in shown.words, "the end on the card")


async def test_who_is_from_outside_is_an_admin_only_by_their_own_account(
    driver: SlackDriver, eve: str
) -> None:
    """An admin of another workspace counts there alone, unless the role is for everywhere."""
    await driver.slack.slash(EVE, "/approvals", "rules")
    where = "" if eve == "guest" else " everywhere"
    assert "Set" in await driver.command(f"/approvals roles add @Eve admin{where}")
    assert "Unknown" not in await driver.slack.slash(EVE, "/approvals", "rules")
    assert "admins" not in await driver.slack.slash(EVE, "/approvals", "rules")
    shown = await card(driver, "milk", ANA)
    await driver.slack.click(shown, "Approve", EVE)
    await eventually(lambda: driver.world.notes == ["milk"], "the note")


async def test_what_someone_from_outside_asks_for_asks_even_where_nothing_does(
    driver: SlackDriver, eve: str
) -> None:
    await driver.command("/approvals outsiders talk")
    await driver.command("/approvals policy never")
    shown = await card(driver, "milk", EVE)
    assert "Approve" in shown.buttons
    assert driver.world.notes == []


async def test_while_slack_does_not_say_who_it_is_no_one_new_is_heard_or_decides(
    driver: SlackDriver,
) -> None:
    await driver.command("/approvals approvers member")
    shown = await card(driver, "milk", ANA)
    driver.slack.fail("users.info", "missing_scope", times=50)
    await driver.slack.click(shown, "Approve", EVE)
    await eventually(lambda: whispered(driver.slack, EVE), "a word for Eve")
    assert "can't check who you are" in whispered(driver.slack, EVE)[0]
    await driver.slack.mention(CLEO, "hello")
    await eventually(lambda: whispered(driver.slack, CLEO), "a word for Cleo")
    assert "can't check who you are" in whispered(driver.slack, CLEO)[0]
    await driver.slack.click(shown, "Approve", ANA)  # known since she asked
    await eventually(lambda: driver.world.notes == ["milk"], "the note")


async def test_who_belonged_to_the_team_when_slack_last_said_so_still_does_after_a_restart(
    driver: SlackDriver,
) -> None:
    shown = await card(driver, "milk", ANA)
    await driver.world.restart()
    driver.slack.fail("users.info", "missing_scope", times=50)
    await driver.slack.click(shown, "Approve", ANA)
    await eventually(lambda: driver.world.notes == ["milk"], "the note")


async def test_a_colleague_of_another_workspace_of_the_organisation_is_no_outsider(
    driver: SlackDriver,
) -> None:
    """Where Nod is installed for the organisation, or their home is another one than where they are."""
    driver.slack.records[EVE] = {
        "team_id": "T3",
        "enterprise_user": {"enterprise_id": "E1", "teams": ["T3", "T1"]},
    }
    shown = await card(driver, "milk", EVE)
    await driver.slack.click(shown, "Approve", EVE)
    await eventually(lambda: driver.world.notes == ["milk"], "the note")
    assert "another company" not in shown.words


DAILY = ("schedule_task", {"task": "water the plants", "at": "tomorrow 9:00", "every": "day"})


def prompt(driver: SlackDriver) -> str:
    """The system prompt of the last request."""
    return driver.world.model.seen[-1][0].text  # type: ignore[union-attr]


async def test_what_someone_says_of_times_is_on_the_clock_that_slack_tells_of_them(
    driver: SlackDriver,
) -> None:
    """It is Monday, 2 March, 09:00 in UTC, and 22:00 in Auckland."""
    driver.slack.records |= {ANA: {"tz": "Pacific/Auckland"}, BEN: {"tz": "Moon/Base"}}
    driver.world.script(Says("I would.", (DAILY,)))
    await driver.slack.say(ANA, "every day at 9, water the plants")
    [shown] = await eventually(lambda: driver.slack.cards(driver.slack.dm(ANA)), "the card")
    assert "every day at 09:00 (Pacific/Auckland)" in shown.words
    assert "Tuesday 3 Mar 2026, 09:00" in shown.words
    assert "it is past 22:00 (time zone: Pacific/Auckland)" in prompt(driver)
    assert len(driver.slack.called("users.info")) == 1  # the one that asks whether she is a guest

    driver.world.script(Says("I would.", (DAILY,)))
    await driver.slack.mention(ANA, "every day at 9, water the plants")
    await eventually(lambda: driver.slack.cards("C1"), "the card")
    assert "every day at 09:00 (Pacific/Auckland)" in driver.slack.cards("C1")[-1].words
    there = prompt(driver)
    assert "it is past 09:00 (time zone: UTC)" in there
    assert "For Ana it is Monday, past 22:00 (time zone: Pacific/Auckland)." in there

    driver.world.script(Says("I would.", (DAILY,)))
    await driver.slack.mention(BEN, "every day at 9, water the plants")  # in no zone that is known
    await eventually(lambda: len(driver.slack.cards("C1")) > 1, "the card")
    assert "every day at 09:00 (UTC)" in driver.slack.cards("C1")[-1].words
    assert "For Ben" not in prompt(driver)


async def test_in_a_plan_too_a_time_is_on_the_clock_of_who_asks(driver: SlackDriver) -> None:
    driver.slack.records[ANA] = {"tz": "Pacific/Auckland"}
    step = {"description": "Have them watered", "calls": [{"tool": DAILY[0], "arguments": DAILY[1]}]}
    plan = ("plan_submit", {"summary": "Plants", "steps": [step]})
    driver.world.script(Says("My plan:", (plan,)), Says("", (DAILY,)), Says("It is set."))
    await driver.slack.mention(ANA, "see to the plants")
    await eventually(lambda: driver.slack.cards("C1"), "the plan")
    [shown] = driver.slack.cards("C1")
    assert 'time_zone = "Pacific/Auckland"' in shown.words
    await driver.slack.click(shown, "Approve plan", ANA)
    await eventually(
        lambda: any("It is set." in m.markdown for m in driver.slack.in_channel("C1")), "the end"
    )
    [kept] = driver.world.app.database.read_now(schedules.list_of_people, None)
    assert str(kept.zone) == "Pacific/Auckland"


async def test_where_slack_tells_no_zone_or_nothing_at_all_times_are_the_teams(driver: SlackDriver) -> None:
    driver.slack.fail("users.info", "internal_error", times=50)
    await driver.command("/approvals outsiders talk")
    driver.world.script(Says("Hello."))
    await driver.slack.mention(ANA, "hello")
    await eventually(lambda: driver.world.model.seen, "the answer")
    assert "(time zone: UTC)" in prompt(driver)
    assert "For Ana" not in prompt(driver)
