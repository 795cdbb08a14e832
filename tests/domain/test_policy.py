"""Who may decide what, as pure rules."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.domain import kinds
from bot.domain.call_facts import CallFacts, Place
from bot.domain.chat import same_chat
from bot.domain.conditions import Condition
from bot.domain.deciders import Deciders
from bot.domain.people import Actor, Membership, Person, Role
from bot.domain.plans import Approver
from bot.domain.policy import Policy
from bot.domain.proposals import ProposalKind
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import Escalation, GivenRole, Mode, Quorum, RuleValue, Subject
from bot.domain.rulebook import Rulebook
from bot.domain.rules import Limits, Rule
from bot.domain.verdicts import Judgement, make_terms
from tests.domain.test_cards import make_proposal

RISKS = {level: Risk(level, "") for level in Level}
ANA, BEN, EVE = (Person(f"chat:{n}", n, frozenset({f"chat:{n}"})) for n in ("ana", "ben", "eve"))


NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def asked(
    tool: str, risk: Risk, place: Place, who: Person = ANA, kind: ProposalKind = kinds.CALL, **more: Any
) -> CallFacts:
    """A call; ``more``: its arguments, the tool's schema, another time."""
    return replace(CallFacts(tool, risk, place, who, NOW, kind), **more)


CHAT, ROOM = Place("chat:ana", private=True), Place("chat:room", private=False)


@pytest.mark.parametrize(
    ("mode", "asks"),
    [
        (Mode.ALWAYS, {Level.READ, Level.WRITE, Level.DESTRUCTIVE}),
        (Mode.WRITES, {Level.WRITE, Level.DESTRUCTIVE}),
        (Mode.DESTRUCTIVE, {Level.DESTRUCTIVE}),
        (Mode.NEVER, set()),
    ],
)
def test_a_mode_says_which_calls_ask_and_the_rest_run(mode: Mode, asks: set[Level]) -> None:
    verdicts = {level: Policy(mode).judge(asked("paint", risk, CHAT, ANA)) for level, risk in RISKS.items()}
    assert {level for level, v in verdicts.items() if v.judgement is Judgement.ASK} == asks
    assert {v.judgement for level, v in verdicts.items() if level not in asks} <= {Judgement.RUN}


@pytest.mark.parametrize(
    ("mode", "judgement"),
    [
        (Mode.ALWAYS, Judgement.ASK),
        (Mode.WRITES, Judgement.ASK),
        (Mode.DESTRUCTIVE, Judgement.ASK),
        (Mode.NEVER, Judgement.RUN),
    ],
)
def test_a_write_that_no_one_vouches_for_asks_wherever_destructive_calls_ask(
    mode: Mode, judgement: Judgement
) -> None:
    unvouched = Risk(Level.WRITE, "its server says so", vouched=False)
    assert Policy(mode).judge(asked("paint", unvouched, CHAT, ANA)).judgement is judgement


def test_a_verdict_names_its_rule() -> None:
    assert Policy().judge(asked("paint", RISKS[Level.WRITE], CHAT, ANA)).rule_text == "policy writes"


def test_in_a_private_chat_the_requester_decides_and_in_a_shared_room_approvers_too() -> None:
    policy = Policy(approvers=frozenset({"chat:ben"}), admins=frozenset({"chat:ada"}))
    write = RISKS[Level.WRITE]
    assert policy.judge(asked("paint", write, CHAT, ANA)).deciders == Deciders(
        requester=True, roles=(Role.ADMIN,), place="chat:ana"
    )
    assert policy.judge(asked("paint", write, ROOM, ANA)).deciders == Deciders(
        requester=True, roles=(Role.APPROVER, Role.ADMIN), place=ROOM.address
    )


