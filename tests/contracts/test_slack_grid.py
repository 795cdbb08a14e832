"""Enterprise Grid: Nod installed for an organisation, and for one workspace of it, from ask to end."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts.test_slack import SlackDriver, in_slack
from tests.fakes.slack_grid import ORG, SISTER
from tests.fakes.slack_server import BOT_ID, FakeSlack
from tests.fakes.slack_state import Posted
from tests.kit import FakeClock
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

ANA, BEN, CLEO, EVE = "W7", "W8", "W9", "U99"


@pytest.fixture(params=[True, False], ids=["organisation", "workspace"])
def wide(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
async def grid(database_of: Urls, clock: FakeClock, wide: bool) -> AsyncIterator[SlackDriver]:
    slack = FakeSlack()
    slack.make_grid(wide=wide)
    name = slack.grid.installed
    who = {"NOD_ADMINS": f"slack:{name}/{ANA}", "NOD_APPROVERS": f"slack:{name}/{BEN}"}
    async with in_slack(database_of("nod"), clock, slack=slack, **who) as driver:
        yield driver


async def card(driver: SlackDriver, text: str, by: str = ANA) -> Posted:
    """The card of a note that one asks for in a channel of the organisation."""
    driver.world.script(Says("Shall I?", (note(text),)), Says("It is noted."))
    await driver.slack.mention(by, f"note {text}")

    def posted() -> list[Posted]:
        return [m for m in driver.slack.cards("C1") if m.only_for is None and text in m.words]

    return (await eventually(posted, "the card"))[0]  # type: ignore[no-any-return]


def told(driver: SlackDriver, user: str) -> str:
    own = driver.slack.dm(user)
    return "\n".join(m.words for m in driver.slack.posted if m.only_for == user or m.channel == own)


async def test_what_is_asked_there_becomes_a_card_that_is_approved_there(grid: SlackDriver) -> None:
    shown = await card(grid, "milk")
    assert "Asked by Ana" in shown.words
    await grid.slack.click(shown, "Approve", BEN)
    await eventually(lambda: "Approved by Ben" in shown.words, "the end on the card")
    await eventually(lambda: grid.world.notes == ["milk"], "the note")


async def test_it_is_edited_in_a_window(grid: SlackDriver) -> None:
    shown = await card(grid, "milk")
    await grid.slack.click(shown, "Edit", ANA)
    await eventually(lambda: [m for m in grid.slack.modals if m.user == ANA], "the window")
    await grid.slack.submit(ANA, {"Text": "oat milk"})
    await eventually(lambda: grid.world.notes == ["oat milk"], "the note")


async def test_it_is_declined_with_a_reason_in_a_window(grid: SlackDriver) -> None:
    shown = await card(grid, "milk")
    await grid.slack.click(shown, "Decline with a reason", BEN)
    await eventually(lambda: [m for m in grid.slack.modals if m.user == BEN], "the window")
    await grid.slack.submit(BEN, {"Why not?": "There is some."})
    await eventually(lambda: "There is some" in shown.words, "the reason on the card")
    assert grid.world.notes == []


async def test_slash_commands_know_who_and_where(grid: SlackDriver) -> None:
    await card(grid, "milk")
    assert "Note milk" in await grid.slack.slash(ANA, "/approvals", "list")
    assert "is not" not in await grid.slack.slash(ANA, "/approvals", "approvers @Ben")
    rules = await grid.slack.slash(ANA, "/approvals", "rules")
    assert "Ben" in rules
    assert "another company" not in rules


async def test_a_home_is_shown_pressed_and_kept_current(grid: SlackDriver) -> None:
    home = {"type": "app_home_opened", "user": ANA, "channel": grid.slack.dm(ANA), "tab": "home"}
    await grid.slack.deliver_event(home)
    await card(grid, "milk")
    await eventually(lambda: "Note milk" in str(grid.slack.homes.get(ANA)), "the card at home")
    await grid.slack.click_home(ANA, "Decline")
    await eventually(lambda: "Declined by Ana" in str(grid.slack.homes[ANA]), "its end at home")


async def test_an_answer_streams_to_who_asked(grid: SlackDriver) -> None:
    """Slack wants the person's own workspace there, and no organisation's id."""
    grid.world.script(Says("Good morning."))
    await grid.slack.mention(BEN, "good morning")
    await eventually(lambda: [m for m in grid.slack.in_channel("C1") if m.markdown], "the answer")
    [begun] = grid.slack.called("chat.startStream")
    assert (begun["recipient_team_id"], begun["recipient_user_id"]) == ("T1", BEN)


async def test_a_person_of_another_company_presses_in_a_shared_channel(grid: SlackDriver) -> None:
    shown = await card(grid, "milk")
    await grid.slack.click(shown, "Approve", EVE)
    await eventually(lambda: told(grid, EVE), "a word for Eve")
    assert "install" not in told(grid, EVE)
    assert "may not decide" in told(grid, EVE)
    assert grid.world.notes == []


@pytest.mark.parametrize("wide", [True], ids=["organisation"])
async def test_who_is_of_another_workspace_is_of_the_organisation(grid: SlackDriver) -> None:
    shown = await card(grid, "milk", by=CLEO)
    assert "Asked by Cleo" in shown.words
    assert "another company" not in shown.words
    await grid.slack.click(shown, "Approve", CLEO)
    await eventually(lambda: grid.world.notes == ["milk"], "the note")


@pytest.mark.parametrize("wide", [False], ids=["workspace"])
async def test_who_is_of_another_workspace_than_the_one_with_nod_decides_nothing_and_is_told(
    grid: SlackDriver,
) -> None:
    shown = await card(grid, "milk")
    await grid.slack.click(shown, "Approve", CLEO)
    await eventually(lambda: told(grid, CLEO), "a word for Cleo")
    assert "may not decide" in told(grid, CLEO)
    assert "install" not in told(grid, CLEO)
    assert grid.world.notes == []


@pytest.mark.parametrize("wide", [False], ids=["workspace"])
async def test_who_is_of_another_workspace_of_the_organisation_is_called_that(grid: SlackDriver) -> None:
    """Nod is not installed there, and they are no other company: on cards, in lists and in the audit log."""
    assert "Set" in await grid.slack.slash(ANA, "/approvals", "outsiders talk")
    assert "Set" in await grid.slack.slash(ANA, "/approvals", "approvers @Cleo")
    shown = await card(grid, "milk", by=CLEO)
    assert "Asked by Cleo (another workspace)" in shown.words
    await grid.slack.click(shown, "Approve", CLEO)
    await eventually(lambda: "Approved by Cleo (another workspace)" in shown.words, "the end on the card")
    for command in ("audit", "rules"):
        assert "another company" not in await grid.slack.slash(ANA, "/approvals", command)
    theirs = await card(grid, "bread")
    await grid.slack.click(theirs, "Approve", EVE)
    await eventually(lambda: told(grid, EVE), "a word for Eve")
    assert "Eve (another company)" in await grid.slack.slash(ANA, "/nod", "away @Eve for 1d")
    assert len(grid.slack.called("auth.test")) <= 2  # at the start, and once for Cleo


@pytest.mark.parametrize("wide", [False], ids=["workspace"])
async def test_while_slack_does_not_say_of_which_organisation_a_workspace_is_no_one_decides_more(
    grid: SlackDriver,
) -> None:
    shown = await card(grid, "milk")
    grid.slack.fail("auth.test", "internal_error", times=9)
    await grid.slack.click(shown, "Approve", CLEO)
    await eventually(lambda: told(grid, CLEO), "a word for Cleo")
    assert "may not decide" in told(grid, CLEO)
    assert grid.world.notes == []


@pytest.mark.parametrize("wide", [True], ids=["organisation"])
async def test_a_user_group_of_one_of_its_workspaces_decides(grid: SlackDriver) -> None:
    grid.slack.groups["S2"] = ("oncall", [CLEO])
    assert "is not" not in await grid.slack.slash(ANA, "/approvals", "approvers @oncall")
    shown = await card(grid, "milk")
    assert "@oncall" in shown.words or "S2" in shown.words
    await grid.slack.click(shown, "Approve", CLEO)
    await eventually(lambda: grid.world.notes == ["milk"], "the note")
    assert {call.get("team_id") for call in grid.slack.called("usergroups.users.list")} <= {"T1", SISTER}


@pytest.mark.parametrize("wide", [True], ids=["organisation"])
@pytest.mark.parametrize("without", ["message", "enterprise", "is_enterprise_install"])
async def test_a_press_names_the_organisation_by_any_of_its_fields(grid: SlackDriver, without: str) -> None:
    """Slack's requests differ: the message, the organisation or the flag may be left out."""
    shown = await card(grid, "milk")
    body: dict[str, Any] = grid.slack.body_of(shown, shown.buttons["Approve"], BEN)
    if without == "message":
        del body["message"]["bot_id"]
    else:
        del body[without]
    assert (await grid.slack.interact(body)).status == 200
    await eventually(lambda: grid.world.notes == ["milk"], "the note")


