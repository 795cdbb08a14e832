"""What channels may look up, each answer checked against who asks and where."""

import pytest

from bot.domain.chat import Address
from bot.domain.policy import Policy
from bot.domain.verbs import Verb
from tests.kit import ADA, ANA, BEN, EVE, ROOM, WALL, MakeNod, Nod, RecordingChannel, call


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    return make_nod(
        policy=Policy(admins=frozenset({str(ADA)})),
        channels=[RecordingChannel(), RecordingChannel("wall")],
        routes=[WALL],
    )


async def test_a_card_is_for_its_people_and_for_those_where_it_stands(nod: Nod) -> None:
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    assert await nod.lookup.card(p.id, ANA) is not None
    assert await nod.lookup.card(p.id, ADA) is not None
    assert await nod.lookup.card(p.id, EVE) is None
    assert await nod.lookup.card(p.id, EVE, ROOM) is not None
    assert await nod.lookup.card(p.id, EVE, WALL) is not None
    assert await nod.lookup.card(p.id, EVE, Address("chat", "elsewhere")) is None
    assert await nod.lookup.card("nothing", ANA) is None


async def test_arguments_to_edit_are_for_those_who_may_decide(nod: Nod) -> None:
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    assert await nod.lookup.arguments(p.id, ANA) == {"lamp": "desk", "color": "red", "coats": 1}
    assert await nod.lookup.arguments(p.id, EVE) is None
    assert await nod.lookup.may_press(p.id, ADA)
    assert not await nod.lookup.may_press(p.id, EVE)
    assert not await nod.lookup.may_press("nothing", ANA)


async def test_who_decides_what_others_asked_for_is_known_wherever_they_are(nod: Nod) -> None:
    assert "Set" in (await nod.command(f"/approvals approvers requester member {BEN}", by=ADA)).text
    [p] = await nod.asked(call("paint", lamp="desk", color="red"), private=False)
    assert await nod.lookup.may_press(p.id, EVE, ROOM)
    assert [await nod.lookup.decides(p.id, each) for each in (BEN, ANA, EVE)] == [True, False, False]
    assert not await nod.lookup.decides("nothing", BEN)
    await nod.press(Verb.REASSIGN, p, by=ADA, reason=str(EVE))
    assert [await nod.lookup.decides(p.id, each) for each in (BEN, ANA, EVE)] == [False, False, True]


async def test_who_asked_for_what_needs_four_eyes_may_edit_or_decline_it_and_not_approve_it(nod: Nod) -> None:
    [p] = await nod.asked(call("smash", lamp="desk"))
    assert p.deciders.four_eyes
    assert not await nod.lookup.may_press(p.id, ANA)
    assert await nod.lookup.arguments(p.id, ANA) == {"lamp": "desk"}


async def test_an_overview_has_what_waits_what_was_asked_and_what_ended_for_one_person(nod: Nod) -> None:
    one, two = await nod.asked(*(call("paint", lamp=lamp, color="red") for lamp in ("desk", "door")))
    await nod.press(Verb.APPROVE, one, by=ADA)
    await nod.idle()
    ana, ada, eve = [await nod.lookup.overview(person) for person in (ANA, ADA, EVE)]
    assert [c.proposal_id for c in ana.waiting] == [c.proposal_id for c in ana.asked] == [two.id]
    assert [c.proposal_id for c in ana.recent] == [one.id]
    assert [c.proposal_id for c in ada.waiting] == [two.id]
    assert (ada.asked, [c.proposal_id for c in ada.recent]) == ((), [one.id])
    assert (eve.waiting, eve.asked, eve.recent) == ((), (), ())


async def test_an_overview_is_one_read_however_much_it_shows(nod: Nod) -> None:
    rows = [call("paint", lamp=lamp, color="red") for lamp in ("desk", "door", "roof")]
    await nod.asked(*rows, call("pay", amount=1), call("pay", amount=2))
    reads = nod.database.reads
    overview = await nod.lookup.overview(ANA)
    batch, *others = sorted(overview.waiting, key=lambda each: -len(each.rows))  # they expire together
    assert (len(batch.rows), batch.title) == (3, "Paint lamp: 3 changes")
    assert [len(each.rows) for each in others] == [0, 0]
    assert nod.database.reads == reads + 1
