"""The pace: limits are kept per chat, in order, by a clock that is passed in."""

import asyncio

import pytest
from telegram.error import RetryAfter

from bot.channels.telegram.limits import ChatPace, Urgency
from tests.channels.telegram.conftest import FakeTime, Process, Processes


@pytest.fixture(autouse=True)
def _timedelta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")


async def ask(pace: ChatPace, chat: int, *, fails: list[int] | None = None, rate: int | None = None):
    fails = fails or []

    async def call():
        if fails:
            raise RetryAfter(fails.pop(0))
        return "sent"

    return await pace.process_request(call, (), {}, "sendMessage", {"chat_id": chat}, rate)


async def test_the_twenty_first_message_of_a_minute_waits_in_a_group(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    for _ in range(20):
        await ask(pace, -1)
    assert seconds.slept == []
    await ask(pace, -1)
    assert sum(seconds.slept) == 61


async def test_a_429_is_waited_for_in_its_chat_only(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    assert await ask(pace, 1, fails=[9]) == "sent"
    assert sum(seconds.slept) == 9
    await ask(pace, 2)
    assert sum(seconds.slept) == 9


async def test_a_chat_that_takes_nothing_for_an_hour_is_not_waited_for(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    with pytest.raises(RetryAfter):
        await ask(pace, 1, fails=[3600])
    with pytest.raises(RetryAfter):
        await ask(pace, 1)
    assert seconds.slept == []
    await ask(pace, 2)
    seconds.now += 3590
    assert await ask(pace, 1) == "sent"
    assert sum(seconds.slept) == 10


async def test_those_in_line_are_not_kept_waiting_when_the_chat_takes_nothing_for_an_hour():
    held, time = asyncio.Event(), FakeTime()

    async def sleep(seconds: float) -> None:
        await held.wait()
        time.now += seconds

    pace = ChatPace(time, sleep)
    for _ in range(20):
        await ask(pace, -1)
    waiting = [asyncio.ensure_future(ask(pace, -1, fails=[3600])) for _ in range(3)]
    held.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in found] == [RetryAfter] * 3


async def test_cards_of_a_busy_chat_that_have_ended_wait_five_at_a_time_and_the_rest_is_drawn_later():
    held, time = asyncio.Event(), FakeTime()

    async def sleep(seconds: float) -> None:
        await held.wait()
        time.now += seconds

    pace = ChatPace(time, sleep)
    for _ in range(20):
        await ask(pace, -1)
    waiting = [asyncio.ensure_future(ask(pace, -1, rate=Urgency.ENDED_CARD)) for _ in range(5)]
    await asyncio.sleep(0)
    with pytest.raises(RetryAfter):
        await ask(pace, -1, rate=Urgency.ENDED_CARD)
    text = asyncio.ensure_future(ask(pace, -1))
    held.set()
    assert await asyncio.gather(*waiting, text) == ["sent"] * 6


@pytest.fixture
def paces(seconds: FakeTime) -> list[ChatPace]:
    """Two processes with one bot."""
    everyone = Processes()
    found = [ChatPace(seconds, seconds.sleep) for _ in range(2)]
    for pace in found:
        pace.share(Process(everyone))
    return found


async def test_two_processes_keep_one_pace_in_a_chat(seconds: FakeTime, paces: list[ChatPace]):
    for turn in range(20):
        await ask(paces[turn % 2], -1)
    assert seconds.slept == []
    await ask(paces[0], -1)
    assert sum(seconds.slept) == 61


async def test_where_one_process_is_told_to_wait_the_other_does_too(seconds: FakeTime, paces: list[ChatPace]):
    with pytest.raises(RetryAfter):
        await ask(paces[0], 1, fails=[9], rate=Urgency.PREVIEW)
    await ask(paces[1], 2)
    assert seconds.slept == []
    await ask(paces[1], 1)
    assert sum(seconds.slept) == 9


async def test_a_preview_does_not_wait(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    with pytest.raises(RetryAfter):
        await ask(pace, -1, fails=[9], rate=Urgency.PREVIEW)
    assert seconds.slept == []
    assert not pace.claim_preview(-1)


async def test_a_card_that_will_change_again_leaves_half_to_what_has_ended_and_both_leave_some_to_texts(
    seconds: FakeTime,
):
    pace = ChatPace(seconds, seconds.sleep)
    for _ in range(15):
        await ask(pace, 1, rate=Urgency.OPEN_CARD)
    with pytest.raises(RetryAfter):
        await ask(pace, 1, rate=Urgency.OPEN_CARD)
    for _ in range(10):
        await ask(pace, 1, rate=Urgency.ENDED_CARD)
    for _ in range(5):
        await ask(pace, 1)
    assert seconds.slept == []
    await ask(pace, 1, rate=Urgency.ENDED_CARD)
    assert seconds.slept
    seconds.now += 31
    assert await ask(pace, 1, rate=Urgency.OPEN_CARD) == "sent"


async def test_waiting_has_an_end(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    with pytest.raises(RetryAfter):
        await ask(pace, 1, fails=[1] * 10)


async def test_what_someone_waits_to_read_goes_before_cards_that_have_ended():
    held = asyncio.Event()
    time = FakeTime()

    async def sleep(seconds: float) -> None:
        await held.wait()
        time.now += seconds

    pace = ChatPace(time, sleep)
    for _ in range(20):
        await ask(pace, -1)
    went: list[Urgency] = []

    async def one(urgency: Urgency) -> None:
        async def call() -> None:
            went.append(urgency)

        await pace.process_request(call, (), {}, "sendMessage", {"chat_id": -1}, urgency)

    async with asyncio.TaskGroup() as group:
        for urgency in (Urgency.ENDED_CARD, Urgency.ENDED_CARD, Urgency.TEXT):
            group.create_task(one(urgency))
            await asyncio.sleep(0)
        held.set()
    assert went == [Urgency.TEXT, Urgency.ENDED_CARD, Urgency.ENDED_CARD]


async def test_a_call_that_is_given_up_while_it_waits_holds_no_one_up(seconds: FakeTime):
    stuck = asyncio.Event()

    async def sleep(wait: float) -> None:
        seconds.now += wait
        await stuck.wait()

    pace = ChatPace(seconds, sleep)
    for _ in range(20):
        await ask(pace, -1)
    given_up = asyncio.create_task(ask(pace, -1))
    await asyncio.sleep(0)
    second = asyncio.create_task(ask(pace, -1))
    await asyncio.sleep(0)
    given_up.cancel()
    assert await second == "sent"


async def test_the_whole_bot_stays_under_thirty_a_second(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    for chat in range(1, 32):
        await ask(pace, chat)
    assert sum(seconds.slept) == pytest.approx(1.1)


async def test_quiet_chats_are_forgotten(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    for chat in range(1, 1200):
        seconds.now += 61
        await ask(pace, chat)
    assert len(pace._queues) < 1100


async def test_of_the_cards_that_wait_the_one_that_ended_last_is_drawn_first():
    held, time = asyncio.Event(), FakeTime()

    async def sleep(seconds: float) -> None:
        await held.wait()
        time.now += seconds

    pace, order = ChatPace(time, sleep), []

    async def draw(number: int, rate: int) -> None:
        await ask(pace, -1, rate=rate)
        order.append(number)

    for _ in range(20):
        await ask(pace, -1)
    waiting = [asyncio.ensure_future(draw(each, Urgency.ENDED_CARD)) for each in range(3)]
    waiting.append(asyncio.ensure_future(draw(3, Urgency.PRESSED)))
    await asyncio.sleep(0)
    held.set()
    await asyncio.gather(*waiting)
    assert order == [3, 2, 1, 0]
