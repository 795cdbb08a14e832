"""What a press that is no vote leaves in the row, on the card and in the record, and how it is answered."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from bot.domain.audit import Act
from bot.domain.chat import Answer, Press
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.verbs import Verb
from bot.errors import ToolError
from bot.store.audit import log
from tests.approvals.test_decisions import TEAM, red
from tests.kit import ADA, ANA, BEN, EVE, Hold, MakeNod, Nod, call
from tests.kit.waiting import until
from tests.kit.world import lamp_tools

DAY = timedelta(hours=24)


@pytest.mark.parametrize(
    ("verb", "text", "state", "outcome"),
    [
        (Verb.CANCEL, "Withdrawn.", State.CANCELLED, "Withdrawn by Ada."),
        (Verb.EXPIRE, "Expired.", State.EXPIRED, "Expired: Ada ended the wait. Nothing was changed."),
    ],
)
async def test_who_ends_the_wait_is_answered_recorded_and_named_on_the_card(
    make_nod: MakeNod, verb: Verb, text: str, state: State, outcome: str
) -> None:
    nod = make_nod(policy=TEAM)
    [p] = await nod.asked(red(), private=False)
    reply = await nod.press(verb, p, by=ADA)
    await nod.idle()

    now = await nod.now(p)
    assert (reply.answer, reply.text, reply.proposals) == (Answer.ACCEPTED, text, (now,))
    assert now.state is state
    assert nod.chat.card_of(p).outcome == outcome
    assert nod.chat.card_of(p).ended_at == nod.clock()
    last = (await nod.database.read(log.list_rows_of_proposal, p.id))[-1]
    assert (last.verb, last.person) == (verb.value, str(ADA))


async def test_to_extend_gives_the_whole_wait_and_its_reminders_again_and_redraws_the_card(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(policy=TEAM)
    await nod.command("/approvals remind 4h", by=ADA)
    [p] = await nod.asked(red())
    nod.clock.forward(timedelta(hours=3))
    reply = await nod.press(Verb.EXTEND, p)
    await nod.idle()

    now = await nod.now(p)
    assert (reply.answer, reply.proposals) == (Answer.ACCEPTED, (now,))
    assert (p.expires_at, now.expires_at) == (p.created_at + DAY, nod.clock() + DAY)
    assert (now.remind_every, now.remind_at) == (p.remind_every, nod.clock() + timedelta(hours=4))
    assert nod.chat.card_of(p).expires_at == now.expires_at


async def test_to_reassign_names_who_decides_by_account_role_and_asker_and_resets_the_votes(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(policy=TEAM)
    [p] = await nod.asked(red(), private=False)
    for words, said in (
        ("", "Say who should decide: "),
        ("whoever they are", "'whoever' is neither an account nor a role"),
    ):
        nobody = await nod.press(Verb.REASSIGN, p, by=ADA, reason=words)
        assert (nobody.answer, nobody.proposals) == (Answer.INVALID, (await nod.now(p),))
        assert nobody.text.startswith(said)
    reply = await nod.press(Verb.REASSIGN, p, by=ADA, reason=f"{EVE} admin")
    now = await nod.now(p)
    assert (reply.answer, reply.proposals) == (Answer.ACCEPTED, (now,))
    assert reply.text == "Reassigned. Earlier votes were reset."
    assert (now.deciders.people, now.deciders.roles, now.deciders.requester) == (
        (str(EVE),),
        ("admin",),
        False,
    )
    await nod.idle()
    assert nod.chat.card_of(p).deciders == f"any admin or {EVE}"
    assert (now.deciders.place, now.deciders.four_eyes) == (p.deciders.place, p.deciders.four_eyes)
    assert (await nod.press(Verb.APPROVE, p, by=ANA)).answer is Answer.REFUSED

    await nod.press(Verb.REASSIGN, p, by=ADA, reason="requester")
    assert (await nod.now(p)).deciders.requester
    assert (await nod.press(Verb.APPROVE, p, by=BEN)).answer is Answer.REFUSED
    assert (await nod.press(Verb.APPROVE, p, by=ANA)).answer is Answer.ACCEPTED


async def test_a_retry_is_a_new_round_without_a_trace_of_the_failure(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.broken = ToolError("no paint")
    failed = await nod.approve(p)
    nod.world.broken = None
    nod.world.before["paint"] = hold = Hold()
    reply = await nod.press(Verb.RETRY, p)
    await hold.reached.wait()

    running = await nod.now(p)
    assert (reply.answer, reply.text) == (Answer.ACCEPTED, "Trying again.")
    assert [each.state for each in reply.proposals] == [State.APPROVED]
    assert (running.state, running.round) == (State.EXECUTING, failed.round + 1)
    assert (running.cause, running.error, running.result, running.ended_badly) == (None, None, None, None)
    await until(lambda: nod.chat.card_of(p).verbs == (Verb.STOP,))
    hold.go.set()
    await nod.idle()


async def test_what_has_another_tool_by_now_is_not_tried_again(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.toolset = lamp_tools(nod.world, version="2")
    await nod.restart()
    failed = await nod.approve(p)
    assert failed.cause is Cause.TOOL_CHANGED
    reply = await nod.press(Verb.RETRY, p)
    assert (reply.answer, reply.proposals) == (Answer.STALE, (failed,))
    assert reply.text == "The tool has changed since. Please request it again."


async def test_a_late_approval_asks_again_with_what_is_there_now(make_nod: MakeNod) -> None:
    nod = make_nod()
    [p] = await nod.asked(red())
    nod.clock.forward(DAY)
    nod.world.lamps["desk"] = "green"
    reply = await nod.press(Verb.APPROVE, p)
    await nod.idle()

    now = await nod.now(p)
    assert (reply.answer, reply.proposals) == (Answer.STALE, (now,))
    assert reply.text == "It had expired, so nothing ran. Here it is again with current values."
    assert (now.state, now.round, now.votes, now.decided_at) == (State.PROPOSED, p.round + 1, (), None)
    assert now.preview == (PreviewField("desk", "green", "red"),)
    assert now.expires_at == nod.clock() + DAY
    verbs = [entry.verb for entry in await nod.database.read(log.list_rows_of_proposal, p.id)]
    assert verbs[-2:] == ["expire", Act.ASK_AGAIN.value]
    assert nod.chat.card_of(p).pending
    assert nod.world.runs == []


async def test_a_press_on_a_group_is_answered_with_every_proposal_and_what_could_not_be_decided(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(policy=TEAM)
    one, two, three = await nod.asked(red(), red("door"), red("roof"), private=False)
    await nod.press(Verb.REASSIGN, two, by=ADA, reason="admin")
    stale = await nod.press(Verb.DECLINE_ALL, one, by=BEN, round_shown=7)
    assert (stale.answer, len(stale.proposals)) == (Answer.STALE, 3)
    assert stale.text == "One of these has changed. Please look at the cards again."

    mixed = await nod.press(Verb.DECLINE_ALL, one, by=BEN)
    refused = await nod.press(Verb.DECLINE, two, by=BEN)
    assert (mixed.answer, mixed.text) == (
        Answer.ACCEPTED,
        f"2 declined. “{two.description}” not: {refused.text}",
    )
    assert {p.id for p in mixed.proposals} == {one.id, two.id, three.id}
    await nod.press(Verb.APPROVE, two, by=ADA)
    await nod.idle()
    late = await nod.press(Verb.APPROVE_ALL, three, by=BEN)
    assert (late.answer, late.text, len(late.proposals)) == (
        Answer.ALREADY,
        "All of these are already decided.",
        3,
    )


async def test_a_digest_does_not_approve_what_was_offered_again_with_other_values(make_nod: MakeNod) -> None:
    nod = make_nod()
    [p] = await nod.asked(red())
    empty = await nod.press(Verb.APPROVE, p, digest="")
    assert empty.answer is Answer.STALE
    nod.clock.forward(DAY)
    nod.world.lamps["desk"] = "green"
    await nod.press(Verb.APPROVE, p, digest=p.digest)
    again = await nod.press(Verb.APPROVE, p, digest=p.digest)
    now = await nod.now(p)
    assert (again.answer, now.state) == (Answer.STALE, State.PROPOSED)
    assert (now.digest, now.seen == p.seen) == (p.digest, False)
    for seen in ("", p.seen):
        assert (await nod.press(Verb.APPROVE, p, digest=p.digest, seen=seen)).answer is Answer.STALE
    assert (await nod.press(Verb.APPROVE, p, seen=now.seen)).answer is Answer.ACCEPTED


async def test_approve_all_leaves_out_what_cannot_be_undone_and_says_so(make_nod: MakeNod) -> None:
    nod = make_nod()
    one, two, smash = await nod.asked(red(), red("door"), call("smash", lamp="roof"))
    card = nod.chat.card_of(one)
    assert card.button(Verb.APPROVE_ALL).label == "Approve 2 of 3"
    assert nod.chat.card_of(smash).warning == "Can't be undone."
    reply = await nod.press(Verb.APPROVE_ALL, one)
    await nod.idle()
    assert reply.text == "2 approved. 1 can't be undone, so approve it on its own card."
    assert not reply.on_cards
    states = [(await nod.now(each)).state for each in (one, two, smash)]
    assert states == [State.SUCCEEDED, State.SUCCEEDED, State.PROPOSED]
    again = await nod.press(Verb.APPROVE_ALL, one)
    assert again.answer is Answer.INVALID
    assert (await nod.now(smash)).state is State.PROPOSED


async def test_a_press_looks_up_once_who_each_person_is(make_nod: MakeNod) -> None:
    nod = make_nod(policy=TEAM)
    [p] = await nod.asked(red(), private=False)
    looked_up: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "account.person_id" in statement:
            given = parameters.values() if isinstance(parameters, dict) else parameters
            looked_up.append(next(iter(given)))

    event.listen(nod.database.engine, "before_cursor_execute", note)
    decided = await nod.assistant.presses.handle_press(
        Press(BEN, Verb.APPROVE, p.id, round=p.round, digest=p.digest)
    )
    event.remove(nod.database.engine, "before_cursor_execute", note)
    assert decided.reply.answer is Answer.ACCEPTED
    assert looked_up == [str(BEN), str(ANA)]
