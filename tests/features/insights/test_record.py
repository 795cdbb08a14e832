"""Cards say what is unusual about a call, from earlier calls that everyone who may decide it may see."""

import json
from datetime import timedelta
from typing import Any

import pytest

from bot.domain.annotations import Annotation
from bot.domain.chat import Address, Answer
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.unusual_facts import MAX_CALLS, MIN_KNOWN_PROPOSALS, EarlierCall, PastCalls, find_unusual
from bot.domain.verbs import Verb
from bot.store.audit import verification
from tests.channels.slack.conftest import make_proposal
from tests.kit import ANA, BEN, FakeClock, MakeNod, Nod, call
from tests.kit.plans import AskedTexts, read_from_end_to_end

HALL = Address("chat", "T1/hall/7")
SAME_HALL = Address("chat", "T1/hall/8")
YARD = Address("chat", "T1/yard/1")
DAY = timedelta(days=1)


async def propose(nod: Nod, tool: str = "pay", at: Address = HALL, **arguments: Any) -> Proposal:
    """Someone in a shared chat has Nod call a tool."""
    (proposal,) = await nod.asked(call(tool, **arguments), at=at, private=False)
    return proposal


def find_record(nod: Nod, proposal: Proposal) -> tuple[str, ...]:
    return nod.chat.card_of(proposal).unusual_facts


async def test_the_largest_amount_of_a_chat_is_said_on_the_card_and_is_part_of_what_is_pressed(
    nod: Nod,
) -> None:
    for turn, amount in enumerate((100, 1200, 30, 40, 50)):
        await propose(nod, amount=amount, at=Address("chat", f"T1/hall/{turn}"))
    nod.clock.forward(DAY)
    usual, unusual = await propose(nod, amount=1250), await propose(nod, amount=1800, at=SAME_HALL)
    assert find_record(nod, usual) == ()
    assert find_record(nod, unusual) == ("amount is the largest of 90 days (before: 1,250)",)
    assert unusual.annotations == (Annotation("Record", unusual.unusual_facts[0]),)
    assert unusual.seen != usual.seen
    reply = await nod.press(Verb.APPROVE, unusual, seen=unusual.seen)
    assert reply.answer is Answer.ACCEPTED
    await nod.idle()
    assert nod.world.paid[unusual.idempotency_key] == 1800
    assert nod.database.read_now(verification.find_faults_in_session) == []


async def test_who_declined_the_same_call_before_is_named(nod: Nod) -> None:
    for _ in range(2):
        proposal = await propose(nod, "paint", lamp="desk", color="red")
        assert await nod.press(Verb.DECLINE, proposal, by=ANA)
        await nod.idle()
    again = await propose(nod, "paint", lamp="desk", color="red")
    other = await propose(nod, "paint", lamp="desk", color="blue")
    assert find_record(nod, again) == ("Ana has declined this twice",)
    assert find_record(nod, other) == ()


async def test_what_was_asked_often_within_minutes_is_said(nod: Nod) -> None:
    for turn in range(4):
        await propose(nod, "paint", lamp="desk", color=f"red {turn}")
    fifth = await propose(nod, "paint", lamp="desk", color="blue")
    assert find_record(nod, fifth) == ("asked 5 times in 5 minutes",)
    nod.clock.forward(timedelta(minutes=6))
    later = await propose(nod, "paint", lamp="desk", color="green")
    assert find_record(nod, later) == ()


async def test_rows_of_one_answer_are_one_question(nod: Nod) -> None:
    calls = [call("paint", lamp="desk", color=f"red {turn}") for turn in range(8)]
    rows = await nod.asked(*calls, at=HALL, private=False)
    assert {row.unusual_facts for row in rows} == {()}


async def test_the_first_call_of_a_tool_is_unusual_only_where_the_chat_has_a_past(nod: Nod) -> None:
    first = await propose(nod, "smash", lamp="desk")
    for turn in range(MIN_KNOWN_PROPOSALS):
        nod.clock.forward(DAY / 12)
        await propose(nod, "paint", lamp="desk", color=f"red {turn}")
    there = await propose(nod, "trip")
    elsewhere = await propose(nod, "trip", at=YARD)
    known = await propose(nod, "smash", lamp="door")
    assert find_record(nod, there) == ("first call of this tool in this chat",)
    assert find_record(nod, first) == find_record(nod, elsewhere) == find_record(nod, known) == ()


async def test_a_plan_is_no_call_so_nothing_of_it_is_unusual(make_nod: MakeNod) -> None:
    nod = make_nod(team=True)
    for turn in range(MIN_KNOWN_PROPOSALS):
        nod.clock.forward(DAY / 12)
        await propose(nod, "paint", lamp="desk", color=f"red {turn}")
    plan = await propose(nod, "plan_submit", summary="New lamps", steps=[{"description": "Look around"}])
    assert find_record(nod, plan) == ()


async def test_private_places_never_count_and_their_cards_know_what_who_asks_may_see(nod: Nod) -> None:
    mine, theirs = Address("chat", "D1"), Address("chat", "D2")
    for turn in range(6):
        await nod.asked(call("pay", amount=9000 + turn), at=mine)
        await nod.asked(call("pay", amount=10 + turn), at=HALL, private=False, by=BEN)
    shared = await propose(nod, amount=30)
    nod.clock.forward(DAY)
    [private] = await nod.asked(call("pay", amount=30), at=mine)
    [stranger] = await nod.asked(call("pay", amount=30), at=theirs, by=BEN)
    assert "amount is the largest of 90 days (before: 15)" in find_record(nod, shared)
    assert "amount" not in " ".join(find_record(nod, private))
    assert "amount is the largest of 90 days (before: 15)" in find_record(nod, stranger)