@pytest.mark.parametrize("place", [CHAT, ROOM])
def test_one_approver_besides_the_requester_is_enough_for_four_eyes_in_private_too(place: Place) -> None:
    policy = Policy(approvers=frozenset({"chat:ben"}), admins=frozenset({"chat:ana"}))
    deciders = policy.judge(asked("smash", RISKS[Level.DESTRUCTIVE], place, ANA)).deciders
    assert deciders.four_eyes
    assert policy.find_decision_objection(make_proposal(deciders=deciders), ANA, ANA) is not None
    assert policy.find_decision_objection(make_proposal(deciders=deciders), BEN, ANA) is None


def test_a_role_is_a_persons_whichever_account_has_it() -> None:
    policy = Policy(admins=frozenset({"slack:T1/U1"}))
    linked = Person("chat:ana", "Ana", frozenset({"chat:ana", "slack:T1/U1"}))
    assert policy.roles_of(linked) == {Role.ADMIN}
    assert policy.roles_of(ANA) == frozenset()


def test_who_may_not_decide_is_told_who_may() -> None:
    proposal = make_proposal(deciders=Deciders(requester=True, roles=("approver",), people=("chat:zoe",)))
    policy = Policy(approvers=frozenset({"chat:ben"}))
    assert policy.find_decision_objection(proposal, ANA, ANA) is None
    assert policy.find_decision_objection(proposal, BEN, ANA) is None
    assert policy.find_decision_objection(proposal, EVE, ANA) == (
        "You may not decide this one. Who may: Ana, any approver or chat:zoe. It stays open."
    )


def test_without_anybody_who_may_decide_everybody_is_refused() -> None:
    proposal = make_proposal(deciders=Deciders(requester=False))
    assert all(Policy().find_decision_objection(proposal, person, ANA) for person in (ANA, BEN, EVE))


def test_an_actor_is_known_by_its_account_not_by_its_name() -> None:
    assert Actor("chat", "ana", "Ana") == Actor("chat", "ana", "Somebody")
    assert Actor("chat", "ana") != Actor("slack", "ana")


def book(*rules: tuple[Subject, str, str, RuleValue]) -> Rulebook:
    """Rules as subject, place, tools, value."""
    return Rulebook(1, tuple(Rule(at, *rule) for at, rule in enumerate(rules, 1)))


@pytest.mark.parametrize(
    ("subject", "value", "reason"),
    [
        (Subject.POLICY, Mode.ALWAYS, "asks for more"),
        (Subject.RISK, Level.DESTRUCTIVE, "counts as worse"),
        (Subject.QUORUM, Quorum(2), "needs more people"),
        (Subject.DECIDERS, ("admin",), "fewer people decide"),
    ],
    ids=str,
)
def test_a_rule_makes_calls_stricter_at_its_place_and_for_its_tools_alone(
    subject: Subject, value: RuleValue, reason: str
) -> None:
    before = Policy()
    after = before.with_rulebook(book((subject, "chat:room", "paint", value)))
    write = RISKS[Level.WRITE]
    assert after.is_stricter_than(before, asked("paint", write, Place("chat:room/7", private=False))), reason
    assert not after.is_stricter_than(before, asked("paint", write, Place("chat:hall", private=False)))
    assert not after.is_stricter_than(before, asked("smash", write, Place("chat:room", private=False)))
    assert not before.is_stricter_than(after, asked("paint", write, Place("chat:room", private=False)))


def test_an_admin_of_one_workspace_is_bound_to_it_unless_a_rule_says_everywhere() -> None:
    ada = Person("ada", "Ada", frozenset({"slack:T1/ada", "slack:T2/ada"}))
    one = Policy(admins=frozenset({"slack:T1/ada"}))
    assert one.find_admin_workspace(ada) == "slack:T1"
    assert Policy(admins=ada.accounts).find_admin_workspace(ada) is None
    assert Policy().find_admin_workspace(ada) is None
    for role, bound in ((Role.ADMIN, None), (Role.APPROVER, "slack:T1")):
        everywhere = book((Subject.ROLE, "*", "*", GivenRole("slack:T1/ada", role, everywhere=True)))
        assert one.with_rulebook(everywhere).find_admin_workspace(ada) == bound
    here = book((Subject.ROLE, "*", "*", GivenRole("slack:T1/ada", Role.ADMIN)))
    assert one.with_rulebook(here).find_admin_workspace(ada) == "slack:T1"