async def test_a_workspace_where_nod_is_not_installed_speaks_for_no_one(grid: SlackDriver) -> None:
    """Not even where it says that it is of the organisation whose Nod this is."""
    shown = await card(grid, "milk")
    event = {"type": "app_mention", "channel": "C1", "user": ANA, "ts": "9.1", "text": "hello"}
    heard = len(grid.world.model.seen)
    assert (await grid.slack.deliver_event(event, team="T9")).status == 200
    body = grid.slack.body_of(shown, shown.buttons["Approve"], BEN)
    body |= {"team": {"id": "T9", "domain": "other"}, "enterprise": None, "is_enterprise_install": False}
    body["message"] |= {"bot_id": "BOTHER"}
    await grid.slack.interact(body)
    await grid.slack.until(lambda: any(grid.slack.whispered.values()))
    assert "is not installed" in str(grid.slack.whispered)
    assert grid.world.notes == []
    assert len(grid.world.model.seen) == heard


async def test_after_it_was_uninstalled_nothing_is_heard(grid: SlackDriver) -> None:
    shown = await card(grid, "milk")
    assert (await grid.slack.uninstall()).status == 200
    heard = len(grid.world.model.seen)
    await grid.slack.mention(ANA, "and bread")
    await grid.slack.click(shown, "Approve", BEN)
    await grid.slack.until(lambda: any(grid.slack.whispered.values()))
    assert len(grid.world.model.seen) == heard
    assert grid.world.notes == []


def test_the_fake_says_of_each_installation_what_slack_says() -> None:
    slack = FakeSlack()
    slack.make_grid(wide=True)
    assert slack.grid.authorized(ORG, BOT_ID)["team_id"] is None
    assert slack.grid.pressed("T1")["team"] is None
    slack.make_grid(wide=False)
    assert slack.grid.pressed(SISTER)["team"]["id"] == SISTER
