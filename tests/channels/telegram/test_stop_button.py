"""Telegram's own stop button on a growing answer (Bot API 10.3) does what /stop does."""

from datetime import timedelta

import pytest

from bot.domain.chat import Address, Answer, Reply
from bot.domain.events import STOPPED, Ending, TextDelta, TurnEnded
from bot.domain.people import Actor
from tests.channels.telegram.conftest import ANA
from tests.channels.telegram.core import FakeCore
from tests.fakes.telegram_server import FakeTelegram
from tests.kit import FakeClock

HERE = Address("telegram", str(ANA))
WHO = Actor("telegram", str(ANA), "Ana")
STRANGER = 666


async def test_the_button_stops_the_answer_that_it_belongs_to(
    channel, telegram: FakeTelegram, core: FakeCore
) -> None:
    core.reply = Reply(Answer.ACCEPTED, STOPPED)
    stream = channel.open_stream(HERE, WHO)
    await stream.send(TextDelta("Hello"))
    await telegram.stop_draft(ANA)
    await core.took()
    [command] = core.commands
    assert (command.name, command.text, command.address, str(command.actor)) == ("stop", "", HERE, str(WHO))
    await stream.send(TurnEnded(Ending.STOPPED, 1, ""))
    assert [each.text for each in telegram.shown(ANA)] == ["Hello\n\n⏹ Stopped."]


async def test_what_else_was_stopped_is_told(channel, telegram: FakeTelegram, core: FakeCore) -> None:
    core.reply = Reply(
        Answer.ACCEPTED, "Stopped, together with a teammate; what they had proposed is cancelled."
    )
    await channel.open_stream(HERE, WHO).send(TextDelta("Hello"))
    await telegram.stop_draft(ANA)
    await telegram.see(ANA, "together with a teammate")


async def test_a_stop_names_when_its_answer_began_so_that_it_stops_no_later_one(
    channel, telegram: FakeTelegram, core: FakeCore, clock: FakeClock
) -> None:
    began = clock()
    await channel.open_stream(HERE, WHO).send(TextDelta("one"))
    clock.forward(timedelta(seconds=5))
    await channel.open_stream(HERE, WHO).send(TextDelta("two"))
    await telegram.stop_draft(ANA, telegram.drafts[0][1])
    await core.took()
    [command] = core.commands
    assert command.begun_by is not None
    assert timedelta() <= command.begun_by - began <= timedelta(seconds=1)


async def test_a_server_that_does_not_know_the_button_is_as_before(
    channel, telegram: FakeTelegram, core: FakeCore
) -> None:
    telegram.has_stop = False
    await channel.open_stream(HERE, WHO).send(TextDelta("Hello"))
    assert (telegram.drafts[-1][2], telegram.stoppable) == ("Hello", set())


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {},
        {"chat": {"id": "x", "type": "private"}, "draft_id": 1},
        {"chat": {"id": ANA, "type": "group"}, "draft_id": 1},
        {"chat": {"id": ANA, "type": "private"}, "draft_id": None},
        {"chat": {"id": ANA, "type": "private"}, "draft_id": 10**30},
        {"chat": {"id": STRANGER, "type": "private", "first_name": "Eve"}, "draft_id": 1},
    ],
)
async def test_a_stop_that_is_odd_or_of_a_stranger_stops_nothing(
    channel, telegram: FakeTelegram, core: FakeCore, told: object
) -> None:
    await telegram.deliver({"stopped_message_generation": told})
    await telegram.say(ANA, "next")
    await core.took()
    assert core.commands == []
