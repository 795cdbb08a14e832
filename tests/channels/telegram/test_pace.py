"""A chat that takes nothing more for a while: presses are answered, and what they ask for comes first."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.domain.chat import Address
from bot.domain.risks import Level
from bot.domain.verbs import Verb
from bot.errors import ChannelError
from bot.settings import Settings
from bot.store import posted_cards
from bot.store.database import Database
from tests.channels.telegram.conftest import ANA, FakeTime
from tests.channels.telegram.core import PROPOSAL, FakeCore, done, make_card
from tests.fakes.telegram_server import FakeTelegram
from tests.kit import FakeClock

pytestmark = pytest.mark.platform

TEAM = -100200
OTHER = "1" * 32
VERBS = (Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.EXTEND)


@pytest.fixture
def passes() -> asyncio.Event:
    """Set it, and time passes for those who wait."""
    return asyncio.Event()


@pytest.fixture
async def channel(
    make_settings: Callable[..., Settings],
    database: Database,
    clock: FakeClock,
    seconds: FakeTime,
    core: FakeCore,
    passes: asyncio.Event,
) -> AsyncIterator[TelegramChannel]:
    async def sleep(duration: float) -> None:
        await passes.wait()
        await seconds.sleep(duration)

    running = TelegramChannel(make_settings(), database, clock, ChatPace(seconds, sleep))
    await running.start(core.inbox, core)
    yield running
    passes.set()
    await running.stop()


@pytest.mark.parametrize(("chat", "most"), [(TEAM, 20), (ANA, 30)])
async def test_in_a_chat_that_is_full_a_decision_counts_and_what_is_only_shown_says_one_moment(
    channel, telegram: FakeTelegram, core: FakeCore, passes: asyncio.Event, chat: int, most: int
):
    telegram.group(TEAM)
    here = Address("telegram", str(chat))
    first, second = make_card(verbs=VERBS), make_card(verbs=VERBS, proposal_id=OTHER, title="Open the gate")
    core.propose(first, here)
    core.cards[OTHER] = second
    for card in (first, second):
        await channel.post_card(here, card)
    for i in range(most - 2):
        await channel.post(here, f"text {i}")
    shown, other = telegram.shown(chat, "Close")[0], telegram.shown(chat, "Open the gate")[0]
    waiting = asyncio.create_task(channel.post(here, "a text that waits already"))
    said = [
        await telegram.press_data(ANA, shown, data["callback_data"])
        for data in shown.buttons
        if data["text"] in ("Edit", "⋯ More")
    ]
    assert [query.text for query in said] == ["One moment."] * 2
    await telegram.press(ANA, other, "Approve")
    assert [(p.verb, p.proposal_id) for p in core.presses] == [(Verb.APPROVE, OTHER)]
    passes.set()
    await telegram.see(chat, "Which part")
    await telegram.until(lambda: any(label.startswith("Decline with") for label in shown.labels))
    await waiting


async def test_in_a_chat_that_is_full_who_approves_what_cant_be_undone_is_answered_before_they_are_asked(
    channel, telegram: FakeTelegram, core: FakeCore, passes: asyncio.Event
):
    telegram.group(TEAM)
    here = Address("telegram", str(TEAM))
    core.propose(make_card(verbs=VERBS, level=Level.DESTRUCTIVE), here)
    await channel.post_card(here, core.cards[PROPOSAL])
    for i in range(19):
        await channel.post(here, f"text {i}")
    shown = telegram.shown(TEAM)[0]
    waiting = asyncio.create_task(channel.post(here, "a text that waits already"))
    approve = next(each for each in shown.buttons if each["text"].startswith("Approve"))
    said = await telegram.press_data(ANA, shown, approve["callback_data"])
    assert said.text == "One moment."
    passes.set()
    await telegram.until(lambda: "Not now" in shown.labels)
    assert core.presses == []
    await waiting


@pytest.mark.parametrize("label", ["Edit", "Decline with a reason"])
async def test_what_an_old_card_of_a_topic_asks_is_asked_in_its_topic(
    channel, telegram: FakeTelegram, core: FakeCore, database: Database, label: str
):
    telegram.group(TEAM, forum=True)
    topic = Address("telegram", f"{TEAM}/5")
    card = core.propose(make_card(verbs=VERBS), topic)
    ref = await channel.post_card(topic, card)
    await database.write(posted_cards.add_card, PROPOSAL, topic, ref, card.version, card.fingerprint)
    shown = telegram.shown(TEAM)[0]
    shown.inaccessible = True
    await telegram.press(ANA, shown, label)
    asked = await telegram.until(lambda: telegram.shown(TEAM)[1:])
    assert {each.thread for each in asked} == {5}
    if label == "Edit":
        asked[0].inaccessible = True
        await telegram.press(ANA, asked[0], "Title: Old title")
        question = await telegram.see(TEAM, "new value for Title")
        assert question.thread == 5


async def test_a_card_whose_end_is_shown_leaves_the_place_to_cards_that_say_theirs(
    channel, telegram: FakeTelegram, core: FakeCore
):
    here = Address("telegram", str(ANA))
    ended = done(core.propose(make_card(), here))
    ref = await channel.post_card(here, ended)
    other = await channel.post_card(here, ended)
    for i in range(14):  # with the cards more than half of what a chat with one person takes
        await channel.post(here, f"text {i}")
    await channel.redraw_card(here, ref, ended)
    with pytest.raises(ChannelError):  # only the buttons of its group change: a moment later is soon enough
        await channel.redraw_card(here, ref, replace(ended, result="another"))
    assert telegram.shown(ANA)[0].text.endswith("closed")
    await channel.redraw_card(here, other, ended)
    await channel.redraw_card(here, ref, replace(ended, round=2, result="another"))
    assert telegram.shown(ANA)[0].text.endswith("another")
