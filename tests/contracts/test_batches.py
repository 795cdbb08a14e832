"""A batch in Slack, Telegram and Discord: one message, rows to choose, few calls to the platform."""

from typing import Any

import pytest
from sqlalchemy import text

from bot.domain.verbs import Verb
from bot.testing.driver import SeenCard
from bot.testing.steps import note
from bot.testing.world import Says, eventually
from tests.contracts.test_discord import ANA as ANA_ON_DISCORD
from tests.contracts.test_discord import DiscordDriver
from tests.contracts.test_slack import ANA, BEN, SlackDriver
from tests.contracts.test_telegram import ANA as ANA_THERE
from tests.contracts.test_telegram import TEAM, TelegramDriver
from tests.fakes.slack_state import Modal

pytestmark = pytest.mark.platform

Driver = SlackDriver | TelegramDriver | DiscordDriver


async def asked(driver: Driver, how_many: int, *further: tuple[str, dict[str, Any]]) -> SeenCard:
    """The one card of so many notes, and of what else is asked for in the same answer."""
    driver.world.script(
        Says("All of them.", (*(note(f"item {n}") for n in range(1, how_many + 1)), *further))
    )
    await driver.say("note all of that")
    await eventually(driver.cards, "a card")
    return driver.cards()[0]


async def ends(driver: Driver, words: str) -> SeenCard:
    await eventually(lambda: any(words in each.words for each in driver.cards()[:1]), f"a card: {words!r}")
    return driver.cards()[0]


def edits(driver: SlackDriver | TelegramDriver) -> int:
    """How many calls to the platform showed cards."""
    if isinstance(driver, SlackDriver):
        posts = [a for a in driver.slack.called("chat.postMessage") if "item" in str(a)]
        return len(posts) + len(driver.slack.called("chat.update"))
    return sum(method.startswith(("sendMessage", "editMessage")) for method, _ in driver.telegram.calls)


async def test_in_slack_rows_are_chosen_by_checkboxes_and_the_numbers_are_said(slack: SlackDriver) -> None:
    card = await asked(slack, 12)
    assert len(slack.cards()) == 1
    await slack.slack.click(card.handle, "Choose", ANA)
    window: Modal = (await eventually(lambda: slack.slack.modals, "a window"))[-1]
    first = [f"{n}. item {n}" for n in range(1, 11) if n != 3]
    await slack.slack.submit(ANA, {"Approve of 1 to 10": first, "The others": "Decline them"})
    assert window.view["submit"]["text"] == "Approve 11, decline 1"
    await slack.slack.submit(ANA)
    assert "11 approved, 1 declined." in window.words
    await ends(slack, "11 done, 1 declined. Approved by Ana")
    assert len(slack.world.notes) == 11
    assert "item 3" not in slack.world.notes


async def test_in_slack_one_row_is_looked_at_and_decided_by_itself(slack: SlackDriver) -> None:
    slack.world.notes[:] = ["item 1", "item 2", "item 3"]
    erase = [("erase", {"text": f"item {n}"}) for n in (1, 2, 3)]
    card = await asked(slack, 0, *erase)
    assert "Approve all 3" not in card.handle.buttons
    await slack.slack.click(card.handle, "Choose", BEN)
    window = (await eventually(lambda: slack.slack.modals, "a window"))[-1]
    menu = next(block for block in window.view["blocks"] if block["type"] == "actions")["elements"][0]
    chosen = menu | {"selected_option": menu["options"][1]}
    await slack.slack.act(BEN, chosen)
    await eventually(lambda: len(slack.slack.modals) == 2, "the window of the row")
    row = slack.slack.modals[-1]
    assert row.view["submit"]["text"] == "Approve deletion"
    await slack.slack.submit(BEN)
    await ends(slack, "2 waiting, 1 done. Approved by Ben")
    assert slack.world.notes == ["item 1", "item 3"]


async def test_a_hundred_rows_are_one_message_and_few_calls_to_slack(slack: SlackDriver) -> None:
    card = await asked(slack, 100)
    assert len(slack.cards()) == 1
    await slack.slack.click(card.handle, "Choose", ANA)
    window = (await eventually(lambda: slack.slack.modals, "a window"))[-1]
    assert len([b for b in window.view["blocks"] if b["type"] == "input"]) == 11
    window.open = False
    await slack.press(card, Verb.APPROVE_ALL)
    await ends(slack, "100 done")
    await slack.world.app.dispatcher.wait_until_idle()
    assert len(slack.world.notes) == 100
    assert edits(slack) <= 20


