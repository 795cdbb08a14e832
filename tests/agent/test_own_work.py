"""A turn belongs to this process from the moment it is wanted, where it begins right away."""

from datetime import timedelta

from sqlmodel import Session, col, select

from bot.domain.chat import Address
from bot.domain.people import Actor
from bot.domain.work_limits import Bounds
from bot.store.tables.conversations import TurnRow
from tests.kit import ANA, BEN, Hold, MakeNod, Nod, RecordingChannel, RecordingStream, says


def _owned(session: Session) -> list[bool]:
    return [bool(owner) for owner in session.exec(select(TurnRow.owner).order_by(col(TurnRow.id)))]


def _at(number: int) -> Address:
    return Address("chat", f"place {number}")


async def test_a_turn_of_someone_known_is_owned_before_it_begins(nod: Nod) -> None:
    await nod.say("hello", at=_at(1))
    await nod.idle()
    nod.valve.shut = True
    await nod.say("and here", at=_at(2))
    await nod.say("who is this?", at=_at(3), by=BEN)
    assert (await nod.database.read(_owned))[1:] == [True, False]


async def test_a_turn_that_has_to_wait_for_its_place_is_owned_by_no_one(make_nod: MakeNod) -> None:
    nod = make_nod(bounds=Bounds(turns_by_person=1))
    await nod.say("hello", at=_at(1))
    await nod.idle()
    hold = Hold()
    nod.model.will(says("First.", hold=hold), says("Second."))
    await nod.say("one", at=_at(2))
    await hold.reached.wait()
    await nod.say("two", at=_at(3))
    assert (await nod.database.read(_owned))[1:] == [True, False]
    hold.go.set()
    await nod.idle()
    assert (await nod.said(_at(3)))[-1] == "Second."


async def test_a_turn_whose_process_died_before_it_began_runs_in_the_next_one(nod: Nod) -> None:
    await nod.say("hello", at=_at(1))
    await nod.idle()
    nod.valve.shut = True
    await nod.say("are you there?", at=_at(2), by=ANA)
    nod.model.will(says("Yes."))
    await nod.crash()
    assert (await nod.said(_at(2)))[-1] == "Yes."


class Broken(RecordingChannel):
    """A channel with a fault of its own."""

    def open_stream(self, address: Address, requester: Actor) -> RecordingStream:
        raise RuntimeError("a fault of the channel's own")


async def test_a_turn_that_a_fault_ends_each_time_is_given_up_after_the_second(make_nod: MakeNod) -> None:
    nod = make_nod(channels=[Broken()])
    await nod.say("hello")
    await nod.idle()
    for _ in range(2):
        await nod.tick(timedelta(minutes=1))
    [turn] = await nod.database.read(lambda session: list(session.exec(select(TurnRow))))
    assert (turn.state, turn.attempts) == ("failed", 2)
