"""Work of one kind never waits for work of another, and one person's never for all of another's."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from bot.domain.chat import Address, Reply
from bot.domain.jobs import Job, Queue, Work
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.domain.work_limits import Bounds
from bot.jobs.dispatcher import EmbeddedDispatcher, Slots, SlotTicket
from tests.kit import ANA, BEN, Hold, MakeNod, Nod, call, held, says, until

pytestmark = pytest.mark.slow


def room(number: int) -> Address:
    return Address("chat", f"room-{number}")


async def stuck(nod: Nod, count: int) -> list[Hold]:
    """Ana asks in so many conversations while the model hangs; returns what releases each answer."""
    holds = [Hold() for _ in range(count)]
    nod.model.will(*(says("At last.", hold=hold) for hold in holds))
    for number in range(count):
        await nod.say(by=ANA, at=room(number))
    return holds


async def test_a_hundred_hanging_model_calls_delay_no_approved_write(make_nod: MakeNod) -> None:
    nod = make_nod(bounds=Bounds(turns_by_person=200))
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    holds = await stuck(nod, 110)
    for hold in holds[:100]:
        await hold.reached.wait()
    nod.world.after["paint"] = ran = Hold()
    await nod.press(Verb.APPROVE, p)
    await ran.reached.wait()
    for hold in (ran, *holds):
        hold.go.set()
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED


async def test_a_press_is_taken_in_before_the_messages_that_came_before_it(make_nod: MakeNod) -> None:
    nod = make_nod()
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    ended: list[str] = []

    def start(coming: Coroutine[Any, Any, Reply], name: str) -> asyncio.Task[Reply]:
        task = asyncio.create_task(coming, name=name)
        task.add_done_callback(lambda done: ended.append(done.get_name()))
        return task

    async with held(nod.database) as let_go:
        came = [start(nod.say(by=BEN, at=room(number)), "message") for number in range(200)]
        await asyncio.sleep(0)
        came.append(start(nod.press(Verb.APPROVE, p), "press"))
        await asyncio.sleep(0)
        let_go()
        await asyncio.gather(*came)
    await nod.idle()
    assert ended.index("press") < 64  # what shares its commit may be told before
    assert (await nod.now(p)).state is State.SUCCEEDED


async def test_one_person_with_many_conversations_leaves_room_for_everyone_else(make_nod: MakeNod) -> None:
    nod = make_nod(bounds=Bounds(turns_by_person=3))
    holds = await stuck(nod, 110)
    for hold in holds[:3]:
        await hold.reached.wait()
    nod.model.answers.clear()
    await nod.say("and me?", by=BEN)
    await until(lambda: "OK." in nod.chat.shown)
    assert len(nod.model.transcripts) == 4
    for hold in holds:
        hold.go.set()
    await nod.idle()
    assert len(nod.model.transcripts) == 111


async def test_a_person_is_answered_before_the_wake_ups_of_what_expired(make_nod: MakeNod) -> None:
    nod = make_nod()
    for number in range(60):
        nod.model.will(says("I will.", call("paint", lamp="desk", color="red")))
        await nod.say(at=room(number), by=BEN)
        nod.clock.forward(timedelta(seconds=1))  # so that the last to ask is the last to expire
    await nod.idle()
    holds = [Hold() for _ in range(60)]
    nod.model.will(*(says("A pity.", hold=hold) for hold in holds))
    nod.clock.forward(timedelta(days=2))
    await nod.recovery.expire_due(nod.clock())
    for hold in holds[:20]:
        await hold.reached.wait()
    nod.model.answers.clear()
    await nod.say("and me?", by=ANA, at=room(59))  # in a conversation that waits for its wake-up
    await until(lambda: any("and me?" in (e.text for e in t) for t in nod.model.transcripts))
    for hold in holds:
        hold.go.set()
    await nod.idle()


async def test_after_a_crash_only_a_few_of_the_turns_it_cut_run_at_a_time(make_nod: MakeNod) -> None:
    nod = make_nod(bounds=Bounds(turns_by_person=50))
    holds = await stuck(nod, 30)
    for hold in holds:
        await hold.reached.wait()
    again = [Hold() for _ in range(30)]
    nod.model.will(*(says("At last.", hold=hold) for hold in again))
    await nod.crash(wait=False)
    for hold in again[:4]:
        await hold.reached.wait()
    await nod.recovery.recover(nod.clock())
    assert len(nod.model.transcripts) == 34
    for hold in again:
        hold.go.set()
    await nod.idle()
    assert len(nod.model.transcripts) == 60


async def test_queues_take_turns_and_a_place_given_up_while_waiting_is_not_lost() -> None:
    order: list[str] = []
    go = asyncio.Event()

    async def handle(job: Job) -> tuple[Job, ...]:
        order.append(job.key)
        await go.wait()
        return ()

    async def queue_of(job: Job) -> Queue:
        return Queue(job.key[0], 10)

    dispatcher = EmbeddedDispatcher(dict.fromkeys(Work, 1))
    dispatcher.start(handle, queue_of)
    await dispatcher.wake(*(Job(Work.TURN, key) for key in ("a1", "a2", "a3", "b1", "b2")))
    await until(lambda: bool(order))
    await dispatcher.stop_turn("a3")
    go.set()
    await dispatcher.wait_until_idle()
    assert order == ["a1", "a2", "b1", "b2"]


async def test_a_place_is_not_given_to_one_who_was_cancelled_in_the_same_moment() -> None:
    room = Slots(1)

    async def stay() -> None:
        place = SlotTicket(room, Queue("a", 1))
        try:
            await place.granted
            await asyncio.Event().wait()
        finally:
            place.release()

    inside, waits, last = (asyncio.create_task(stay()) for _ in range(3))
    await asyncio.sleep(0)
    for task in (inside, waits):
        task.cancel()
    last.cancel()
    ends = await asyncio.gather(inside, waits, last, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * 3
    assert room.taken == 0
    await SlotTicket(room, Queue("a", 1)).granted  # the place is free again


async def test_what_is_cancelled_before_it_begins_leaves_its_place() -> None:
    done: list[str] = []

    async def handle(job: Job) -> tuple[Job, ...]:
        done.append(job.key)
        return ()

    dispatcher = EmbeddedDispatcher(dict.fromkeys(Work, 1))
    dispatcher.start(handle)
    dispatcher.begin(Job(Work.TURN, "a"), Queue("ana", 1))
    assert dispatcher.interrupt("a")
    await dispatcher.wait_until_idle()
    dispatcher.begin(Job(Work.TURN, "a"), Queue("ana", 1))
    await dispatcher.wait_until_idle()
    assert done == ["a"]


async def test_who_gives_up_waiting_for_quiet_interrupts_no_work() -> None:
    ended: list[str] = []
    go = asyncio.Event()

    async def handle(job: Job) -> tuple[Job, ...]:
        await go.wait()
        ended.append(job.key)
        return ()

    dispatcher = EmbeddedDispatcher()
    dispatcher.start(handle)
    await dispatcher.wake(Job(Work.TURN, "a"))
    waiting = asyncio.create_task(dispatcher.wait_until_idle())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    go.set()
    await dispatcher.wait_until_idle()
    assert ended == ["a"]
