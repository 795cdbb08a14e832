"""Of several processes, one at a time posts in a conversation or redraws the cards of an answer."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.domain.jobs import Job, Work
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.errors import ChannelError, LeasedElsewhere
from bot.store import processes, turns
from tests.kit import ROOM, FakeClock, Hold, Nod, RecordingChannel, call, says
from tests.kit.urls import POSTGRES_URL, schema

pytestmark = pytest.mark.skipif(not POSTGRES_URL, reason="NOD_TEST_POSTGRES_URL names no PostgreSQL")


class SlowChannel(RecordingChannel):
    """A platform that answers once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.hold: Hold | None = None

    async def post(self, address: Address, markdown: str, after: int = 0) -> None:
        await self._wait()
        await super().post(address, markdown, after)

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:
        await self._wait()
        await super().redraw_card(address, ref, card)

    async def _wait(self) -> None:
        if self.hold is not None:
            self.hold.reached.set()
            await self.hold.go.wait()


class Pair:
    """Two processes of one Nod, in the same chats."""

    def __init__(self, first: Nod, second: Nod, channel: SlowChannel) -> None:
        self.first, self.second, self.channel = first, second, channel


@pytest.fixture
async def pair(clock: FakeClock) -> AsyncIterator[Pair]:
    channel = SlowChannel()
    with schema() as url:
        first = Nod(url, clock, channels=[channel])
        both = first, first.beside()
        for nod in both:
            nod.database.write_now(processes.enter_process, nod.process, clock())
        yield Pair(*both, channel)
        for nod in both:
            await nod.close()


async def undelivered(pair: Pair) -> str:
    """The id of a conversation in which something was said, and refused by the platform."""
    pair.channel.refusals["end"] = pair.channel.refusals["post"] = ChannelError("down")
    reply = await pair.first.say()
    await pair.first.idle()
    pair.channel.refusals.clear()
    pair.first.clock.forward(timedelta(minutes=5))  # so that it would try again, too
    return str(reply.conversation_id)


async def test_what_was_said_is_posted_once_though_two_processes_are_woken(pair: Pair) -> None:
    ident = await undelivered(pair)
    hold = pair.channel.hold = Hold()
    word = Job(Work.DELIVER, ident)
    await pair.second.dispatcher.wake(word)
    await hold.reached.wait()
    with pytest.raises(LeasedElsewhere) as leased:
        await pair.first.assistant.run(word)
    assert leased.value.owner == pair.second.process.id
    hold.go.set()
    await pair.second.idle()
    await pair.second.assistant.run(word)
    assert pair.channel.texts == [(ROOM, "OK.")]


async def test_a_turn_is_left_to_the_process_that_still_posts_there(pair: Pair) -> None:
    ident = await undelivered(pair)
    hold = pair.channel.hold = Hold()
    await pair.second.dispatcher.wake(Job(Work.DELIVER, ident))
    await hold.reached.wait()
    pair.first.valve.shut = True
    await pair.first.say("and now?")
    with pytest.raises(LeasedElsewhere):
        await pair.first.assistant.run(Job(Work.TURN, ident))
    assert await pair.second.database.read(turns.list_wanted, pair.second.process.id) == [ident]
    pair.channel.hold = None
    hold.go.set()
    await pair.second.idle()
    pair.second.model.will(says("Now."))
    await pair.second.assistant.run(Job(Work.TURN, ident))
    assert pair.channel.streams[-1].text == "Now."


async def test_a_card_is_redrawn_by_one_process_at_a_time(pair: Pair) -> None:
    [p] = await pair.first.asked(call("paint", lamp="desk", color="red"))
    hold = pair.channel.hold = Hold()
    await pair.first.press(Verb.DECLINE, p)
    await hold.reached.wait()
    redraw = Job(Work.REDRAW, str(p.message_id))
    with pytest.raises(LeasedElsewhere):
        await pair.second.assistant.run(redraw)
    hold.go.set()
    await pair.first.idle()
    await pair.second.assistant.run(redraw)
    assert [card.state for card in pair.channel.drawn] == [State.DECLINED]


async def test_what_a_gone_process_held_is_free(pair: Pair) -> None:
    def lease(nod: Nod) -> str:
        return pair.first.database.write_now(processes.take_lease, "posts in c1", nod.process.id)

    assert lease(pair.first) == pair.first.process.id
    assert lease(pair.second) == pair.first.process.id
    pair.first.database.write_now(processes.forget_processes, {pair.first.process.id: 0})
    assert lease(pair.second) == pair.second.process.id
    pair.second.database.write_now(processes.release_lease, "posts in c1", pair.first.process.id)
    assert lease(pair.second) == pair.second.process.id
    pair.second.database.write_now(processes.release_lease, "posts in c1", pair.second.process.id)
    pair.second.database.write_now(processes.enter_process, pair.first.process, pair.first.clock())
    assert lease(pair.first) == pair.first.process.id
