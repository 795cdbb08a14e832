"""What channels may look up, each answer checked against who asks and where."""

import pytest

from bot.domain.chat import Address, Verb
from bot.domain.policy import Policy
from tests.core.conftest import MakeNod
from tests.kit import ADA, ANA, EVE, ROOM, WALL, Nod, RecordingChannel, call


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    return make_nod(
        policy=Policy(admins=frozenset({str(ADA)})),
        channels=[RecordingChannel(), RecordingChannel("wall")],
        routes=[WALL],
    )


async def test_a_card_is_for_its_people_and_for_those_where_it_stands(nod: Nod) -> None:
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    assert await nod.desk.card(p.id, ANA) is not None
    assert await nod.desk.card(p.id, ADA) is not None
    assert await nod.desk.card(p.id, EVE) is None
    assert await nod.desk.card(p.id, EVE, ROOM) is not None
    assert await nod.desk.card(p.id, EVE, WALL) is not None
    assert await nod.desk.card(p.id, EVE, Address("chat", "elsewhere")) is None
    assert await nod.desk.card("nothing", ANA) is None


async def test_arguments_to_edit_are_for_those_who_may_decide(nod: Nod) -> None:
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    assert await nod.desk.arguments(p.id, ANA) == {"lamp": "desk", "color": "red"}
    assert await nod.desk.arguments(p.id, EVE) is None
    assert await nod.desk.may_decide(p.id, ADA)
    assert not await nod.desk.may_decide(p.id, EVE)
    assert not await nod.desk.may_decide("nothing", ANA)


async def test_an_overview_has_what_waits_what_was_asked_and_what_ended_for_one_person(nod: Nod) -> None:
    one, two = await nod.asked(*(call("paint", lamp=lamp, color="red") for lamp in ("desk", "door")))
    await nod.press(Verb.APPROVE, one, by=ADA)
    await nod.idle()
    ana, ada, eve = [await nod.desk.overview(person) for person in (ANA, ADA, EVE)]
    assert [c.proposal_id for c in ana.waiting] == [c.proposal_id for c in ana.asked] == [two.id]
    assert [c.proposal_id for c in ana.recent] == [one.id]
    assert [c.proposal_id for c in ada.waiting] == [two.id]
    assert (ada.asked, [c.proposal_id for c in ada.recent]) == ((), [one.id])
    assert (eve.waiting, eve.asked, eve.recent) == ((), (), ())
