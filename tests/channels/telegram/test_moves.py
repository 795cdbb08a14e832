"""A group becomes a supergroup: it keeps its conversations, rules and cards, and no other message is hit."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.limits import ChatPace
from bot.domain.chat import Address, Answer, ChatMoved, Message, Press, Reply
from bot.domain.people import Actor
from bot.domain.verbs import Verb
from bot.errors import CopyGone
from bot.settings import Settings
from bot.store import conversations, posted_cards
from bot.store.database import Database
from tests.channels.telegram.conftest import FakeTime, Process, Processes
from tests.channels.telegram.core import PROPOSAL, FakeCore, done, make_card
from tests.fakes.telegram_server import FakeTelegram
from tests.kit import FakeClock

pytestmark = pytest.mark.platform

BEN = 303
OLD, NEW = -42, -100_200
HERE = Address("telegram", str(OLD))


@pytest.fixture
async def channel(
    make_channel: Callable[..., TelegramChannel], core: FakeCore, telegram: FakeTelegram
) -> AsyncIterator[TelegramChannel]:
    """Running, in a group that is allowed by its old id."""
    telegram.group(OLD, basic=True)
    telegram.person(BEN, "Ben")
    running = make_channel(TELEGRAM_ALLOWED_CHATS=str(OLD))
    await running.start(core.inbox, core)
    yield running
    await running.stop()


async def moved(telegram: FakeTelegram, core: FakeCore) -> None:
    """The group moves, and the bot has heard of it."""
    await telegram.upgrade(OLD, NEW)
    await telegram.say(BEN, "@nod_test_bot hello", NEW)
    await core.took()


async def test_who_was_allowed_stays_allowed_and_the_conversation_continues(
    channel, telegram: FakeTelegram, core: FakeCore
):
    await moved(telegram, core)
    assert [(m.text, m.address) for m in core.messages] == [("hello", HERE)]
    await channel.post(HERE, "hello Ben")
    await channel.post_file(HERE, "export.txt", "x")
    assert [m.text for m in telegram.shown(NEW)] == ["hello Ben", ""]
    assert not any(p["chat_id"] == OLD for _, p in telegram.calls if "chat_id" in p)


async def test_a_group_that_moved_unheard_of_is_followed_at_the_first_refusal(
    channel, telegram: FakeTelegram, core: FakeCore
):
    await telegram.upgrade(OLD, NEW, told=False)
    ref = await channel.post_card(HERE, make_card())
    assert ref.startswith(f"{NEW}/")
    await channel.post_file(HERE, "export.txt", "x")
    assert len([p for _, p in telegram.calls if p.get("chat_id") == OLD]) == 1
    await telegram.say(BEN, "@nod_test_bot hello", NEW)
    await core.took()
    assert core.messages[0].address == HERE


@pytest.mark.parametrize("told", [True, False])
async def test_an_old_message_is_gone_and_no_message_of_the_new_group_is_changed(
    channel, telegram: FakeTelegram, core: FakeCore, told: bool
):
    card = core.propose(make_card(), HERE)
    ref = await channel.post_card(HERE, card)
    await telegram.upgrade(OLD, NEW, told=told)
    number = int(ref.split("/")[1])
    while telegram.message_id(NEW) < number - 1:
        pass
    await channel.post(HERE, "another message of the bot")
    assert telegram.shown(NEW)[0].message_id == number
    with pytest.raises(CopyGone):
        await channel.redraw_card(HERE, ref, done(card))
    with pytest.raises(CopyGone):
        await channel.redraw_card(HERE, ref, done(card))
    assert [m.text for m in telegram.shown(NEW)] == ["another message of the bot"]


async def test_an_open_card_is_posted_again_once_and_can_be_pressed_there(
    channel, telegram: FakeTelegram, core: FakeCore, database: Database
):
    card = core.propose(make_card(), HERE)
    ref = await channel.post_card(HERE, card)
    await database.write(posted_cards.add_card, PROPOSAL, HERE, ref, card.version)
    assert await database.read(posted_cards.list_outdated_messages) == []
    await moved(telegram, core)
    assert await database.read(posted_cards.list_outdated_messages) == [1]  # so that it is redrawn
    for _ in range(2):
        with pytest.raises(CopyGone):
            await channel.redraw_card(HERE, ref, card)
    (again,) = telegram.shown(NEW, "Close issue #7")
    kept = await database.read(posted_cards.list_copies, PROPOSAL)
    assert [(c.address, c.ref) for c in kept] == [(HERE, ref), (HERE, f"{NEW}/{again.message_id}")]
    core.reply = Reply(Answer.ACCEPTED, "Approved.")
    await telegram.press(BEN, again, "Approve")
    (press,) = core.presses
    assert (press.verb, press.address) == (Verb.APPROVE, HERE)
    await channel.redraw_card(HERE, f"{NEW}/{again.message_id}", done(card))
    assert again.labels == ["Open", "Details"]


async def test_it_is_known_after_a_restart(
    channel, make_channel: Callable[..., TelegramChannel], telegram: FakeTelegram, core: FakeCore
):
    await moved(telegram, core)
    await channel.stop()
    second = make_channel(TELEGRAM_ALLOWED_CHATS=str(OLD))
    await second.start(core.inbox, core)
    await telegram.say(BEN, "@nod_test_bot again", NEW)
    await core.took(2)
    assert [m.address for m in core.messages] == [HERE, HERE]
    await second.stop()


@pytest.fixture
async def both(
    make_settings: Callable[..., Settings], core: FakeCore, telegram: FakeTelegram, database: Database, clock
) -> AsyncIterator[tuple[Processes, list[TelegramChannel]]]:
    """Two processes with one bot, in the group; the first of them polls."""
    telegram.group(OLD, basic=True)
    telegram.person(BEN, "Ben")
    seconds, processes, made = FakeTime(), Processes(), []

    async def soon(_: float) -> None:
        await asyncio.sleep(0.001)

    for _ in range(2):
        pace = ChatPace(seconds, seconds.sleep)
        settings = make_settings(TELEGRAM_ALLOWED_CHATS=str(OLD))
        made.append(TelegramChannel(settings, database, clock, pace, soon))
        others = Process(processes)
        processes.holds = processes.members[0]
        await made[-1].start(core.inbox, core, others=others)
    yield processes, made
    for each in made:
        await each.stop()


async def test_what_one_process_learns_the_others_know(both, telegram: FakeTelegram, core: FakeCore):
    _, (_, second) = both
    await moved(telegram, core)
    await second.post(HERE, "hello Ben")
    assert not any(p["chat_id"] == OLD for _, p in telegram.calls if "chat_id" in p)


async def test_who_takes_over_the_polling_knows_it_though_it_was_not_told(
    both, telegram: FakeTelegram, core: FakeCore
):
    processes, _ = both
    processes.deaf = True
    await moved(telegram, core)
    processes.holds = processes.members[1]
    await telegram.say(BEN, "@nod_test_bot again", NEW)
    await core.took(2)
    await telegram.say(BEN, "@nod_test_bot and again", NEW)
    await core.took(3)
    assert [m.address for m in core.messages] == [HERE] * 3


async def test_a_card_posted_by_a_route_with_the_new_id_is_pressed_at_that_address(
    channel, telegram: FakeTelegram, core: FakeCore, database: Database, clock: FakeClock
):
    await moved(telegram, core)
    route = Address("telegram", str(NEW))
    card = core.propose(make_card(), route)
    ref = await channel.post_card(route, card)
    await database.write(posted_cards.add_card, PROPOSAL, route, ref, card.version)
    await telegram.press(BEN, await telegram.see(NEW, "Close issue #7"), "Approve")
    assert core.presses[0].address == route
    assert core.presses[0].actor == Actor("telegram", str(BEN))
    assert isinstance(core.presses[0], Press)


async def test_where_people_talked_at_both_ids_the_core_is_told_once_that_they_are_one_chat(
    channel,
    make_channel: Callable[..., TelegramChannel],
    telegram: FakeTelegram,
    core: FakeCore,
    database: Database,
    clock: FakeClock,
):
    there = Address("telegram", str(NEW))
    said = Message(there, Actor("telegram", str(BEN)), "hello", "1")
    await database.write(conversations.begin_conversation, said, "hello", clock())
    core.fault = OSError("the disk is full")
    await telegram.upgrade(OLD, NEW, told=False)
    with pytest.raises(OSError, match="full"):
        await channel.post(HERE, "hello")
    await channel.stop()
    core.fault = None
    for _ in range(2):
        again = make_channel(TELEGRAM_ALLOWED_CHATS=str(OLD))
        await again.start(core.inbox, core)
        await again.stop()
    assert core.taken == [ChatMoved(HERE, there)]
