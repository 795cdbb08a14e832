"""The pace: limits are kept per chat, in order, by a clock that is passed in."""

import pytest
from telegram.error import RetryAfter

from bot.channels.telegram.limits import PREVIEW, ChatPace
from tests.telegram_channel.conftest import FakeTime


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
    assert sum(seconds.slept) == 60


async def test_a_429_is_waited_for_in_its_chat_only(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    assert await ask(pace, 1, fails=[9]) == "sent"
    assert sum(seconds.slept) == 9
    await ask(pace, 2)
    assert sum(seconds.slept) == 9


async def test_a_preview_does_not_wait(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    with pytest.raises(RetryAfter):
        await ask(pace, -1, fails=[9], rate=PREVIEW)
    assert seconds.slept == []
    assert not pace.preview(-1)


async def test_waiting_has_an_end(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    with pytest.raises(RetryAfter):
        await ask(pace, 1, fails=[1] * 10)


async def test_the_whole_bot_stays_under_thirty_a_second(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    for chat in range(1, 32):
        await ask(pace, chat)
    assert sum(seconds.slept) == 1


async def test_quiet_chats_are_forgotten(seconds: FakeTime):
    pace = ChatPace(seconds, seconds.sleep)
    for chat in range(1, 1200):
        seconds.now += 61
        await ask(pace, chat)
    assert len(pace._lines) < 1100