@pytest.mark.parametrize(
    ("place", "rule"), [("chat:hall", "plans human"), ("chat:room", "rule 1: plans both")]
)
def test_a_plan_asks_by_the_rule_for_plans_of_its_place(place: str, rule: str) -> None:
    policy = Policy(Mode.NEVER, rulebook=book((Subject.PLANS, "chat:room", "*", Approver.BOTH)))
    verdict = policy.judge(asked("plan", RISKS[Level.READ], Place(place, private=True), ANA, kinds.PLAN))
    assert (verdict.judgement, verdict.rule_text.split(" in ")[0]) == (Judgement.ASK, rule)
    assert verdict.deciders.lead == (None if place == "chat:hall" else "both")


def test_a_refusal_calls_the_chat_the_one_where_it_was_asked() -> None:
    proposal = make_proposal(deciders=Deciders(requester=False, members="chat:room"))
    refused = Policy().find_decision_objection(proposal, EVE, ANA, "chat:hall")
    assert refused is not None
    assert "the chat where it was asked" in refused


@pytest.mark.parametrize(
    ("pressed", "same"),
    [("chat:room", True), ("chat:room/7", True), ("chat:room/7/8", True), ("chat:roo", False)],
)
def test_a_thread_and_its_chat_are_the_same_chat(pressed: str, same: bool) -> None:
    assert same_chat("chat:room/7", pressed) is same


def test_only_who_could_be_in_a_group_waits_for_the_platform_to_say_who_is() -> None:
    proposal = make_proposal(deciders=Deciders(requester=False, people=("chat:ops/admins",)))
    outside = Person("chat:pat", "Pat", frozenset({"chat:pat"}), Membership.GUEST)
    elsewhere = Person("mail:kim", "Kim", frozenset({"mail:kim"}))
    assert "can't check who is in chat:ops/admins" in str(
        Policy().find_decision_objection(proposal, EVE, ANA)
    )
    assert "may not decide" in str(Policy().find_decision_objection(proposal, elsewhere, ANA))
    assert "may not decide" in str(Policy().find_decision_objection(proposal, outside, ANA))


def test_a_role_counts_where_a_proposal_of_an_old_release_was_asked_for() -> None:
    policy = Policy(approvers=frozenset({"slack:T1/ben"}))
    ben = Person("ben", "Ben", frozenset({"slack:T1/ben"}))
    asked = {team: make_proposal(requester=Actor("slack", f"{team}/ana")) for team in ("T1", "T2")}
    assert policy.roles_for(ben, asked["T1"]) == {Role.APPROVER}
    assert policy.roles_for(ben, asked["T2"]) == frozenset()


def test_an_escalation_is_due_after_its_time() -> None:
    escalation = Escalation(timedelta(hours=4), "chat:leads")
    policy = Policy(rulebook=book((Subject.ESCALATE, "*", "*", escalation)))
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    made = make_terms(policy.judge(asked("paint", RISKS[Level.WRITE], CHAT, ANA)), now)
    assert (made["escalate_at"], made["escalate_to"]) == (now + timedelta(hours=4), "chat:leads")


def test_an_undo_rule_whose_condition_is_unknown_counts_where_it_is_stricter() -> None:
    here = Limits(Condition.parse("amount > 100"))
    schema = {"type": "object", "properties": {"amount": {"type": "number"}}}
    call = asked("pay", RISKS[Level.WRITE], CHAT, schema=schema, arguments={"amount": "a lot"})
    assert here.match_call(call, UTC) is None
    for length, counts in ((timedelta(0), timedelta(0)), (timedelta(hours=2), timedelta(minutes=30))):
        rule = Rule(1, Subject.UNDO, "*", "pay", length, limits=here)
        assert Rulebook(1, (rule,)).undo(call) == counts