async def test_calls_that_a_named_decider_may_not_see_do_not_count(make_nod: MakeNod) -> None:
    boss = Actor("chat", "boss", "Boss")
    nod = make_nod(admins=[BEN])
    for amount in (10, 20, 30, 40, 50):
        await propose(nod, amount=amount)
    nod.clock.forward(DAY)
    rule = await nod.command(f"/approvals approvers {boss} for pay", by=BEN)
    assert rule.answer is Answer.ACCEPTED, rule.text
    large = await propose(nod, amount=5000)
    assert str(boss) in large.deciders.people
    assert find_record(nod, large) == ()
    for amount in (11, 12, 13, 14):
        nod.clock.forward(DAY)
        await propose(nod, amount=amount)
    larger = await propose(nod, amount=90_000)
    assert find_record(nod, larger) == ("amount is the largest of 90 days (before: 5,000)",)


async def test_an_edit_is_looked_at_again(nod: Nod) -> None:
    for amount in (10, 20, 30, 40, 50):
        await propose(nod, amount=amount)
    nod.clock.forward(DAY)
    proposal = await propose(nod, amount=5)
    await nod.press(Verb.EDIT, proposal, arguments={"amount": 500})
    assert (await nod.now(proposal)).unusual_facts == ("amount is the largest of 90 days (before: 50)",)


async def test_nothing_is_read_or_said_where_insights_are_off_or_no_one_is_asked(make_nod: MakeNod) -> None:
    nod, off = make_nod(admins=[BEN]), make_nod(insights=False)
    asked = AskedTexts(off.database)
    for turn in range(6):
        last = await propose(off, "paint", lamp="desk", color=f"red {turn}")
    assert last.annotations == ()
    assert not [text for text in asked.texts if "proposal.chat =" in text]
    await nod.command("/approvals policy never for paint", by=BEN)
    for turn in range(6):
        ran = await propose(nod, "paint", lamp="desk", color=f"red {turn}")
    assert ran.annotations == ()


@pytest.mark.parametrize("private", [True, False])
async def test_it_is_found_by_an_index(nod: Nod, *, private: bool) -> None:
    asked = AskedTexts(nod.database)
    await nod.asked(call("pay", amount=10), at=HALL, private=private)
    [text] = [each for each in asked.texts if "LEFT OUTER JOIN" in each and "tool_name" in each]
    assert read_from_end_to_end(nod.database, text) == []


CLOCK = FakeClock()


def make_past(*arguments: dict[str, Any], **more: Any) -> PastCalls:
    calls = [
        EarlierCall(CLOCK() - DAY * turn, turn, json.dumps(given))
        for turn, given in enumerate(arguments, start=1)
    ]
    return PastCalls(calls, **more)


def find_facts(arguments: dict[str, Any], past: PastCalls) -> list[str]:
    return find_unusual(make_proposal(arguments=arguments), past, CLOCK())


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ({"to": "mallory@evil.test"}, "the address mallory@evil.test is new"),
        ({"to": ["ana@good.test", "Mallory@Evil.test"]}, "the address mallory@evil.test is new"),
        ({"link": {"url": "https://evil.test/x?token=abc"}}, "the address evil.test is new"),
        ({"to": "ANA@good.test"}, ""),
        ({"link": "https://good.test/other"}, ""),
        ({"to": "no address", "note": "write to x@y.test please"}, ""),
    ],
)
def test_an_address_that_was_never_written_to_is_named(arguments: dict[str, Any], fact: str) -> None:
    past = make_past(*({"to": "ana@good.test", "link": "https://good.test/a"} for _ in range(5)))
    assert find_facts(arguments, past) == ([fact] if fact else [])


@pytest.mark.parametrize(
    "arguments",
    [
        {"number": 900},
        {"issue_id": 900},
        {"userId": 900},
        {"amount": True},
        {"amount": float("inf")},
        {"amount": "900"},
        {"other": 900},
        {"amount": 60},
    ],
)
def test_what_only_names_something_or_is_little_more_is_not_the_largest(arguments: dict[str, Any]) -> None:
    before = {"number": 5, "issue_id": 5, "userId": 5, "amount": 50}
    assert find_facts(arguments, make_past(*(before for _ in range(9)))) == []


def test_only_what_was_looked_at_is_claimed() -> None:
    past = make_past(*({"amount": 10.5} for _ in range(MAX_CALLS)), is_cut=True)
    assert find_facts({"amount": 99}, past) == [
        f"amount is the largest of the last {MAX_CALLS} calls (before: 10.50)"
    ]
    long_ago = PastCalls([EarlierCall(CLOCK() - DAY * 91, 1, '{"amount": 1}')] * 9)
    assert find_facts({"amount": 99}, long_ago) == []


def test_the_two_most_telling_facts_are_said() -> None:
    calls = [
        EarlierCall(CLOCK(), turn, '{"amount": 1, "to": "a@b.test"}', ("Ben", "Ana") if turn else ())
        for turn in range(9)
    ]
    given = {"amount": 99, "to": "x@y.test"}
    assert find_facts(given, PastCalls(calls)) == [
        "Ben and 1 other have declined this before",
        "the address x@y.test is new",
    ]


async def test_the_calls_of_one_answer_are_no_past_of_each_other(nod: Nod) -> None:
    calls = [call("paint", lamp="desk", color=f"red {turn}") for turn in range(MIN_KNOWN_PROPOSALS + 2)]
    rows = await nod.asked(*calls, at=HALL, private=False)
    assert len(rows) == len(calls)
    assert {row.unusual_facts for row in rows} == {()}