async def test_in_telegram_rows_are_toggled_and_what_is_picked_survives_a_restart(
    telegram: TelegramDriver,
) -> None:
    card = await asked(telegram, 12)
    assert len(telegram.cards()) == 1
    message = card.handle.message
    await telegram.telegram.press(ANA_THERE, message, "Choose")
    await eventually(lambda: "✅ 3" in message.labels, "the rows")
    await telegram.telegram.press(ANA_THERE, message, "✅ 3")
    await eventually(lambda: "⬜ 3" in message.labels, "the row that is not picked")
    await telegram.world.restart()
    await telegram.telegram.press(ANA_THERE, message, "→ 2 of 2")
    await eventually(lambda: "✅ 12" in message.labels, "the second page")
    assert "Approve 11, decline 1" in message.labels
    await telegram.telegram.press(ANA_THERE, message, "Approve 11, decline 1")
    await ends(telegram, "11 done, 1 declined. Approved by Ana")
    assert "item 3" not in telegram.world.notes


async def test_a_hundred_rows_are_one_message_and_few_calls_to_telegram(telegram: TelegramDriver) -> None:
    card = await asked(telegram, 100)
    await telegram.press(card, Verb.APPROVE_ALL)
    await ends(telegram, "100 done")
    await telegram.world.app.dispatcher.wait_until_idle()
    assert len(telegram.cards()) == 1
    assert len(telegram.world.notes) == 100
    assert edits(telegram) <= 20


async def test_in_discord_rows_are_toggled_for_the_one_who_chooses(discord: DiscordDriver) -> None:
    card = await asked(discord, 12)
    assert len(discord.cards()) == 1
    message = card.handle.message
    await discord.discord.press(ANA_ON_DISCORD, message, "Choose")
    page = (await eventually(lambda: [m for m in discord.discord.messages if m.only_for], "the rows"))[-1]
    await discord.discord.press(ANA_ON_DISCORD, page, "✅ 3")
    await eventually(lambda: "⬜ 3" in page.buttons, "the row that is not picked")
    await discord.discord.press(ANA_ON_DISCORD, page, "Approve 11, decline 1")
    await ends(discord, "11 done, 1 declined. Approved by Ana")
    assert "item 3" not in discord.world.notes


async def at_row(slack: SlackDriver, card: SeenCard, number: int) -> Modal:
    """Look at that row by itself: in the window of all rows, from the menu below."""
    for window in slack.slack.modals:
        window.open = False
    before = len(slack.slack.modals)
    await slack.slack.click(card.handle, "Choose" if "Choose" in card.handle.buttons else "Rows", ANA)
    window = (await eventually(lambda: slack.slack.modals[before:], "a window"))[0]
    [menu] = [e for b in window.view["blocks"] if b["type"] == "actions" for e in b["elements"]]
    chosen = next(o for o in menu["options"] if o["text"]["text"].startswith(f"{number}."))
    await slack.slack.act(ANA, menu | {"selected_option": chosen})
    await eventually(lambda: len(slack.slack.modals) == before + 2, "the window of the row")
    return slack.slack.modals[-1]


def button(window: Modal, label: str) -> dict[str, Any]:
    every = [e for b in window.view["blocks"] if b["type"] == "actions" for e in b["elements"]]
    return next(each for each in every if each["text"]["text"] == label)


async def test_in_slack_a_row_is_edited_by_itself(slack: SlackDriver) -> None:
    card = await asked(slack, 3)
    await slack.slack.act(ANA, button(await at_row(slack, card, 2), "Edit"))
    await eventually(
        lambda: "input" in {b["type"] for b in slack.slack.modals[-1].view["blocks"]}, "the form"
    )
    await slack.slack.submit(ANA, {"Text": "item two"})
    await ends(slack, "2 waiting, 1 done")
    assert slack.world.notes == ["item two"]


REWRITE = [("rewrite", {"text": f"text {n}"}) for n in (1, 2, 3)]


async def test_in_slack_a_row_that_is_done_is_undone_by_itself(slack: SlackDriver) -> None:
    slack.world.notes.append("as it was")
    card = await asked(slack, 0, *REWRITE)
    await at_row(slack, card, 2)
    await slack.slack.submit(ANA)
    await ends(slack, "2 waiting, 1 done")
    await slack.press(slack.cards()[0], Verb.DECLINE_ALL)
    await ends(slack, "1 done, 2 declined")
    assert slack.world.notes == ["text 2"]
    await slack.world.restart()
    await slack.slack.act(ANA, button(await at_row(slack, slack.cards()[0], 2), "Undo"))
    await eventually(lambda: slack.world.notes == ["as it was"], "what was there before")