def test_the_terms_say_for_how_many_seconds_it_can_be_undone() -> None:
    verdict = Policy().judge(asked("paint", RISKS[Level.WRITE], CHAT, ANA))
    for length, seconds in ((timedelta(minutes=5), 300), (None, None)):
        assert make_terms(replace(verdict, undo=length), NOW)["undo_seconds"] == seconds


def test_a_role_that_a_rule_gives_counts_in_its_own_workspace_unless_it_says_everywhere() -> None:
    for everywhere, held in ((False, frozenset()), (True, {"slack:T1/ben"})):
        given = GivenRole("slack:T1/ben", Role.APPROVER, everywhere=everywhere)
        policy = Policy(rulebook=book((Subject.ROLE, "*", "*", given)))
        assert policy.list_holders(Role.APPROVER, "slack:T2/C1") == held
        assert policy.list_holders(Role.APPROVER, "slack:T1/C1") == {"slack:T1/ben"}


@pytest.mark.parametrize(
    ("quorum", "declines"), [(Quorum(2), 1), (Quorum(2, 2), 1), (Quorum(2, 3), 2), (Quorum(1, 3), 3)]
)
def test_a_decline_ends_it_as_soon_as_the_quorum_can_no_longer_gather(quorum: Quorum, declines: int) -> None:
    policy = Policy(
        approvers=frozenset({"chat:ben", "chat:eve"}), rulebook=book((Subject.QUORUM, "*", "*", quorum))
    )
    verdict = policy.judge(asked("paint", RISKS[Level.WRITE], ROOM, ANA))
    assert (verdict.quorum, verdict.declines) == (quorum.needed, declines)


def test_a_question_needs_one_answer_whatever_the_rules_want_of_changes() -> None:
    policy = Policy(
        rulebook=book((Subject.QUORUM, "*", "*", Quorum(2)), (Subject.DECIDERS, "*", "*", ("admin",)))
    )
    verdict = policy.judge(asked("ask", RISKS[Level.READ], ROOM, ANA, kinds.QUESTION))
    assert (verdict.judgement, verdict.quorum) == (Judgement.ASK, 1)
    assert verdict.deciders == Deciders(requester=True)


def test_rules_about_time_count_for_their_tools_alone() -> None:
    hour, escalation = timedelta(hours=1), Escalation(timedelta(hours=4), "chat:leads")
    policy = Policy(
        rulebook=book(
            (Subject.TTL, "*", "paint", hour),
            (Subject.REMIND, "*", "paint", hour),
            (Subject.ESCALATE, "*", "paint", escalation),
        )
    )
    paint, smash = (policy.judge(asked(tool, RISKS[Level.WRITE], CHAT, ANA)) for tool in ("paint", "smash"))
    assert (paint.ttl, paint.remind_every) == (hour, hour)
    assert (paint.escalate_after, paint.escalate_to) == (escalation.delay, escalation.target)
    assert (smash.ttl, smash.remind_every) == (policy.ttl, None)
    assert (smash.escalate_after, smash.escalate_to) == (None, None)


def test_what_asks_though_no_rule_says_so_says_why() -> None:
    policy = Policy(Mode.NEVER, approvers=frozenset({"chat:ben"}))
    verdict = policy.judge(asked("deploy", RISKS[Level.WRITE], ROOM, ANA, kinds.REQUEST))
    assert (verdict.judgement, verdict.rule_text) == (Judgement.ASK, "a request always asks")
    spared = Policy(approvers=policy.approvers, rulebook=book((Subject.RISK, "*", "deploy", Level.READ)))
    verdict = spared.judge(asked("deploy", RISKS[Level.WRITE], ROOM, ANA, kinds.REQUEST))
    assert (verdict.judgement, verdict.rule_text) == (Judgement.ASK, "a request always asks")
