"""Approve all over the real core: only where every proposal has been shown in full in this chat."""

from collections.abc import AsyncIterator

import pytest

from bot.app.app import App
from bot.app.assembly import build
from bot.channels.telegram.buttons import ButtonAction, ButtonData
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.domain.model import Finished, StopReason, Text, ToolCall
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset
from tests.channels.telegram.conftest import ANA, FakeTime
from tests.fakes.telegram_server import FakeTelegram, Posted
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.slow

LONG = "long " * 1200
ran: list[str] = []


@tool(summary="Write {name}")
async def write(name: str, text: str) -> str:
    """Write it down.

    Args:
        name: Where
        text: What
    """
    ran.append(name)
    return "written"


@tool(summary="Write {name}")
async def jot(name: str, text: str) -> str:
    """Write something short down.

    Args:
        name: Where
        text: What
    """
    ran.append(name)
    return "written"


class Asks:
    """Proposes three calls, the first two of them too long for a card."""

    name = "asks"

    async def stream(self, transcript, tools):
        asks = type(transcript[-1]).__name__ == "UserText"
        yield Text("Three things.")
        texts = [("write", "one", LONG), ("write", "two", LONG), ("jot", "three", "short")] if asks else []
        calls = tuple(
            ToolCall(f"c{name}", does, f'{{"name": "{name}", "text": "{text}"}}')
            for does, name, text in texts
        )
        yield Finished(StopReason.FINISHED, calls)

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
async def cards(
    make_settings, telegram: FakeTelegram, clock: FakeClock, database_of: Urls
) -> AsyncIterator[list[Posted]]:
    ran.clear()
    make_tables(url := database_of("nod"))
    settings = make_settings(NOD_DATABASE_URL=url, NOD_PORT="0")
    app: App = build(settings, model=Asks(), toolsets=[FixedToolset("own", (write, jot))], clock=clock)
    seconds = FakeTime()
    app.channels["telegram"] = TelegramChannel(
        settings, app.database, clock, ChatPace(seconds, seconds.sleep)
    )
    async with app.running(ticking=False):
        await telegram.say(ANA, "write three things")
        await telegram.until(lambda: len(telegram.shown(ANA, "Asked by Ana")) == 3)
        yield telegram.shown(ANA, "Asked by Ana")


def _approving_all(telegram: FakeTelegram) -> list[Posted]:
    """The messages below which all can be approved."""
    return [message for message in telegram.shown(ANA) if "Approve all 3" in message.labels]


async def test_what_is_cut_is_viewed_with_one_press_and_then_all_can_be_approved(
    cards: list[Posted], telegram: FakeTelegram
):
    await telegram.until(lambda: cards[0].labels[-2:] == ["View what is cut (2)", "Decline all 3"])
    await telegram.press(ANA, cards[0], "View what is cut (2)")
    await telegram.until(lambda: _approving_all(telegram))
    assert "".join(m.text for m in telegram.shown(ANA)).count("long") >= 2400
    await telegram.press(ANA, _approving_all(telegram)[0], "Approve all 3")
    await telegram.until(lambda: all("Done." in c.text for c in cards))
    assert sorted(ran) == ["one", "three", "two"]


async def test_viewed_one_by_one_the_last_view_brings_it(cards: list[Posted], telegram: FakeTelegram):
    await telegram.until(lambda: "View what is cut (2)" in cards[0].labels)
    await telegram.press(ANA, cards[1], "View all")
    await telegram.until(lambda: cards[0].labels[-2:] == ["⋯ More", "Decline all 3"])
    assert not _approving_all(telegram)
    await telegram.press(ANA, cards[0], "View all")
    await telegram.until(lambda: _approving_all(telegram))


async def test_when_what_was_cut_is_decided_the_rest_can_be_approved(
    cards: list[Posted], telegram: FakeTelegram
):
    await telegram.until(lambda: "Decline all 3" in cards[0].labels)
    await telegram.press(ANA, cards[0], "Decline")
    await telegram.until(lambda: "View what is cut (1)" in cards[0].labels)
    await telegram.press(ANA, cards[1], "Decline")
    await telegram.until(lambda: not any(" all " in label for label in cards[0].labels))


async def test_a_forged_approve_all_is_refused(cards: list[Posted], telegram: FakeTelegram):
    ident = cards[0].buttons[0]["callback_data"].split(".")[1]
    query = await telegram.press_data(ANA, cards[0], ButtonData(ButtonAction.APPROVE_ALL, ident, 3).pack())
    assert "View all" in query.text
    assert ran == []
