"""The real core behind the channel: a message, a card, a press, the end, all in Telegram."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.app.app import App
from bot.app.assembly import build
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.domain.model import Finished, StopReason, Text, ToolCall
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset
from tests.channels.telegram.conftest import ADMIN, ANA, FakeTime
from tests.fakes.telegram_server import FakeTelegram
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

TEAM = -100200
ran: list[str] = []


@tool(summary='Rename it to "{title}"')
async def rename(title: str) -> str:
    """Give it another name.

    Args:
        title: The new name
    """
    ran.append(title)
    return f"it is called {title} now"


class Scripted:
    """Asks once for a rename, then says how it went."""

    name = "scripted"

    async def stream(self, transcript, tools):
        last = transcript[-1]
        asks = type(last).__name__ == "UserText" and "rename" in last.text
        yield Text("I would rename it." if asks else f"So: {last.text}")
        calls = (ToolCall("c1", "rename", '{"title": "new"}'),) if asks else ()
        yield Finished(StopReason.FINISHED, calls)

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
async def app(
    make_settings, telegram: FakeTelegram, clock: FakeClock, database_of: Urls
) -> AsyncIterator[App]:
    ran.clear()
    make_tables(url := database_of("nod"))
    settings = make_settings(NOD_DATABASE_URL=url, NOD_PORT="0")
    seconds = FakeTime()
    whole = build(settings, model=Scripted(), toolsets=[FixedToolset("own", (rename,))], clock=clock)
    whole.channels["telegram"] = TelegramChannel(
        settings, whole.database, clock, ChatPace(seconds, seconds.sleep)
    )
    async with whole.running(ticking=False):
        yield whole


async def test_a_write_is_proposed_approved_run_and_told(app: App, telegram: FakeTelegram):
    await telegram.say(ANA, "rename it")
    await telegram.see(ANA, "I would rename it.")
    card = await telegram.see(ANA, 'Rename it to "new"')
    assert ran == []
    await telegram.press(ANA, card, "Approve")
    await telegram.see(ANA, "So:")
    await telegram.until(lambda: "Done. Approved by Ana" in card.text)
    assert ran == ["new"]
    assert card.labels == ["Details"]


async def test_a_card_whose_posting_was_never_answered_is_brought_up_to_date_once_it_is_pressed(
    app: App, telegram: FakeTelegram, clock: FakeClock
):
    telegram.lose("sendMessage", 'Rename it to "new"')
    await telegram.say(ANA, "rename it")
    lost = await telegram.see(ANA, 'Rename it to "new"')
    await app.dispatcher.wait_until_idle()
    clock.forward(timedelta(minutes=2))
    await app.core.recovery.recover(clock())
    card = await telegram.see(ANA, 'Rename it to "new"', count=2)
    assert lost is not card
    await telegram.press(ANA, lost, "Approve")
    await telegram.until(
        lambda: "Done. Approved by Ana" in card.text and "Done. Approved by Ana" in lost.text
    )
    assert card.labels == lost.labels == ["Details"]
    assert ran == ["new"]


async def test_what_was_edited_is_what_runs(app: App, telegram: FakeTelegram):
    await telegram.say(ANA, "rename it")
    card = await telegram.see(ANA, 'Rename it to "new"')
    await telegram.press(ANA, card, "Edit")
    await telegram.press(ANA, await telegram.see(ANA, "Which part"), "Title: new")
    await telegram.say(ANA, "better", reply_to=await telegram.see(ANA, "new value for"))
    form = await telegram.see(ANA, "not saved yet")
    await telegram.press(ANA, form, "Save")
    await telegram.until(lambda: "better" in card.text and "better" in form.text)
    await telegram.press(ANA, form, "Approve")
    await telegram.until(lambda: "Done" in card.text and "Done" in form.text)
    assert ran == ["better"]
    assert card.labels == form.labels == ["Details"]


async def test_forms_are_closed_once_their_card_is_decided(app: App, telegram: FakeTelegram):
    await telegram.say(ANA, "rename it")
    card = await telegram.see(ANA, 'Rename it to "new"')
    await telegram.press(ANA, card, "Edit")
    form = await telegram.see(ANA, "Which part")
    await telegram.press(ANA, card, "Approve")
    await telegram.until(lambda: form.text == "This was decided or changed in the meantime.")
    assert form.labels == []
    await telegram.say(ANA, "rename it")
    card = await telegram.see(ANA, 'Rename it to "new"', count=2)
    await telegram.press(ANA, card, "Approve similar")
    form = await telegram.see(ANA, "what else from now on")
    await telegram.press(ANA, card, "Decline")
    await telegram.until(lambda: form.text == "This was decided or changed in the meantime.")


async def test_declined_with_a_reason_nothing_runs_and_the_model_is_told_why(
    app: App, telegram: FakeTelegram
):
    await telegram.say(ANA, "rename it")
    card = await telegram.see(ANA, 'Rename it to "new"')
    await telegram.press(ANA, card, "Decline with a reason")
    await telegram.say(ANA, "the old name is fine", reply_to=await telegram.see(ANA, "why not?"))
    await telegram.see(ANA, "So: DECLINED: Ana asked for something else: the old name is fine")
    await telegram.until(lambda: "Declined by Ana" in card.text)
    assert (ran, card.labels) == ([], ["Details"])


async def test_a_forged_round_is_refused_and_the_card_stays(app: App, telegram: FakeTelegram):
    await telegram.say(ANA, "rename it")
    card = await telegram.see(ANA, 'Rename it to "new"')
    data = card.buttons[0]["callback_data"]
    query = await telegram.press_data(ANA, card, data[: data.rindex(".")] + ".9")
    assert query.alert
    assert "Approve" in card.labels
    assert ran == []


async def test_someone_elses_card_is_decided_by_an_admin_from_a_list(app: App, telegram: FakeTelegram):
    await telegram.say(ANA, "rename it")
    card = await telegram.see(ANA, 'Rename it to "new"')
    await telegram.say(ADMIN, "/pending")
    listed = await telegram.see(ADMIN, "Rename it")
    ident = card.buttons[0]["callback_data"].split(".")[1]
    assert ident[:8] in listed.text
    await telegram.say(ADMIN, f"/approve {ident[:8]}")
    await telegram.until(lambda: "Done. Approved by Ada" in card.text)
    assert ran == ["new"]


async def test_a_shown_proposal_can_be_decided_there(app: App, telegram: FakeTelegram):
    await telegram.say(ANA, "rename it")
    card = await telegram.see(ANA, 'Rename it to "new"')
    ident = card.buttons[0]["callback_data"].split(".")[1]
    await telegram.say(ADMIN, f"/show {ident[:8]}")
    await telegram.see(ADMIN, ident)
    copy = await telegram.see(ADMIN, "Asked by Ana", count=2)  # after the answer, which says so, too
    await telegram.press(ADMIN, copy, "Approve")
    await telegram.until(
        lambda: "Done. Approved by Ada" in card.text and "Done. Approved by Ada" in copy.text
    )
    assert ran == ["new"]
    assert card.labels == copy.labels == ["Details"]


@pytest.mark.parametrize("word", ["/link", "/nod link"])
async def test_accounts_are_linked_by_a_code_that_both_sides_agree_to(
    app: App, telegram: FakeTelegram, word: str
):
    await telegram.say(ANA, word)
    told = await telegram.see(ANA, "Your code is")
    code = told.text.split("Your code is ")[1].split(".")[0]
    await telegram.say(ADMIN, f"{word} {code}")
    await telegram.see(ADMIN, "Linking makes both accounts one person")
    await telegram.say(ADMIN, f"{word} {code} yes")
    await telegram.see(ADMIN, "Now the other side")
    await telegram.say(ANA, f"{word} yes telegram:{ADMIN}")
    await telegram.see(ANA, "are one person now")


async def test_approve_similar_lets_the_next_one_run(app: App, telegram: FakeTelegram):
    await telegram.say(ANA, "rename it")
    card = await telegram.see(ANA, 'Rename it to "new"')
    await telegram.press(ANA, card, "Approve similar")
    ladder = await telegram.see(ANA, "Approve similar")
    await telegram.press(ANA, ladder, "⬜ 2. with any arguments")
    await telegram.press(ANA, ladder, "1 hour")
    await telegram.until(lambda: "G-1 now allows rename with any arguments" in ladder.text)
    await telegram.until(lambda: "Done. Approved by Ana" in card.text)
    await telegram.say(ANA, "rename it again")
    await telegram.until(lambda: telegram.shown(ANA, "Done. Approved by Ana's grant G-1"))
    assert ran == ["new", "new"]
