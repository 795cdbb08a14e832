"""What asking costs is counted per tool, place and person; a rule is tried on what people were asked."""

import random
from dataclasses import replace
from datetime import time, timedelta

import pytest
from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.lookup import rule_simulation
from bot.approvals.lookup.rule_simulation import Effect
from bot.domain import kinds
from bot.domain.chat import Address, Answer
from bot.domain.conditions import Condition
from bot.domain.insights import ENDS, Facet, Insights
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import Hours, Mode, Quorum, RuleValue, Subject
from bot.domain.rules import EVERYWHERE, Limits, Rule
from bot.domain.verbs import Verb
from bot.domain.verdicts import Judgement, Verdict
from bot.features.insights import cost_report as insights
from bot.store import proposals, rules
from bot.store.database import Database
from bot.store.rules import Policies
from tests.kit import ADA, ANA, BEN, ROOM, FakeClock, MakeNod, Nod, call
from tests.store.conftest import Rows

pytestmark = pytest.mark.slow

HALL = Address("chat", "T1/hall/7")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def ruled(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA])


async def rule(nod: Nod, words: str) -> str:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text
    return reply.text


async def story(nod: Nod) -> list[Proposal]:
    """Ana asks for four things: approved after 4 min, edited and approved, declined, expired."""
    asked = [(await nod.asked(call("paint", lamp=lamp, color="red")))[0] for lamp in ("desk", "door", "roof")]
    (smashed,) = await nod.asked(call("smash", lamp="desk"), at=HALL, private=False, by=BEN)
    nod.clock.forward(4 * MINUTE)
    await nod.approve(asked[0])
    nod.clock.forward(16 * MINUTE)
    await nod.press(Verb.APPROVE, asked[1], arguments={"lamp": "door", "color": "blue"})
    await nod.press(Verb.DECLINE, asked[2], reason="too early")
    await nod.idle()
    await nod.tick(timedelta(hours=25))
    return [*asked, smashed]


def seen(nod: Nod, by: Actor) -> Insights:
    found = nod.database.read_now(
        insights.count_visible_insights, nod.gate.policies, by, nod.clock() - timedelta(days=30)
    )
    assert found is not None
    return found


def numbers(found: Insights, facet: Facet) -> dict[str, dict[str, int]]:
    return {
        part.name: {each: many for each in ("asked", *ENDS) if (many := getattr(part.tally, each))}
        for part in found.parts[facet]
    }


async def test_what_was_asked_is_counted_by_tool_place_and_person(ruled: Nod) -> None:
    await story(ruled)
    found = seen(ruled, ADA)
    painted = {"asked": 3, "approved": 2, "edited": 1, "declined": 1}
    smashed = {"asked": 1, "expired": 1}
    assert found.everyone
    assert numbers(found, Facet.TOOL) == {"paint": painted, "smash": smashed}
    assert numbers(found, Facet.PLACE) == {"private chats in Chat": painted, "chat:T1/hall": smashed}
    assert numbers(found, Facet.PERSON) == {"Ana": painted, "Ben": smashed}
    assert [(each.name, each.approved, each.declined) for each in found.deciders] == [("Ana", 2, 1)]
    [paint, _] = found.parts[Facet.TOOL]
    assert (paint.tally.median_seconds, paint.tally.slowest_seconds) == (1200, 1200)
    assert sum(map(sum, found.week)) == 4


async def test_others_than_admins_see_their_own_alone(ruled: Nod) -> None:
    await story(ruled)
    found = seen(ruled, BEN)
    assert (found.everyone, numbers(found, Facet.PERSON)) == (False, {"Ben": {"asked": 1, "expired": 1}})
    assert found.deciders == []
    said = await ruled.command("/approvals insights person", by=BEN)
    assert said.text.startswith("**Your approvals in the last 30 d**: asked 1, expired 1")
    assert "Ana" not in said.text


async def test_what_a_rule_or_a_grant_let_run_was_not_asked(ruled: Nod) -> None:
    await rule(ruled, "policy never for paint")
    await ruled.asked(call("paint", lamp="desk", color="red"))
    assert seen(ruled, ADA).total.asked == 0
    assert (await ruled.command("/approvals insights", by=ADA)).text.endswith("no one was asked anything.")