async def test_in_telegram_a_row_that_is_done_is_undone_by_itself(telegram: TelegramDriver) -> None:
    telegram.world.notes.append("as it was")
    card = await asked(telegram, 0, *REWRITE)
    fake, message = telegram.telegram, card.handle.message
    await fake.press(ANA_THERE, message, "Choose")
    await eventually(lambda: "✅ 2" in message.labels, "the rows")
    for other in ("✅ 1", "✅ 3"):
        await fake.press(ANA_THERE, message, other)
    await eventually(lambda: "Approve 1, decline 2" in message.labels, "what that decides")
    await fake.press(ANA_THERE, message, "Approve 1, decline 2")
    await ends(telegram, "1 done, 2 declined")
    await telegram.world.restart()
    await fake.press(ANA_THERE, message, "Rows")
    await eventually(lambda: "🔎 2" in message.labels, "the numbers")
    await fake.press(ANA_THERE, message, "🔎 2")

    async def offering(label: str) -> Any:
        return (await eventually(lambda: [m for m in fake.shown(TEAM) if label in m.labels], label))[-1]

    await fake.press(ANA_THERE, await offering("Undo"), "Undo")
    await fake.press(ANA_THERE, await offering("Keep it"), "Undo")
    await eventually(lambda: telegram.world.notes == ["as it was"], "what was there before")


async def test_in_discord_a_row_that_is_done_is_undone_by_itself(discord: DiscordDriver) -> None:
    discord.world.notes.append("as it was")
    card = await asked(discord, 0, *REWRITE)
    fake = discord.discord

    async def shown_after(press: Any) -> Any:
        before = len(fake.messages)
        await press
        return (await eventually(lambda: fake.messages[before:], "an answer"))[-1]

    page = await shown_after(fake.press(ANA_ON_DISCORD, card.handle.message, "Choose"))
    for other in ("✅ 1", "✅ 3"):
        await fake.press(ANA_ON_DISCORD, page, other)
    await eventually(lambda: "Approve 1, decline 2" in page.buttons, "what that decides")
    await fake.press(ANA_ON_DISCORD, page, "Approve 1, decline 2")
    await ends(discord, "1 done, 2 declined")
    page = await shown_after(fake.press(ANA_ON_DISCORD, card.handle.message, "Rows"))
    row = await shown_after(fake.press(ANA_ON_DISCORD, page, "🔎 2"))
    await fake.press(ANA_ON_DISCORD, row, "Undo")
    await eventually(lambda: discord.world.notes == ["as it was"], "what was there before")


CHECK = "It runs again exactly as shown. Check first whether it already happened."
UNPIN = [("unpin", {"text": f"item {n}"}) for n in (1, 2, 3)]


async def one_fails(driver: Driver, *, unknown: bool = False) -> SeenCard:
    """Approve three rows of which the second fails; then what it needs is there.

    ``unknown``: it may have happened all the same.
    """
    driver.world.notes[:] = ["item 1", "item 3"]
    card = await asked(driver, 0, *UNPIN)
    await driver.press(card, Verb.APPROVE_ALL)
    await ends(driver, "2 done, 1 failed")
    driver.world.notes[:] = ["item 2"]
    if unknown:
        lost = text("UPDATE proposal SET cause = 'outcome_unknown' WHERE state = 'failed'")
        driver.world.app.database.write_now(lambda session: session.connection().execute(lost))
    await driver.world.restart()
    return driver.cards()[0]


async def retried(driver: Driver) -> None:
    await ends(driver, "3 done")
    assert driver.world.notes == []


async def test_in_slack_a_row_that_failed_is_retried_by_itself(slack: SlackDriver) -> None:
    card = await one_fails(slack)
    await slack.slack.act(ANA, button(await at_row(slack, card, 2), "Retry"))
    await retried(slack)


@pytest.mark.parametrize("unknown", [False, True])
async def test_in_telegram_a_row_that_failed_is_retried_by_itself_and_asks_first_if_it_may_have_happened(
    telegram: TelegramDriver, *, unknown: bool
) -> None:
    card = await one_fails(telegram, unknown=unknown)
    fake, message = telegram.telegram, card.handle.message
    await fake.press(ANA_THERE, message, "Rows")
    await eventually(lambda: "🔎 2" in message.labels, "the numbers")
    await fake.press(ANA_THERE, message, "🔎 2")
    row = await eventually(
        lambda: next((m for m in fake.shown(TEAM) if "Retry" in m.labels), None), "the row"
    )
    query = await fake.press(ANA_THERE, row, "Retry")
    if unknown:
        assert query.text == f"Retry? {CHECK}"
        assert row.labels == ["Retry", "Not now"]
        assert telegram.world.notes == ["item 2"]
        await fake.press(ANA_THERE, row, "Retry")
    await retried(telegram)


