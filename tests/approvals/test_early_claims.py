"""A run that is claimed together with its approval, where nothing has to be looked at again."""

import asyncio
from datetime import timedelta

from bot.domain.chat import Address
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store.audit import log
from tests.kit import ADA, ANA, BEN, MakeNod, Nod, call, held, until

ADMIN = Policy(admins=frozenset({str(ADA)}))
PAY = call("pay", amount=5)
ENROLL = call("enroll", name="Eve", code="1234")


async def verbs(nod: Nod, proposal: Proposal) -> list[str]:
    return [entry.verb for entry in await nod.database.read(log.list_rows_of_proposal, proposal.id)]


async def test_one_write_approves_and_claims_what_has_no_old_values(nod: Nod) -> None:
    [p] = await nod.asked(ENROLL)
    nod.valve.shut = True
    before = nod.database.writes
    await nod.press(Verb.APPROVE, p)
    assert nod.database.writes == before + 1
    assert (await nod.now(p)).state is State.EXECUTING
    assert await verbs(nod, p) == ["propose", "approve", "execute"]
    assert nod.world.runs == []


async def test_what_shows_old_values_is_claimed_once_it_was_looked_at_again(nod: Nod) -> None:
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    nod.valve.shut = True
    await nod.press(Verb.APPROVE, p)
    assert (await nod.now(p)).state is State.APPROVED


async def test_a_crash_between_the_claim_and_the_run_leaves_the_outcome_unknown(nod: Nod) -> None:
    [p] = await nod.asked(ENROLL)
    nod.valve.shut = True
    await nod.press(Verb.APPROVE, p)
    await nod.crash()
    p = await nod.now(p)
    assert (p.state, p.cause) == (State.FAILED, Cause.OUTCOME_UNKNOWN)
    assert nod.world.runs == []


async def test_a_claimed_run_whose_wake_up_was_lost_is_started_by_the_next_sweep(nod: Nod) -> None:
    [p] = await nod.asked(ENROLL)
    nod.valve.shut = True
    await nod.press(Verb.APPROVE, p)
    nod.valve.shut = False
    await nod.tick(timedelta(minutes=1))
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert len(nod.world.runs_of(p)) == 1


async def test_a_sweep_leaves_alone_what_is_claimed_and_not_yet_started(nod: Nod) -> None:
    [p] = await nod.asked(ENROLL)
    nod.valve.shut = True
    await nod.press(Verb.APPROVE, p)
    await nod.recovery.recover(nod.clock())
    assert (await nod.now(p)).state is State.EXECUTING


async def test_of_twenty_who_approve_at_the_same_time_one_claims_and_it_runs_once(nod: Nod) -> None:
    [p] = await nod.asked(ENROLL)
    await asyncio.gather(*(nod.press(Verb.APPROVE, p) for _ in range(20)))
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert len(nod.world.runs_of(p)) == 1
    assert await verbs(nod, p) == ["propose", "approve", "execute", "succeeded"]


async def test_what_another_press_has_just_approved_is_run_by_that_one(nod: Nod) -> None:
    [p] = await nod.asked(ENROLL)
    own = nod.assistant.own_work
    async with held(nod.database):
        opened = own.take_opened(p.id)
        assert opened is not None
        first = asyncio.create_task(nod.press(Verb.APPROVE, p))  # of what this process does not remember
        await asyncio.sleep(0)
        own.keep_opened(opened)
        second = asyncio.create_task(nod.press(Verb.APPROVE, p))
        await until(lambda: nod.execution.under_way == {p.id})
    await asyncio.gather(first, second)
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert len(nod.world.runs_of(p)) == 1


async def test_what_might_wait_for_a_slot_is_claimed_when_it_starts(nod: Nod) -> None:
    opened: list[Proposal] = []
    for number in range(1, 52):
        opened += await nod.asked(call("pay", amount=number), at=Address("chat", f"place {number}"))
    nod.valve.shut = True
    for p in opened:
        await nod.press(Verb.APPROVE, p)
    states = [(await nod.now(p)).state for p in opened]
    assert states == [State.EXECUTING] * 50 + [State.APPROVED]
    nod.valve.shut = False
    await nod.tick(timedelta(minutes=1))
    assert sorted(nod.world.paid.values()) == list(range(1, 52))


async def test_nothing_is_claimed_while_everything_is_paused(make_nod: MakeNod) -> None:
    nod = make_nod(policy=ADMIN)
    [p] = await nod.asked(ENROLL)
    await nod.command("/approvals pause", by=ADA)
    reply = await nod.press(Verb.APPROVE, p)
    await nod.idle()
    assert "Everything is paused" in reply.text
    assert (await nod.now(p)).state is State.APPROVED
    await nod.command("/approvals resume", by=ADA)
    await nod.tick(timedelta(minutes=1))
    assert len(nod.world.runs_of(p)) == 1


async def test_what_was_edited_since_it_was_opened_runs_as_it_is_now(nod: Nod) -> None:
    [p] = await nod.asked(PAY)
    await nod.press(Verb.EDIT, p, arguments={"amount": 7})
    p = await nod.approve(await nod.now(p))
    assert (p.state, nod.world.paid) == (State.SUCCEEDED, {p.idempotency_key: 7})


async def test_a_refused_press_claims_nothing(make_nod: MakeNod) -> None:
    nod = make_nod(policy=Policy(approvers=frozenset({str(BEN)})))
    await nod.say("hello", private=False)
    await nod.idle()
    [p] = await nod.asked(ENROLL, private=False)
    await nod.press(Verb.APPROVE, p, by=ANA)
    await nod.idle()
    assert nod.execution.under_way == frozenset()
    p = await nod.approve(p, by=BEN)
    assert len(nod.world.runs_of(p)) == (p.state is State.SUCCEEDED)


async def test_a_press_whose_caller_is_gone_before_its_commit_runs_once(nod: Nod) -> None:
    [p] = await nod.asked(ENROLL)
    async with held(nod.database):
        pressing = asyncio.create_task(nod.press(Verb.APPROVE, p))
        await until(lambda: nod.execution.under_way == {p.id})
        pressing.cancel()
    await until(lambda: list(nod.execution.unstarted) == [p.id])
    await nod.tick(timedelta(minutes=1))
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert len(nod.world.runs_of(p)) == 1
