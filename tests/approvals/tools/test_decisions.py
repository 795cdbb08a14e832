"""What the agent may tell of proposals: never more than the one who asks may see."""

import json
from typing import Any

from bot.domain.chat import Address
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from tests.kit import ADA, ANA, BEN, EVE, MakeNod, Nod, call, says

DESK = {"lamp": "desk", "color": "red"}
DOOR = {"lamp": "door", "color": "blue"}
ELSEWHERE, HERE = Address("chat", "elsewhere"), Address("chat", "here")


async def told(nod: Nod, name: str, **how: Any) -> list[dict[str, Any]]:
    """What the tool tells the person who asks."""
    nod.model.will(says("", call(name)), says("There."))
    await nod.say("what waits?", **how)
    await nod.idle()
    return json.loads(nod.model.results[-1])["proposals"]


async def test_people_are_told_what_waits_for_them_wherever_it_stands(nod: Nod) -> None:
    [p] = await nod.asked(call("paint", DESK), at=ELSEWHERE)
    [found] = await told(nod, "proposals_waiting", at=HERE)
    assert found["id"] == p.id
    assert found["you_may_decide"] is True


async def test_the_rows_of_a_batch_are_told_as_one(nod: Nod) -> None:
    colors = ("red", "green", "blue")
    batch = await nod.asked(*(call("paint", lamp="desk", color=color) for color in colors), at=ELSEWHERE)
    [alone] = await nod.asked(call("paint", DOOR), at=HERE)
    found = await told(nod, "proposals_waiting", at=HERE)
    told_as = {each["id"]: each.get("more_of_its_batch") for each in found}
    assert told_as == {alone.id: None, batch[0].id: 2}


async def test_others_are_not_told_of_it(nod: Nod) -> None:
    await nod.asked(call("paint", DESK), at=ELSEWHERE)
    assert await told(nod, "proposals_waiting", at=HERE, by=EVE) == []


async def test_an_admin_is_told_of_what_an_admin_may_decide(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA])
    [p] = await nod.asked(call("paint", DESK), at=ELSEWHERE)
    assert [found["id"] for found in await told(nod, "proposals_waiting", at=HERE, by=ADA)] == [p.id]


async def test_where_others_read_along_only_this_conversation_is_told(nod: Nod) -> None:
    await nod.asked(call("paint", DESK), at=ELSEWHERE)
    [here] = await nod.asked(call("paint", DOOR), at=HERE, private=False)
    assert [f["id"] for f in await told(nod, "proposals_waiting", at=HERE, private=False)] == [here.id]


async def test_people_are_told_what_became_of_what_they_asked_for(nod: Nod) -> None:
    first, second = await nod.asked(call("paint", DESK), call("paint", DOOR), at=ELSEWHERE)
    await nod.approve(first)
    await nod.press(Verb.DECLINE, second)
    await nod.idle()
    found = await told(nod, "my_decisions", at=HERE, by=ANA)
    assert {(f["id"], f["state"]) for f in found} == {
        (first.id, State.SUCCEEDED),
        (second.id, State.DECLINED),
    }
    assert await told(nod, "my_decisions", at=HERE, by=BEN) == []
