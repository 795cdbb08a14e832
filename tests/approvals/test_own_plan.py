"""A plan of the lead agent: what its approval lets run, what still asks, and its steps ticked off."""

from datetime import timedelta

import pytest

from bot.domain import kinds
from bot.domain.chat import Answer
from bot.domain.plans import Approver
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store.audit import log
from tests.kit import BEN, FakeClock, MakeNod, Nod, call, says


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(team=True)


def paint(lamp: str, color: str = "red") -> dict[str, object]:
    return {"tool": "paint", "arguments": {"lamp": lamp, "color": color}}


STEPS = [
    {"description": "Look around"},
    {"description": "Paint two lamps", "calls": [paint("desk"), paint("door")]},
    {"description": "Smash one", "calls": [{"tool": "smash", "arguments": {"lamp": "roof"}}]},
]


async def planned(nod: Nod, steps: object = STEPS, *, approve: bool = True) -> Proposal:
    (p,) = await nod.asked(call("plan_submit", summary="New lamps", steps=steps))
    if approve:
        nod.model.will(says("Off I go."))
        await nod.press(Verb.APPROVE, p)
        await nod.idle()
    return await nod.now(p)


async def test_the_calls_it_listed_run_once_each_and_its_steps_are_ticked_off(nod: Nod) -> None:
    p = await planned(nod, approve=False)
    assert (p.kind, p.description, p.teammate) == (kinds.PLAN, "Plan: New lamps", "")
    card = nod.chat.card_of(p)
    assert card.verbs == (Verb.APPROVE, Verb.DECLINE, Verb.REVISE, Verb.ASK, Verb.EXTEND)
    assert (
        card.outline[1].text == 'Paint two lamps; paint(lamp = "desk", color = "red", coats = 1); '
        'paint(lamp = "door", color = "red", coats = 1)'
    )
    assert "(still asks: it can't be undone)" in card.outline[2].text
    assert card.outcome == "Plan waiting for approval."
    nod.model.will(says("I look.", call("plan_step_done", step=1)), says("Now?"))
    await nod.press(Verb.APPROVE, p)
    await nod.idle()
    assert (await nod.now(p)).ticked == (1,)
    await nod.restart()

    both = (call("paint", lamp=lamp, color="red") for lamp in ("desk", "door"))
    desk, door = await nod.asked(*both)
    assert [each.state for each in (desk, door)] == [State.SUCCEEDED, State.SUCCEEDED]
    assert desk.decided_by == "Ana's grant G-1"
    assert (await nod.now(p)).ticked == (1, 2)
    card = nod.chat.card_of(p)
    assert card.outcome == "Plan approved by Ana. 2 of 3 steps done."
    assert [line.text[:2] == "✅ " for line in card.outline] == [True, True, False]
    assert "tick" in {e.verb for e in await nod.database.read(log.list_rows_of_proposal, p.id)}

    (again,) = await nod.asked(call("paint", lamp="desk", color="red"))
    (smash,) = await nod.asked(call("smash", lamp="roof"))
    assert [each.state for each in (again, smash)] == [State.PROPOSED, State.PROPOSED]
    await nod.approve(smash)
    await nod.approve(again)
    assert (await nod.now(p)).ticked == (1, 2, 3)


async def test_changed_arguments_and_other_people_ask_as_ever(nod: Nod) -> None:
    await planned(nod)
    (other,) = await nod.asked(call("paint", lamp="desk", color="blue"))
    assert other.state is State.PROPOSED
    (bens,) = await nod.asked(call("paint", lamp="desk", color="red"), by=BEN)
    assert bens.state is State.PROPOSED


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"tool": "repaint", "arguments": {}}, "Your steps name tools that you do not have: repaint."),
        ({"tool": "look", "arguments": {"lamp": "desk"}}, "List only calls that change something"),
        ({"tool": "paint", "arguments": {"lamp": "desk"}}, "color: This is needed."),
        ({"tool": "enroll", "arguments": {"name": "Kim", "code": "hunter2-x"}}, "holds a secret"),
    ],
)
async def test_a_call_that_could_not_be_made_is_in_no_plan(nod: Nod, step: object, why: str) -> None:
    assert (
        await nod.asked(call("plan_submit", summary="x", steps=[{"description": "y", "calls": [step]}])) == []
    )
    assert why in nod.model.results[-1]


async def test_nothing_runs_under_a_plan_that_was_declined_or_replaced(nod: Nod) -> None:
    first = await planned(nod, approve=False)
    nod.model.will(says("Then not."))
    reply = await nod.press(Verb.DECLINE, first)
    await nod.idle()
    assert (reply.answer, reply.text) == (Answer.ACCEPTED, "Plan rejected.")
    (desk,) = await nod.asked(call("paint", lamp="desk", color="red"))
    assert desk.state is State.PROPOSED
    await nod.press(Verb.CANCEL, desk)
    await planned(nod)
    await planned(nod, [{"description": "Only this", "calls": [paint("roof")]}], approve=False)
    (door,) = await nod.asked(call("paint", lamp="door", color="red"))
    assert door.state is State.PROPOSED


async def test_a_call_that_was_declined_runs_under_a_plan_that_was_approved_since(
    nod: Nod, clock: FakeClock
) -> None:
    red = call("paint", lamp="desk", color="red")
    (declined,) = await nod.asked(red)
    steps = [{"description": "Paint", "calls": [paint("desk")]}]
    nod.model.will(says("A plan, then.", call("plan_submit", summary="One lamp", steps=steps)))
    await nod.press(Verb.DECLINE, declined)
    await nod.idle()
    clock.forward(timedelta(minutes=1))
    nod.model.will(says("Now.", red))
    await nod.press(Verb.APPROVE, (await nod.proposals())[-1])
    await nod.idle()
    assert nod.world.lamps["desk"] == "red"


async def test_a_plan_is_sent_back_in_words_and_another_takes_its_place(nod: Nod) -> None:
    p = await planned(nod, approve=False)
    nod.model.will(says("Another."))
    reply = await nod.press(Verb.REVISE, p, reason="Spare the roof.")
    await nod.idle()
    assert reply.text == "The agent has been told and will revise the plan."
    assert nod.model.results[-1] == (
        "CHANGES ASKED FOR: Ana sent the plan back. What should change: Spare the roof.. "
        "Submit a new version with plan_submit."
    )


async def test_the_lead_agent_has_no_say_over_a_plan_of_its_own(make_nod: MakeNod) -> None:
    nod = make_nod(team=True, policy=Policy(plan_approver=Approver.BOTH))
    p = await planned(nod)
    assert (p.state, p.deciders.lead, p.decided_by) == (State.SUCCEEDED, None, "Ana")


async def test_a_step_is_ticked_only_where_it_lists_no_calls(nod: Nod) -> None:
    await planned(nod)
    for step, why in ((2, "ticked off by itself"), (4, "Your plan has steps 1 to 3.")):
        await nod.asked(call("plan_step_done", step=step))
        assert why in nod.model.results[-1]