@pytest.mark.parametrize("unknown", [False, True])
async def test_in_discord_a_row_that_failed_is_retried_by_itself_and_asks_first_if_it_may_have_happened(
    discord: DiscordDriver, *, unknown: bool
) -> None:
    card = await one_fails(discord, unknown=unknown)
    fake = discord.discord

    async def shown_after(press: Any) -> Any:
        before = len(fake.messages)
        await press
        return (await eventually(lambda: fake.messages[before:], "an answer"))[-1]

    page = await shown_after(fake.press(ANA_ON_DISCORD, card.handle.message, "Rows"))
    row = await shown_after(fake.press(ANA_ON_DISCORD, page, "🔎 2"))
    if unknown:
        row = await shown_after(fake.press(ANA_ON_DISCORD, row, "Retry"))
        assert f"Retry? {CHECK}" in row.text
        assert discord.world.notes == ["item 2"]
    await fake.press(ANA_ON_DISCORD, row, "Retry")
    await retried(discord)


async def test_at_home_in_slack_a_batch_is_one_entry_whose_rows_are_chosen(slack: SlackDriver) -> None:
    home = {"type": "app_home_opened", "user": ANA, "channel": slack.slack.dm(ANA), "tab": "home"}
    await slack.slack.deliver_event(home)
    await asked(slack, 3)
    await eventually(lambda: "Choose" in str(slack.slack.homes.get(ANA)), "the batch at home")
    await slack.slack.click_home(ANA, "Choose")
    await eventually(lambda: slack.slack.modals, "a window")
    await slack.slack.submit(
        ANA, {"Approve of 1 to 3": ["1. item 1", "2. item 2"], "The others": "Decline them"}
    )
    await slack.slack.submit(ANA)
    await ends(slack, "2 done, 1 declined. Approved by Ana")
    await eventually(lambda: "2 done, 1 declined" in str(slack.slack.homes[ANA]), "its end at home")


async def test_in_telegram_a_row_is_opened_and_edited_by_itself(telegram: TelegramDriver) -> None:
    card = await asked(telegram, 3)
    fake, message = telegram.telegram, card.handle.message
    await fake.press(ANA_THERE, message, "Choose")
    await eventually(lambda: "Look at one row" in message.labels, "the rows")
    await fake.press(ANA_THERE, message, "Look at one row")
    await eventually(lambda: "🔎 2" in message.labels, "the numbers")
    await fake.press(ANA_THERE, message, "🔎 2")
    row = await fake.see(message.chat_id, "Note item 2")
    await fake.press(ANA_THERE, row, "Edit")
    await fake.press(ANA_THERE, await fake.see(message.chat_id, "Which part"), "Text: item 2")
    question = await fake.see(message.chat_id, "new value for Text")
    await fake.say(ANA_THERE, "item two", message.chat_id, reply_to=question)
    form = await fake.see(message.chat_id, "not saved yet")
    await fake.press(ANA_THERE, form, "Save")
    await eventually(lambda: "item two" in fake.seen_by(ANA_THERE, TEAM)[-1].text, "the edited row")
    await fake.press(ANA_THERE, fake.seen_by(ANA_THERE, TEAM)[-1], "Approve")
    await eventually(lambda: telegram.world.notes == ["item two"], "the note")


async def test_in_discord_a_row_is_opened_and_edited_by_itself(discord: DiscordDriver) -> None:
    card = await asked(discord, 3)
    fake = discord.discord

    async def shown_after(press: Any) -> Any:
        before = len(fake.messages)
        await press
        return (await eventually(lambda: fake.messages[before:], "an answer"))[-1]

    page = await shown_after(fake.press(ANA_ON_DISCORD, card.handle.message, "Choose"))
    await fake.press(ANA_ON_DISCORD, page, "Look at one row")
    await eventually(lambda: "🔎 2" in page.buttons, "the numbers")
    row = await shown_after(fake.press(ANA_ON_DISCORD, page, "🔎 2"))
    assert "Note item 2" in row.text
    await fake.press(ANA_ON_DISCORD, row, "Edit")
    edited = await shown_after(fake.submit(fake.windows[-1], Text="item two"))
    await fake.press(ANA_ON_DISCORD, edited, "Approve as edited")
    await ends(discord, "2 waiting, 1 done")
    assert discord.world.notes == ["item two"]
