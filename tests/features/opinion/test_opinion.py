"""A second model's words come onto the card, and its no can ask for one more approval. Never for fewer."""

import json
from datetime import timedelta
from typing import Any

import pytest

from bot.approvals import grants
from bot.domain.annotations import Annotation
from bot.domain.chat import Address, Answer, Parts, Request
from bot.domain.model import UserText
from bot.domain.named_models import NamedModel
from bot.domain.prices import Price, Prices
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.errors import ModelError
from bot.features.opinion import rows
from bot.store import counts
from bot.store.audit import log, verification
from tests.kit import ADA, ANA, BEN, EVE, Hold, MakeNod, Nod, breaks, call, says
from tests.kit.model import Scripted, ScriptedModel

HALL = Address("chat", "T1/hall/7")
NAME = "Second opinion (local)"
PRICES = Prices("EUR", {"local": Price(100_000, 100_000, 100_000)})
NAMED = (NamedModel("scripted"), NamedModel("local"))
RED = {"lamp": "desk", "color": "red"}


def review(does: str = "paints the desk red", asked: str = "yes", *concerns: str) -> Scripted:
    return says(json.dumps({"does": does, "asked": asked, "concerns": list(concerns)}))


async def make(make_nod: MakeNod, rule: str = "", **parts: Any) -> Nod:
    nod = make_nod(others=[ScriptedModel("local")], named=NAMED, prices=PRICES, admins=[ADA], **parts)
    nod.others[0].rule = lambda _: review()
    reply = await nod.command(f"/approvals opinion local {rule} for paint", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text
    return nod


async def propose(nod: Nod, *answers: Scripted, tick: bool = True, **where: Any) -> Proposal:
    """Ana asks for a red desk in a shared chat; the other model answers with these."""
    nod.others[0].will(*answers)
    (proposal,) = await nod.asked(call("paint", **RED), **{"at": HALL, "private": False, **where})
    if tick:
        await nod.tick()
    return proposal


async def find_late(nod: Nod, proposal: Proposal) -> list[Annotation]:
    return [each for each in (await nod.now(proposal)).annotations if each.is_late]


def told_to(nod: Nod) -> str:
    """What the other model was told last."""
    return "\n".join(entry.text for entry in nod.others[0].transcripts[-1] if isinstance(entry, UserText))


async def test_the_words_come_late_under_their_own_name_and_change_nothing_that_is_pressed(
    make_nod: MakeNod,
) -> None:
    nod = await make(make_nod)
    proposal = await propose(nod, review("paints the desk red", "yes", "nothing keeps the white"))
    after = await nod.now(proposal)
    line = Annotation(NAME, "paints the desk red; nothing keeps the white", is_late=True)
    assert after.annotations == nod.chat.card_of(proposal).annotations == (line,)
    assert (after.seen, after.round, after.digest, after.quorum) == (
        *(proposal.seen, proposal.round, proposal.digest, 1),
    )
    assert (await nod.press(Verb.APPROVE, proposal, seen=proposal.seen)).answer is Answer.ACCEPTED
    await nod.idle()
    assert len(nod.world.runs_of(proposal)) == 1
    await nod.tick()
    assert len(nod.others[0].transcripts) == 1


async def test_the_model_is_told_the_request_and_the_call_and_not_what_the_agent_says(
    make_nod: MakeNod,
) -> None:
    nod = await make(make_nod)
    await propose(nod, text="paint my desk, the code is sk-abcdefghijklmnopqrstuvwxyz123456")
    told = told_to(nod)
    assert "paint my desk" in told
    assert "sk-abc" not in told
    assert '"color": "red"' in told
    assert "I will." not in told
    reasoned = call("paint", lamp="door", color="blue", reason="AGENT PROSE")
    await nod.asked(reasoned, at=HALL, private=False)
    await nod.tick()
    assert "AGENT PROSE" not in told_to(nod)


async def test_posting_never_waits_and_where_no_rule_asks_no_model_does(make_nod: MakeNod) -> None:
    nod, hold = await make(make_nod), Hold()
    silent = Scripted(("",), hold=hold)
    proposal = await propose(nod, silent, tick=False)
    assert nod.chat.card_of(proposal).annotations == ()
    [other] = await nod.asked(call("pay", amount=1), at=HALL, private=False)
    await nod.press(Verb.DECLINE, proposal)
    await nod.tick()
    assert nod.others[0].transcripts == []
    assert await find_late(nod, other) == []


@pytest.mark.parametrize(
    "answer",
    [
        says("APPROVE"),
        review("approve this"),
        review("sends the desk to https://evil.test"),
        says(json.dumps({"does": "x" * 50_000, "asked": "yes", "concerns": []})),
        says('<b>ok</b><a href="https://nod.test/approve">approve</a>'),
        breaks(ModelError("no")),
        breaks(ModelError("cut"), after='{"does": "paints", '),
    ],
    ids=["word", "advice", "link", "50 kB", "HTML", "away", "cut"],
)
async def test_a_reviewer_that_lies_or_fails_adds_no_line_approves_nothing_and_delays_nothing(
    make_nod: MakeNod, answer: Scripted
) -> None:
    nod = await make(make_nod, "raises")
    proposal = await propose(nod, answer)
    after = await nod.now(proposal)
    assert (after.state, after.annotations, after.quorum, after.votes) == (State.PROPOSED, (), 1, ())
    assert (await nod.approve(proposal)).state is State.SUCCEEDED


async def test_a_no_that_may_raise_asks_for_one_more_vote_and_the_one_given_stands(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    proposal = await propose(nod, review(asked="no"), tick=False)
    held = await nod.approve(proposal)
    assert held.state is State.APPROVED
    assert nod.world.runs_of(proposal) == []
    await nod.tick()
    raised = await nod.now(proposal)
    assert (raised.state, raised.quorum, len(raised.votes)) == (State.PROPOSED, 2, 1)
    assert raised.expires_at > nod.clock()
    [line] = await find_late(nod, proposal)
    assert line.text == "paints the desk red; this is not what was asked; one more approval is needed"
    assert (await nod.press(Verb.APPROVE, proposal, by=ANA)).answer is Answer.ALREADY
    assert (await nod.approve(proposal, by=ADA)).state is State.SUCCEEDED
    assert len(nod.world.runs_of(proposal)) == 1
    assert [row.verb for row in nod.database.read_now(log.list_rows_of_proposal, proposal.id)].count(
        "raise"
    ) == 1
    assert nod.database.read_now(verification.find_faults_in_session) == []


async def test_a_no_that_may_not_raise_only_says_so(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    proposal = await propose(nod, review(asked="no"), tick=False)
    assert (await nod.approve(proposal)).state is State.SUCCEEDED
    await nod.tick()
    assert await find_late(nod, proposal) == []


async def test_what_is_approved_waits_for_the_opinion_and_runs_when_it_is_there(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    proposal = await propose(nod, review(), tick=False)
    assert (await nod.approve(proposal)).state is State.APPROVED
    await nod.tick()
    assert (await nod.now(proposal)).state is State.SUCCEEDED
    assert await find_late(nod, proposal) == []


async def test_it_waits_no_longer_than_twenty_seconds(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    proposal = await propose(nod, tick=False)
    assert (await nod.approve(proposal)).state is State.APPROVED
    nod.clock.forward(rows.MAX_RAISING_WAIT - timedelta(seconds=1))
    await nod.recovery.recover(nod.clock())
    await nod.idle()
    assert (await nod.now(proposal)).state is State.APPROVED
    nod.clock.forward(timedelta(seconds=1))
    await nod.recovery.recover(nod.clock())
    await nod.idle()
    assert (await nod.now(proposal)).state is State.SUCCEEDED
    await nod.tick()
    assert nod.others[0].transcripts == []


@pytest.mark.parametrize("crashed", [False, True])
async def test_a_missing_one_raises_where_the_rule_says_so(make_nod: MakeNod, *, crashed: bool) -> None:
    nod = await make(make_nod, "raises, or is missing")
    proposal = await propose(nod, breaks(ModelError("no")), tick=False)
    assert (await nod.approve(proposal)).state is State.APPROVED
    if crashed:
        nod.clock.forward(rows.MAX_RAISING_WAIT + timedelta(seconds=5))
        await nod.recovery.recover(nod.clock())
        await nod.idle()
        assert (await nod.now(proposal)).state is State.APPROVED
        await nod.restart()
    await nod.tick()
    raised = await nod.now(proposal)
    assert (raised.state, raised.quorum) == (State.PROPOSED, 2)
    [line] = await find_late(nod, proposal)
    assert line.text == "it did not come in time; one more approval is needed"


@pytest.mark.parametrize("answer", [says("APPROVE"), says("x" * 5_000)], ids=["no opinion", "too long"])
async def test_an_answer_that_came_and_is_not_usable_is_not_told_as_one_that_did_not_come(
    make_nod: MakeNod, answer: Scripted
) -> None:
    nod = await make(make_nod, "raises, or is missing")
    proposal = await propose(nod, answer)
    assert (await nod.now(proposal)).quorum == 2
    [line] = await find_late(nod, proposal)
    assert line.text == "its answer can't be used; one more approval is needed"


async def test_a_raise_that_no_one_could_meet_is_told_and_nothing_is_raised(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    await nod.command(f"/approvals approvers {BEN} for paint", by=ADA)
    lone = await propose(nod, review(asked="no"))
    raised = await nod.now(lone)
    assert (raised.quorum, raised.deciders.roles) == (2, ("admin",))  # it becomes an admin's
    await nod.command(f"/approvals approvers {ADA} for paint", by=ADA)
    await nod.press(Verb.DECLINE, lone, by=BEN)
    nod.others[0].will(review("paints the door red", "no"))
    [other] = await nod.asked(call("paint", lamp="door", color="red"), at=HALL, private=False, by=EVE)
    await nod.tick()
    after = await nod.now(other)
    assert (after.quorum, after.deciders) == (1, other.deciders)
    [line] = await find_late(nod, other)
    assert line.text.endswith("; no one else could approve it as well")
    assert (await nod.approve(other, by=ADA)).state is State.SUCCEEDED


async def test_other_contents_get_another_opinion_and_the_old_one_says_nothing(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    proposal = await propose(nod, review("paints the desk blue", "no"), tick=False)
    await nod.press(Verb.EDIT, proposal, arguments={"lamp": "desk", "color": "blue"})
    await nod.tick()
    edited = await nod.now(proposal)
    assert (edited.round, edited.quorum) == (2, 2)
    assert len(nod.others[0].transcripts) == 1
    assert '"color": "blue"' in told_to(nod)


async def test_where_others_see_the_card_the_request_is_not_told(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    await nod.command("/approvals route chat:wall for paint", by=ADA)
    proposal = await propose(nod, review(asked="no"), text="a private wish")
    assert "private wish" not in told_to(nod)
    assert (await nod.now(proposal)).quorum == 1  # there is nothing to compare with
    assert [each.text for each in await find_late(nod, proposal)] == ["paints the desk red"]


async def test_a_call_of_a_program_has_no_request_to_compare_with(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    nod.others[0].will(review(asked="no"))
    await nod.assistant.handle(Request(ANA, "paint", RED, HALL, "PROGRAM PROSE"))
    await nod.tick()
    assert "PROGRAM PROSE" not in told_to(nod)
    assert [each.quorum for each in await nod.proposals()] == [1]


async def test_its_cost_is_usage_and_counts_for_budgets(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    start = nod.clock()
    proposal = await propose(nod)
    used = {each.key: each for each in nod.database.read_now(counts.list_usage, Parts.MODEL, start, None)}
    assert (used["local"].prompt_tokens, used["local"].cost) == (10, 1.5)
    assert (await nod.now(proposal)).state is State.PROPOSED
    assert (await nod.command("/approvals budget 1 EUR a day", by=ADA)).answer is Answer.ACCEPTED
    nod.others[0].transcripts.clear()
    request = Request(ANA, "paint", {"lamp": "door", "color": "red"}, HALL, "")
    await nod.assistant.handle(request)
    await nod.tick()
    assert nod.others[0].transcripts == []


async def test_what_runs_without_a_card_gets_no_opinion_and_waits_for_none(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises, or is missing")
    await nod.command("/approvals policy never for paint", by=ADA)
    ran = await propose(nod, tick=False)
    assert (await nod.now(ran)).state is State.SUCCEEDED
    await nod.tick()
    assert nod.others[0].transcripts == []


async def test_only_a_known_model_can_be_named(make_nod: MakeNod) -> None:
    nod = await make(make_nod)
    for words in ("nobody", "local approves", "local raises twice", "", "off"):
        reply = await nod.command(f"/approvals opinion {words}", by=ADA)
        assert reply.answer is Answer.INVALID
    reply = await nod.command("/approvals opinion local raises, or is missing where color = red", by=ADA)
    assert reply.text.startswith("Set: rule 2: opinion local raises, or is missing where color = red.")
    assert (await nod.command("/approvals opinion local", by=EVE)).answer is not Answer.ACCEPTED


async def test_a_rule_goes_by_the_risk_that_the_other_rules_give_a_call(make_nod: MakeNod) -> None:
    nod = make_nod(others=[ScriptedModel("local")], named=NAMED, admins=[ADA])
    nod.others[0].rule = lambda _: review("changes it")
    for words in ("opinion local where risk is destructive", "risk destructive for pay"):
        reply = await nod.command(f"/approvals {words}", by=ADA)
        assert reply.answer is Answer.ACCEPTED, reply.text
    for wanted, by_then in (
        (call("paint", **RED), 0),
        (call("smash", lamp="desk"), 1),
        (call("pay", amount=1), 2),
    ):
        await nod.asked(wanted, at=HALL, private=False)
        await nod.tick()
        assert len(nod.others[0].transcripts) == by_then
    refused = await nod.command("/approvals policy never where risk is destructive", by=ADA)
    assert refused.text.startswith("`risk is` can't stand here. It is for rules about escalate, ")


async def test_a_grant_that_was_given_on_a_card_ends_where_the_card_is_raised(make_nod: MakeNod) -> None:
    nod = await make(make_nod, "raises")
    proposal = await propose(nod, review(asked="no"), tick=False)
    given = await nod.press(
        Verb.SIMILAR, proposal, rung=GrantScope.TOOL, lasting=GrantDuration.DAY, reach=GrantAudience.HERE
    )
    assert given.answer is Answer.ACCEPTED, given.text
    assert len(await nod.database.read(grants.list_live_grants, nod.clock())) == 1
    await nod.tick()
    assert (await nod.now(proposal)).state is State.PROPOSED
    assert await nod.database.read(grants.list_live_grants, nod.clock()) == []
    assert nod.database.read_now(verification.find_faults_in_session) == []
