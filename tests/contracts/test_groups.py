"""Slack's user groups and the admins of a Telegram group as deciders, as the platforms tell of them."""

from datetime import timedelta

import pytest

from bot.domain.chat import Press
from bot.domain.people import Actor
from bot.domain.verbs import Verb
from bot.store.rules import GROUP_VALID_FOR
from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts import test_telegram
from tests.contracts.test_slack import SlackDriver
from tests.contracts.test_telegram import TEAM, TelegramDriver
from tests.kit import FakeClock

pytestmark = pytest.mark.platform

ANA, BEN, CLEO = "U7", "U8", "U9"


@pytest.fixture
def slack(slack: SlackDriver) -> SlackDriver:
    slack.slack.groups["S2"] = ("oncall", [CLEO])
    return slack


@pytest.fixture
def telegram(telegram: TelegramDriver) -> TelegramDriver:
    telegram.telegram.admins[TEAM] = [telegram.telegram.people[test_telegram.EVE]]
    return telegram


def calls(driver: SlackDriver) -> list[str]:
    return [method for method, _ in driver.slack.calls if method.startswith("usergroups")]


async def test_a_user_group_is_named_by_its_mention_and_its_people_decide(slack: SlackDriver) -> None:
    assert await slack.command("/approvals approvers @oncall") == "Set: rule 1: approvers @oncall."
    slack.world.script(Says("Shall I?", (note("milk"),)))
    await slack.say("note milk")
    await eventually(slack.cards, "a card")
    assert "Can decide: <!subteam^S2>" in slack.cards()[0].words
    await slack.ben_presses(slack.cards()[0], Verb.APPROVE)
    told = await eventually(lambda: [m for m in slack.slack.posted if m.only_for == BEN], "a word for Ben")
    assert "You may not decide this one. Who may: @oncall." in told[0].words
    await slack.press(slack.cards()[0], Verb.APPROVE, eve=True)
    await eventually(lambda: slack.world.notes == ["milk"], "the note")


async def asked(driver: SlackDriver | TelegramDriver) -> None:
    """Ana asks for a note, and its card is there."""
    driver.world.script(Says("Shall I?", (note("milk"),)))
    await driver.say("note milk")
    await eventually(driver.cards, "a card")


async def remind(driver: SlackDriver | TelegramDriver) -> None:
    assert isinstance(driver.world.clock, FakeClock)
    driver.world.clock.forward(timedelta(hours=1))
    await driver.world.app.core.reminders.remind(driver.world.clock())


async def test_slack_is_asked_once_for_many_presses_within_half_a_minute(slack: SlackDriver) -> None:
    await slack.command("/approvals approvers @oncall")
    await asked(slack)
    card = (await slack.world.app.core.lookup.overview(Actor("slack", f"T1/{ANA}"))).asked[0]
    for user in (ANA, BEN, ANA):
        press = Press(Actor("slack", f"T1/{user}"), Verb.APPROVE, card.proposal_id)
        assert "may not decide" in (await slack.world.app.core.assistant.handle(press)).text
    assert calls(slack) == ["usergroups.users.list", "usergroups.list"]


async def test_while_slack_does_not_say_who_is_in_it_the_card_stays_open(slack: SlackDriver) -> None:
    await slack.command("/approvals approvers @oncall")
    await asked(slack)
    assert isinstance(slack.world.clock, FakeClock)
    slack.world.clock.forward(GROUP_VALID_FOR)
    slack.slack.fail("usergroups.users.list", "missing_scope", times=50)
    await slack.press(slack.cards()[0], Verb.APPROVE, eve=True)
    told = await eventually(lambda: [m for m in slack.slack.posted if m.only_for == CLEO], "a word for Cleo")
    assert told[0].words.strip() == "I can't check who is in @oncall right now. Press again. It stays open."
    assert slack.world.notes == []


async def test_a_user_group_that_slack_does_not_know_decides_nothing(slack: SlackDriver) -> None:
    said = await slack.command("/approvals approvers slack:T1/S9")
    assert "are refused now: no one may decide this here" in said


async def test_a_token_without_the_scope_is_told_when_the_rule_is_set(slack: SlackDriver) -> None:
    slack.slack.scopes = slack.slack.scopes.replace("usergroups:read,", "")
    said = await slack.command("/approvals approvers slack:T1/S2")
    assert "Nod can't see who is in <!subteam^S2>. Slack refused (missing_scope)" in said
    assert "`nod doctor` says which" in said


async def test_a_user_group_of_too_many_people_decides_nothing(slack: SlackDriver) -> None:
    slack.slack.groups["S2"] = ("all", [f"U{number}" for number in range(1001)])
    said = await slack.command("/approvals approvers slack:T1/S2")
    assert "It has 1,001 people; at most 1,000 can decide" in said


async def test_a_reminder_mentions_the_user_group(slack: SlackDriver) -> None:
    await slack.command("/approvals approvers @oncall")
    await slack.command("/approvals remind 1h")
    await asked(slack)
    await remind(slack)
    reminded = await eventually(
        lambda: [m for m in slack.slack.in_channel("C1") if "Still waiting" in m.words], "a reminder"
    )
    assert "<!subteam^S2>" in reminded[0].words


async def test_the_admins_of_a_telegram_group_decide_and_others_do_not(telegram: TelegramDriver) -> None:
    said = await telegram.command(f"/approvals approvers telegram:{TEAM}/admins")
    assert said == "Set: rule 1: approvers the admins of Team."
    await asked(telegram)
    assert "Can decide: the admins of Team" in telegram.cards()[0].words
    await telegram.ben_presses(telegram.cards()[0], Verb.APPROVE)
    told = [q.text for q in telegram.telegram.queries.values() if q.user_id == test_telegram.BEN]
    assert told[0].startswith("You may not decide this one. Who may: the admins of Team.")
    await telegram.press(telegram.cards()[0], Verb.APPROVE, eve=True)
    await eventually(lambda: telegram.world.notes == ["milk"], "the note")


async def test_a_telegram_group_that_moved_is_asked_at_its_new_id(telegram: TelegramDriver) -> None:
    await telegram.command(f"/approvals approvers telegram:{TEAM}/admins")
    telegram.telegram.admins[-100300] = telegram.telegram.admins[TEAM]
    await telegram.telegram.upgrade(TEAM, -100300, told=False)
    assert isinstance(telegram.world.clock, FakeClock)
    telegram.world.clock.forward(GROUP_VALID_FOR)
    said = await telegram.command(f"/approvals approvers telegram:{TEAM}/admins for write_note")
    assert "can't see" not in said


async def test_a_reminder_in_telegram_mentions_each_admin_of_the_group(telegram: TelegramDriver) -> None:
    await telegram.command(f"/approvals approvers telegram:{TEAM}/admins")
    await telegram.command("/approvals remind 1h")
    await asked(telegram)
    await remind(telegram)
    found = [m for m in telegram.telegram.shown(TEAM) if "Still waiting" in m.text]
    assert found[0].text.startswith("Eve\n")
    assert [e["user"]["id"] for e in found[0].entities if e["type"] == "text_mention"] == [test_telegram.EVE]