async def test_linked_accounts_are_one_person(ruled: Nod) -> None:
    await story(ruled)
    await ruled.link(ANA, BEN)
    assert [part.tally.asked for part in seen(ruled, ADA).parts[Facet.PERSON]] == [4]
    assert seen(ruled, BEN).total.asked == 4


async def test_a_chat_is_told_in_a_few_lines(ruled: Nod) -> None:
    await story(ruled)
    said = (await ruled.command("/approvals insights tool 7d", by=ADA)).text
    asked = "asked 4, approved 2 (1 edited first), declined 1"
    took = "median 20 min, slowest tenth from 20 min"
    assert said.splitlines() == [
        f"**Everyone's approvals in the last 7 d**: {asked}, expired 1; {took}",
        "By tool:",
        f"- paint: asked 3, approved 2 (1 edited first), declined 1; {took}",
        "- smash: asked 1, expired 1",
        "Decided by: Ana 3",
    ]
    assert (await ruled.command("/approvals insights 0d", by=ADA)).answer is Answer.INVALID


async def test_turned_off_no_one_sees_them(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA], insights=False)
    assert (await nod.command("/approvals insights", by=ADA)).text == insights.OFF_TEXT


async def test_a_rule_tried_on_the_past_names_what_people_did_about_those_it_spares(ruled: Nod) -> None:
    asked = await story(ruled)
    said = await rule(ruled, "policy try “never for paint in chat:room” —last 7d")
    assert said.splitlines()[:3] == [
        "**policy never for paint in chat:room**, tried on the past:",
        "- 3 would not have asked.",
        "- Of these, people had declined, edited or undone 2:",
    ]
    assert set(said.splitlines()[3:5]) == {
        f"  - `{asked[2].id[:8]}` Paint lamp roof red, 2 Mar, 09:00 UTC: declined by Ana: too early",
        f"  - `{asked[1].id[:8]}` Paint lamp door blue, 2 Mar, 09:00 UTC: edited by Ana",
    }
    assert "Looked at 4 changes back to 2 Mar, 09:00 UTC" in said
    assert "only read" in said
    assert (await ruled.command("/approvals rules", by=ADA)).text.count("rule ") == 0


async def test_what_it_would_ask_in_addition_or_refuse_is_counted(ruled: Nod) -> None:
    await rule(ruled, "policy never for paint")
    await ruled.asked(call("paint", lamp="desk", color="red"))
    await ruled.asked(call("smash", lamp="door"))
    assert "- 1 more would have asked." in await rule(ruled, "policy try always for pa*")
    assert "- 1 would have been refused." in await rule(ruled, "policy try quorum 9 for smash")
    assert "- 1 would have asked other people" in await rule(ruled, "policy try approvers admin for smash")
    assert "- 0 would not have asked" in await rule(ruled, "policy try never in chat:elsewhere last 1d")


async def test_a_call_that_would_run_instead_of_being_refused_asks_no_one_else(ruled: Nod) -> None:
    await ruled.asked(call("smash", lamp="door"))
    await rule(ruled, "quorum 9 for smash")
    said = await rule(ruled, "policy try never for smash")
    assert "- 0 would not have asked." in said
    assert "- 1 would have asked other people, or another number, or run instead of being refused." in said


async def test_a_condition_is_tried_on_the_arguments_that_were_asked_for(ruled: Nod) -> None:
    await story(ruled)
    tried = 'policy try never for paint where color matches "bl*"'
    for words in (tried, f"{tried} --last 7d", tried.replace("try ", 'try "') + '" —last 7d'):
        said = await rule(ruled, words)
        assert "- 1 would not have asked." in said
        assert "Paint lamp door blue" in said


@pytest.mark.parametrize(
    "words", ["", "nver for paint", "never last soon", "never last 400d", "never before yesterday", "ttl 4h"]
)
async def test_what_is_no_rule_to_try_says_how_to_write_one(ruled: Nod, words: str) -> None:
    reply = await ruled.command(f"/approvals policy try {words}", by=ADA)
    assert reply.answer is Answer.INVALID
    assert "policy try RULE" in reply.text


async def test_only_admins_try_rules(ruled: Nod) -> None:
    assert (await ruled.command("/approvals policy try never", by=BEN)).answer is Answer.REFUSED


