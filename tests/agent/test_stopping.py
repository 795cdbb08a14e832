"""Stop on the card of a call that runs: its tool is cancelled, once, and what is told of it is true."""

import asyncio

import pytest

from bot.approvals import decide
from bot.domain.chat import Answer, Press
from bot.domain.people import Actor
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store.audit import log
from tests.approvals.test_decisions import TEAM, red
from tests.kit import ANA, BEN, EVE, Hold, MakeNod, Nod, call, until


class Tidying(Hold):
    """Waits, and when it is cancelled puts things away first."""

    def __init__(self) -> None:
        super().__init__()
        self.ending = Hold()
        self.tidied = False

    async def wait(self) -> None:
        try:
            await super().wait()
        finally:
            await self.ending.wait()
            self.tidied = True


async def running(nod: Nod, *, hold: Hold | None = None, private: bool = True) -> Proposal:
    """A lamp is being painted, and its tool waits."""
    nod.world.before["paint"] = hold or Hold()
    (p,) = await nod.asked(red(), private=private)
    await nod.press(Verb.APPROVE, p, by=ANA if private else BEN)
    await nod.world.before["paint"].reached.wait()
    p = await nod.now(p)
    assert p.state is State.EXECUTING
    return p


async def pressed_elsewhere(nod: Nod, p: Proposal) -> None:
    """Another process takes the press in."""
    press = Press(ANA, Verb.STOP, p.id)
    decided = await nod.database.write(decide.decide, press, nod.gate.policies, nod.clock())
    assert decided.reply.answer is Answer.ACCEPTED


async def test_a_running_call_is_stopped_and_its_end_says_by_whom_and_that_no_one_knows(nod: Nod) -> None:
    p = await running(nod)
    reply = await nod.press(Verb.STOP, p)
    await nod.idle()

    assert (reply.answer, reply.text) == (Answer.ACCEPTED, "Stopping it.")
    p = await nod.now(p)
    assert (p.state, p.cause) == (State.FAILED, Cause.STOPPED)
    assert p.error == "Ana stopped it. What it did until then is unknown."
    assert nod.world.lamps["desk"] == "white"
    card = nod.chat.card_of(p)
    assert card.outcome.startswith("Stopped while it ran, after Ana approved it.")
    assert card.verbs == (Verb.RETRY,)
    assert nod.model.results[-1].startswith("OUTCOME UNKNOWN: approved by Ana and started, then stopped")
    history = await nod.database.read(log.list_rows_of_proposal, p.id)
    assert [(e.verb, e.person) for e in history][-2:] == [("stop", str(ANA)), ("failed", "nod")]


async def test_a_stopped_call_runs_again_only_when_someone_retries_it(nod: Nod) -> None:
    p = await running(nod)
    await nod.press(Verb.STOP, p)
    await nod.idle()
    del nod.world.before["paint"]
    await nod.tick()
    assert nod.world.runs_of(p) == []

    await nod.press(Verb.RETRY, p)
    await nod.idle()
    assert len(nod.world.runs_of(p)) == 1
    p = await nod.now(p)
    assert (p.state, p.cause, p.error) == (State.SUCCEEDED, None, None)


async def test_a_second_press_finds_it_being_stopped_and_a_late_one_that_it_does_not_run(nod: Nod) -> None:
    p = await running(nod)
    both = await asyncio.gather(nod.press(Verb.STOP, p), nod.press(Verb.STOP, p))
    first, second = sorted(both, key=lambda reply: reply.answer is Answer.ALREADY)  # whichever came first
    assert (first.answer, second.answer) == (Answer.ACCEPTED, Answer.ALREADY)
    assert second.text == "It is being stopped already."
    assert [(each.id, each.cause) for each in (*first.proposals, *second.proposals)] == [
        (p.id, Cause.STOPPED),
        (p.id, Cause.STOPPED),
    ]
    await nod.idle()
    late = await nod.press(Verb.STOP, p)
    assert (late.answer, late.text) == (Answer.ALREADY, "It isn't running.")


@pytest.mark.parametrize(
    ("who", "answer"), [(EVE, Answer.REFUSED), (ANA, Answer.ACCEPTED), (BEN, Answer.ACCEPTED)]
)
async def test_the_one_who_asked_and_approvers_stop_it_and_no_one_else(
    make_nod: MakeNod, who: Actor, answer: Answer
) -> None:
    nod = make_nod(policy=TEAM)
    hold = Hold()
    p = await running(nod, hold=hold, private=False)
    assert (await nod.press(Verb.STOP, p, by=who)).answer is answer
    hold.go.set()
    await nod.idle()
    assert ((await nod.now(p)).cause is Cause.STOPPED) is (answer is Answer.ACCEPTED)


async def test_a_stop_that_was_pressed_at_another_process_is_read_from_the_row(nod: Nod) -> None:
    p = await running(nod)
    await pressed_elsewhere(nod, p)
    assert (await nod.now(p)).state is State.EXECUTING
    await nod.recovery.stop_requested_runs(nod.clock())
    await nod.idle()
    assert (await nod.now(p)).cause is Cause.STOPPED


async def test_what_ended_before_it_could_be_stopped_is_told_as_done(nod: Nod) -> None:
    hold = Hold()
    p = await running(nod, hold=hold)
    await pressed_elsewhere(nod, p)
    hold.go.set()
    await nod.idle()
    p = await nod.now(p)
    assert (p.state, p.cause, p.error) == (State.SUCCEEDED, None, None)
    assert nod.world.lamps["desk"] == "red"


async def test_a_crash_while_it_is_stopped_never_runs_it_again(nod: Nod) -> None:
    nod.world.after["pay"] = Hold()
    (p,) = await nod.asked(call("pay", amount=7))
    await nod.press(Verb.APPROVE, p)
    await nod.world.after["pay"].reached.wait()
    await pressed_elsewhere(nod, p)
    await nod.crash()
    p = await nod.now(p)
    assert (p.state, p.cause) == (State.FAILED, Cause.OUTCOME_UNKNOWN)
    assert len(nod.world.runs_of(p)) == 1


async def test_what_a_tool_does_to_end_in_order_is_not_cut_off_by_a_second_look(nod: Nod) -> None:
    hold = Tidying()
    p = await running(nod, hold=hold)
    await nod.press(Verb.STOP, p)
    await hold.ending.reached.wait()
    await until(lambda: nod.chat.card_of(p).verbs == ())
    await nod.recovery.stop_requested_runs(nod.clock())
    await nod.recovery.stop_requested_runs(nod.clock())
    hold.ending.go.set()
    await nod.idle()
    assert nod.world.lamps["desk"] == "white"
    assert (await nod.now(p)).cause is Cause.STOPPED
    assert hold.tidied
