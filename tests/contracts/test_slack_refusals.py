"""Each documented answer of Slack's, once, at each moment of a card, an escalation, a reminder and a file."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from bot.domain.verbs import Verb
from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts.test_slack import ANA, REVIEW, SlackDriver, in_slack
from tests.fakes.slack_state import Posted
from tests.kit import FakeClock
from tests.kit.urls import Urls
from tests.tiers import thin

pytestmark = [pytest.mark.platform, pytest.mark.slow]

PASSING: dict[str, dict[str, Any]] = {
    "for a while": {"error": "ratelimited", "status": 429, "retry_after": 1},
    "its own fault": {"error": "internal_error"},
    "a grave fault": {"error": "fatal_error"},
    "late": {"error": "request_timeout"},
    "away": {"error": "service_unavailable"},
    "a channel on its way": {"error": "external_channel_migrating"},
    "a gateway's": {"error": "", "status": 502},
    "plain text": {"error": "Bad gateway", "plain": True},
    "no answer": {"error": "", "cut_off": True},
    "no answer, though done": {"error": "", "cut_off": True, "acts": True},
    "a token, by mistake": {"error": "invalid_auth"},
}
FINAL: dict[str, dict[str, Any]] = {
    each: {"error": each}
    for each in (
        "channel_not_found",
        "is_archived",
        "not_in_channel",
        "restricted_action",
        "restricted_action_read_only_channel",
        "restricted_action_thread_locked",
        "thread_not_found",
        "cannot_reply_to_message",
        "msg_too_long",
        "invalid_blocks",
        "messages_tab_disabled",
        "a_word_of_tomorrow",
    )
}
ONE_OF_EACH = (
    "for a while", "its own fault", "plain text", "no answer", "no answer, though done",
    "a token, by mistake", "channel_not_found", "cannot_reply_to_message", "msg_too_long", "invalid_blocks",
    "a_word_of_tomorrow",
)  # fmt: skip
"""Of what Nod takes alike, as the first test shows of each."""
MOST_CALLS = 40


@pytest.fixture
async def driver(database_of: Urls, clock: FakeClock) -> AsyncIterator[SlackDriver]:
    async with in_slack(database_of("nod"), clock) as driver:
        yield driver


def everywhere(driver: SlackDriver) -> list[Posted]:
    return [each for place in ("C1", "C2", driver.slack.dm(ANA)) for each in driver.slack.cards(place)]


async def pass_by(driver: SlackDriver, seconds: int = 24) -> None:
    """Time passes in steps, with all that the scheduler does in it."""
    for _ in range(0, seconds, 6):
        await driver.world.let_pass(timedelta(seconds=6))
        await tick(driver)


async def tick(driver: SlackDriver) -> None:
    now = driver.world.clock()
    await driver.world.app.core.reminders.remind(now)
    await driver.world.app.core.reminders.send(now)
    await driver.world.app.dispatcher.wait_until_idle()


async def asked(driver: SlackDriver) -> None:
    driver.world.script(Says("Shall I?", (note("milk"),)), Says("It is noted."))
    await driver.say("note milk")
    await driver.world.app.dispatcher.wait_until_idle()


def pending(driver: SlackDriver) -> list[Posted]:
    return [each for each in everywhere(driver) if {"Approve", REVIEW} & set(each.buttons)]


async def approve(driver: SlackDriver, card: Posted) -> None:
    """Whichever of the two it has: where Slack refuses some blocks, the brief card is to be read first."""
    if "Approve" in card.buttons:
        await driver.slack.click(card, "Approve", ANA)
        return
    before = len(driver.slack.modals)
    await driver.slack.click(card, REVIEW, ANA)
    await eventually(lambda: driver.slack.modals[before:], "what it does, in full")
    await driver.slack.submit(ANA)


async def decided(driver: SlackDriver) -> None:
    """One card can still be approved, and what it says is then done, once."""
    (card,) = await eventually(lambda: pending(driver), "a card to decide by")
    await approve(driver, card)
    await eventually(lambda: driver.world.notes, "the note")
    await pass_by(driver, 12)
    assert driver.world.notes == ["milk"]
    assert not pending(driver)
    assert len(driver.slack.calls) < MOST_CALLS + 60


@pytest.mark.parametrize("refusal", thin([*PASSING, *FINAL], 5))
async def test_a_card_that_is_refused_once_is_there_once_and_works(driver: SlackDriver, refusal: str) -> None:
    driver.slack.fail("chat.postMessage", **{**PASSING, **FINAL}[refusal])
    await asked(driver)
    await pass_by(driver)
    assert len(pending(driver)) == 1
    await decided(driver)
    assert len(everywhere(driver)) == 1


@pytest.mark.parametrize("refusal", thin(each for each in ONE_OF_EACH if each in PASSING))
async def test_a_redraw_that_is_refused_once_tells_the_end_all_the_same(
    driver: SlackDriver, refusal: str
) -> None:
    await asked(driver)
    (card,) = await eventually(lambda: pending(driver), "the card")
    driver.slack.fail("chat.update", **PASSING[refusal])
    await driver.slack.click(card, "Approve", ANA)
    await eventually(lambda: driver.world.notes, "the note")
    await pass_by(driver)
    (card,) = everywhere(driver)
    assert "Done" in card.words
    assert driver.world.notes == ["milk"]


@pytest.mark.parametrize("refusal", thin(ONE_OF_EACH, 5))
async def test_an_escalation_that_is_refused_once_reaches_people(driver: SlackDriver, refusal: str) -> None:
    await driver.command("/approvals escalate 1h slack:T1/C2")
    await asked(driver)
    (first,) = await eventually(lambda: pending(driver), "the card")
    driver.slack.fail("chat.postMessage", **{**PASSING, **FINAL}[refusal])
    await driver.world.let_pass(timedelta(hours=1))
    await pass_by(driver)
    there = [each for each in pending(driver) if each.channel == "C2"]
    told = [each for each in driver.told() if "can't be shown in" in each]
    assert (len(there), len(told)) == ((1, 0) if refusal in PASSING or there else (0, 1))
    await driver.slack.click(first, "Approve", ANA)
    await eventually(lambda: driver.world.notes, "the note")
    await pass_by(driver, 12)
    assert not pending(driver)
    assert driver.world.notes == ["milk"]


@pytest.mark.parametrize("method", ["chat.getPermalink", "chat.postMessage"])
@pytest.mark.parametrize("refusal", thin(ONE_OF_EACH, 5))
async def test_a_reminder_that_is_refused_once_reminds_or_says_why_not(
    driver: SlackDriver, refusal: str, method: str
) -> None:
    await driver.command("/approvals remind 1h")
    await asked(driver)
    await eventually(lambda: pending(driver), "the card")
    before = len(driver.slack.posted)
    driver.slack.fail(method, **{**PASSING, **FINAL}[refusal])
    await driver.world.let_pass(timedelta(hours=1))
    await pass_by(driver, 60)
    said = driver.slack.posted[before:]
    assert said, "silence"
    assert len(said) == 1, [each.words for each in said]
    await decided(driver)


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
@pytest.mark.parametrize(
    "refusal",
    thin(each for each in ONE_OF_EACH if each in PASSING or each.endswith(("_tomorrow", "_found"))),
)
async def test_a_file_that_is_refused_once_arrives_or_people_are_told(
    driver: SlackDriver, refusal: str, method: str
) -> None:
    driver.world.script(Says("Shall I?", (("print_lines", {"count": 1000}),)), Says("It is printed."))
    await driver.say("print a thousand lines")
    await driver.world.app.dispatcher.wait_until_idle()
    await eventually(lambda: pending(driver), "the card")
    driver.slack.fail(method, **{**PASSING, **FINAL}[refusal])
    await driver.press(driver.cards()[0], Verb.APPROVE)
    await eventually(lambda: "It is printed." in " ".join(driver.texts()), "the closing words")
    await pass_by(driver, 90)
    assert len(driver.slack.called(method)) <= 4
    told = [each for each in (*driver.texts(), *driver.told()) if "file" in each.lower()]
    # where the answer to the last call is lost, nothing tells whether the file is there
    most = 2 if (method, refusal) == ("files.completeUploadExternal", "no answer, though done") else 1
    assert 1 <= len(driver.files()) <= most or told, "silence"
