"""``kill -9`` at any instant loses nothing: what was accepted is answered, what was approved runs, once."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from bot.approvals import runs
from bot.domain.chat import Answer
from bot.domain.jobs import Job, Process, Work
from bot.domain.model import Entry, ToolCall, ToolResult
from bot.domain.proposal_states import Cause, State
from bot.domain.verbs import Verb
from bot.store import processes
from tests.kit import FakeClock, Hold, MakeNod, Nod, Scripted, call, says, until


def red(lamp: str = "desk") -> ToolCall:
    return call("paint", lamp=lamp, color="red")


async def test_a_message_not_yet_committed_is_taken_in_when_it_is_delivered_again(nod: Nod) -> None:
    nod.database.fuse = nod.database.writes + 1
    lost = asyncio.create_task(nod.say("hi", event="e1"))
    await nod.database.dead.wait()
    lost.cancel()
    await nod.crash()
    assert (await nod.say("hi", event="e1")).answer is Answer.ACCEPTED
    await nod.idle()
    assert await nod.said() == ["hi", "OK."]


async def test_a_message_accepted_before_a_crash_is_answered_after_it(nod: Nod) -> None:
    nod.valve.shut = True
    await nod.say("hi", event="e1")
    await nod.crash()
    assert await nod.said() == ["hi", "OK."]
    assert nod.chat.shown == "OK."
    assert (await nod.say("hi", event="e1")).answer is Answer.DUPLICATE


async def test_a_turn_cut_by_a_crash_is_run_again_from_its_rows(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("Let me look.", call("look", lamp="desk")), says("It is white.", hold=hold))
    await nod.say("what color?")
    await hold.reached.wait()
    await nod.crash()
    assert nod.model.results == ["white"]
    assert nod.world.reads == ["desk"]
    assert await nod.said() == ["what color?", "Let me look.", "OK."]
    assert [text for _, text in nod.chat.texts] == ["Let me look."]


async def test_a_parked_turn_continues_after_a_restart_between_asking_and_deciding(nod: Nod) -> None:
    [p] = await nod.asked(red())
    await nod.restart()
    assert len(nod.model.transcripts) == 1
    assert (await nod.approve(p)).state is State.SUCCEEDED
    assert nod.model.results[0].startswith("SUCCEEDED")


async def test_a_crash_after_parking_before_the_card_was_posted_posts_it(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("I will.", red(), hold=hold))
    await nod.say()
    await hold.reached.wait()
    nod.database.fuse = nod.database.writes + 3  # schema and answer are committed, its card's copy is not
    hold.go.set()
    await nod.database.dead.wait()
    nod.chat.cards.clear()
    nod.chat.places.clear()
    await nod.crash()
    [p] = await nod.proposals()
    assert nod.chat.card_of(p).pending


async def test_an_approval_committed_before_a_crash_runs_after_it(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.valve.shut = True
    await nod.press(Verb.APPROVE, p)
    assert (await nod.now(p)).state is State.APPROVED
    await nod.crash()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert len(nod.world.runs) == 1
    assert nod.model.results[0].startswith("SUCCEEDED")


@pytest.mark.parametrize("happened", [False, True], ids=["before it acted", "after it acted"])
async def test_a_crash_while_a_tool_runs_leaves_its_outcome_unknown_and_never_runs_it_again(
    nod: Nod, *, happened: bool
) -> None:
    [p] = await nod.asked(red())
    hold = Hold()
    (nod.world.after if happened else nod.world.before)["paint"] = hold
    await nod.press(Verb.APPROVE, p)
    await hold.reached.wait()
    await nod.crash()
    await nod.restart()
    await nod.tick(timedelta(hours=1))
    p = await nod.now(p)
    assert (p.state, p.cause) == (State.FAILED, Cause.OUTCOME_UNKNOWN)
    assert len(nod.world.runs) == happened
    assert nod.model.results[0].startswith("OUTCOME UNKNOWN")
    assert "retry" in [str(action) for action in nod.chat.card_of(p).verbs]


async def test_a_crash_while_an_idempotent_tool_runs_runs_it_again_with_its_key(nod: Nod) -> None:
    [p] = await nod.asked(call("pay", amount=5))
    nod.world.after["pay"] = hold = Hold()
    await nod.press(Verb.APPROVE, p)
    await hold.reached.wait()
    del nod.world.after["pay"]
    await nod.crash()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert nod.world.paid == {p.idempotency_key: 5}


async def test_a_crash_after_the_execution_before_the_resume_still_resumes(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.valve.shut = True
    await nod.press(Verb.APPROVE, p)
    await nod.assistant.run(Job(Work.EXECUTE, p.id))
    assert len(nod.model.transcripts) == 1
    await nod.crash()
    assert nod.model.results[0].startswith("SUCCEEDED")
    assert len(nod.world.runs) == 1


async def test_a_crash_after_the_final_text_before_its_delivery_delivers_it(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("Here you are.", hold=hold))
    await nod.say("hi")
    await hold.reached.wait()
    nod.database.fuse = nod.database.writes + 1
    nod.database.dies_after_commit = True
    hold.go.set()
    await nod.database.dead.wait()
    await nod.crash()
    assert [text for _, text in nod.chat.texts] == ["Here you are."]
    assert len(nod.model.transcripts) == 1


async def test_a_process_leaves_alone_what_it_runs_itself_whatever_the_clock_does(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.before["paint"] = hold = Hold()
    await nod.press(Verb.APPROVE, p)
    await hold.reached.wait()
    nod.clock.forward(timedelta(hours=1))
    await nod.recovery.recover(nod.clock())
    assert (await nod.now(p)).state is State.EXECUTING
    hold.go.set()
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED


async def test_what_another_process_runs_is_given_up_once_that_is_gone(nod: Nod) -> None:
    other = Process("other", "there", 1)
    await nod.database.write(processes.enter_process, other, nod.clock())
    [p] = await nod.asked(red())
    nod.valve.shut = True
    await nod.press(Verb.APPROVE, p)
    await nod.database.write(runs.claim, nod.gate.policies, await nod.now(p), other.id, nod.clock())
    await nod.recovery.recover(nod.clock())
    assert (await nod.now(p)).state is State.EXECUTING
    await nod.database.write(processes.leave_process, other)
    await nod.recovery.recover(nod.clock())
    p = await nod.now(p)
    assert (p.cause, p.error) == (Cause.OUTCOME_UNKNOWN, "It started, but its end was never recorded.")


async def _rename(nod: Nod, old: str, new: str) -> None:
    await nod.database.write(lambda s: s.execute(text(f"ALTER TABLE {old} RENAME TO {new}")))


async def test_the_end_of_a_tool_is_kept_and_written_once_the_database_takes_it_again(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.after["paint"] = hold = Hold()
    await nod.press(Verb.APPROVE, p)
    await hold.reached.wait()
    await _rename(nod, "audit", "audit_away")  # as a full disk or a lock would, it refuses every end
    hold.go.set()
    with capture_logs() as logs:
        await until(lambda: bool(logs))
    assert logs[0]["event"] == "the end of a tool is not written yet"
    nod.clock.forward(timedelta(hours=1))
    await nod.recovery.recover(nod.clock())
    await _rename(nod, "audit_away", "audit")
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert len(nod.world.runs) == 1


async def test_a_turn_that_took_the_process_down_twice_is_given_up_and_people_are_told(nod: Nod) -> None:
    holds = [Hold() for _ in range(2)]
    nod.model.will(*(says("Boom.", hold=hold) for hold in holds))
    await nod.say("hi")
    for hold in holds:
        await hold.reached.wait()
        await nod.crash(wait=False)
    await nod.idle()
    assert len(nod.model.transcripts) == 2
    [(_, told)] = nod.chat.texts
    assert told.startswith("I kept being restarted while working on this, so I gave up.")
    await nod.say("again")
    await nod.idle()
    assert nod.model.heard == ["hi", "again"]


async def test_a_restart_in_good_order_is_no_fault_of_the_turns_it_interrupts(nod: Nod) -> None:
    holds = [Hold() for _ in range(4)]
    nod.model.will(*(says("Too late.", hold=hold) for hold in holds))
    await nod.say("hi")
    for hold in holds:
        await hold.reached.wait()
        await nod.close()
        await nod.up(wait=False)
    await nod.idle()
    assert nod.chat.shown.endswith("OK.")


async def test_a_turn_that_got_on_between_two_crashes_is_not_given_up(nod: Nod) -> None:
    holds = [Hold() for _ in range(3)]
    for hold in holds:
        nod.model.will(says("Let me look.", call("look", lamp="desk")), says("Boom.", hold=hold))
    await nod.say("hi")
    for hold in holds:
        await hold.reached.wait()
        await nod.crash(wait=False)
    await nod.idle()
    assert "OK." in nod.chat.shown


async def test_starts_that_begin_no_turn_use_up_no_attempt(nod: Nod) -> None:
    nod.valve.shut = True
    await nod.say("hi")
    for _ in range(6):
        nod.database.close()
        nod.rebuild()
        nod.valve.shut = True
        await nod.recovery.take_over(nod.clock())
    await nod.crash()
    assert nod.chat.shown == "OK."


async def test_a_closing_process_lets_a_running_tool_finish(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.before["paint"] = hold = Hold()
    await nod.press(Verb.APPROVE, p)
    await hold.reached.wait()
    closing = asyncio.create_task(nod.dispatcher.close(60))
    await asyncio.sleep(0)
    hold.go.set()
    await closing
    assert (await nod.now(p)).state is State.SUCCEEDED
    await nod.restart()
    assert nod.model.results[0].startswith("SUCCEEDED")


def _both(transcript: Sequence[Entry]) -> Scripted:
    if isinstance(transcript[-1], ToolResult):
        return says("OK.")
    return says("Both, then.", red(), call("pay", amount=5))


async def _story(nod: Nod, done: set[str]) -> None:
    """A person asks, two changes are proposed, both are approved, the agent ends."""
    await nod.say("please", event="story")
    await nod.idle()
    for p in await nod.proposals():
        if p.state is State.PROPOSED:
            await nod.press(Verb.APPROVE, p)
    await nod.idle()
    done.add("all of it")


@pytest.mark.slow
@pytest.mark.parametrize("after_commit", [False, True], ids=["before the commit", "after the commit"])
async def test_a_crash_at_any_write_loses_nothing_and_runs_nothing_twice(
    make_nod: MakeNod, clock: FakeClock, *, after_commit: bool
) -> None:
    fuse, done = 0, set[str]()
    while not done:
        fuse += 1
        nod = make_nod()
        nod.model.rule = _both
        await nod.dies_in(_story(nod, done), fuse, after_commit=after_commit)
        await _story(nod, set())
        await nod.tick(timedelta(minutes=2))
        painted, paid = await nod.proposals()
        assert paid.state is State.SUCCEEDED, fuse
        assert nod.world.paid == {paid.idempotency_key: 5}, fuse
        assert painted.state is State.SUCCEEDED or painted.cause is Cause.OUTCOME_UNKNOWN, fuse
        assert len(nod.world.runs_of(painted)) <= 1, fuse
        if painted.state is State.SUCCEEDED:
            assert nod.world.lamps["desk"] == "red", fuse
        texts = await nod.said()
        assert texts[:2] == ["please", "Both, then."], fuse
        assert texts[-1] == "OK.", fuse
        assert not nod.chat.card_of(painted).pending, fuse
        assert not nod.chat.card_of(paid).pending, fuse
        assert "OK." in nod.chat.shown, fuse
    assert fuse > 10