RULES: tuple[tuple[Subject, RuleValue], ...] = (
    *((Subject.POLICY, mode) for mode in Mode),
    *((Subject.RISK, level) for level in Level),
    (Subject.QUORUM, Quorum(2)),
    (Subject.DECIDERS, ("admin",)),
    (Subject.DECIDERS, ("chat:ben",)),
)
LIMITS = (
    None,
    None,
    Limits(Condition.parse("lamp = desk")),
    Limits(Condition.parse("coats > 2")),
    Limits(who="chat:ana"),
    Limits(hours=Hours(time(9, 10), time(9, 15))),
)
PLACES = (EVERYWHERE, "chat:*", "chat:T1", "chat:T1/hall", "chat:T1/hall/7", "chat:room")


@pytest.mark.parametrize("seed", range(8))
def test_row_by_row_it_is_what_judging_each_call_again_says(
    database: Database, clock: FakeClock, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pages, under any rules, for any call: the same as asking the policy about each proposal."""
    monkeypatch.setattr(rule_simulation, "MOST_JUDGED", 3)
    draw = random.Random(seed)
    made = Rows(database, clock)
    for _ in range(20):
        clock.forward(MINUTE)
        risk = Risk(draw.choice(list(Level)), "why", vouched=draw.random() < 0.7)
        changes = {"risk": risk, "kind": draw.choice((kinds.CALL, kinds.CALL, kinds.REQUEST))}
        changes |= {"tool_name": draw.choice(("paint", "smash")), "requester": draw.choice((ANA, BEN, ADA))}
        made.propose(at=draw.choice((ROOM, HALL)), **changes)
    policies = Policies(Policy(admins=frozenset({str(ADA)})))
    for _ in range(draw.randrange(3)):
        set_now = _rule(draw)
        database.write_now(rules.set_rule, set_now, ADA, clock())
    for _ in range(10):
        tried = _rule(draw)
        found = _in_pages(database, policies, tried, clock)
        assert found == database.read_now(_judged, policies, tried), tried


def _rule(draw: random.Random) -> Rule:
    subject, value = draw.choice(RULES)
    tools = draw.choice((EVERYWHERE, "paint", "sm*"))
    return Rule(0, subject, draw.choice(PLACES), tools, value, draw.choice(LIMITS))


def _in_pages(database: Database, policies: Policies, tried: Rule, clock: FakeClock) -> dict[Effect, int]:
    found, before = dict.fromkeys(Effect, 0), None
    while True:
        page = database.read_now(
            rule_simulation.try_rule, policies, tried, clock() - timedelta(days=30), before
        )
        found = {each: found[each] + page.effects[each] for each in Effect}
        if (before := page.before) is None:
            return found


def _judged(session: Session, policies: Policies, tried: Rule) -> dict[Effect, int]:
    """Each proposal as a live call would be judged, before and after the rule is there."""
    today = policies.load(session)
    kept = [rule for rule in today.rulebook.rules if rule.slot != tried.slot]
    later = today.with_rulebook(replace(today.rulebook, rules=(*kept, tried)))
    found = dict.fromkeys(Effect, 0)
    for p in proposals.list_in_states(session, list(State)):
        if p.kind is kinds.CALL and p.risk.writes:
            call = rights.call_of(session, p)
            old, new = (each.judge(call) for each in (today, later))
            if effect := _effect(p, old, new):
                found[effect] += 1
    return found


def _effect(p: Proposal, old: Verdict, new: Verdict) -> Effect | None:
    match old.judgement, new.judgement:
        case Judgement.ASK, Judgement.RUN:
            return None if p.grant_id else Effect.SPARED
        case ((Judgement.RUN | Judgement.REFUSE), Judgement.ASK):
            return Effect.ASKED
        case ((Judgement.RUN | Judgement.ASK), Judgement.REFUSE):
            return Effect.REFUSED
        case Judgement.REFUSE, Judgement.RUN:
            return Effect.OTHERWISE
        case Judgement.ASK, Judgement.ASK:
            same = (old.deciders, old.quorum, old.declines) == (new.deciders, new.quorum, new.declines)
            return None if same else Effect.OTHERWISE
        case _:
            return None
