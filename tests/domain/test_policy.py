"""Who may decide what, as pure rules."""

import pytest

from bot.domain.people import Actor, Person, Role
from bot.domain.policy import Judgement, Place, Policy
from bot.domain.proposals import Deciders
from bot.domain.risk import Level, Risk
from bot.domain.rules import Mode
from tests.domain.test_cards import make_proposal

RISKS = {level: Risk(level, "") for level in Level}
ANA, BEN, EVE = (Person(f"chat:{n}", n, frozenset({f"chat:{n}"})) for n in ("ana", "ben", "eve"))


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
    verdicts = {level: Policy(mode).judge("paint", risk, CHAT, ANA) for level, risk in RISKS.items()}
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
    assert Policy(mode).judge("paint", unvouched, CHAT, ANA).judgement is judgement


def test_a_verdict_names_its_rule() -> None:
    assert Policy().judge("paint", RISKS[Level.WRITE], CHAT, ANA).rule == "policy writes"


def test_in_a_private_chat_the_requester_decides_and_in_a_shared_room_approvers_too() -> None:
    policy = Policy(approvers=frozenset({"chat:ben"}), admins=frozenset({"chat:ada"}))
    write = RISKS[Level.WRITE]
    assert policy.judge("paint", write, CHAT, ANA).deciders == Deciders(
        requester=True, roles=(Role.ADMIN,), place="chat:ana"
    )
    assert policy.judge("paint", write, ROOM, ANA).deciders == Deciders(
        requester=True, roles=(Role.APPROVER, Role.ADMIN), place=ROOM.address
    )


@pytest.mark.parametrize("place", [CHAT, ROOM])
def test_one_approver_besides_the_requester_is_enough_for_four_eyes_in_private_too(place: Place) -> None:
    policy = Policy(approvers=frozenset({"chat:ben"}), admins=frozenset({"chat:ana"}))
    deciders = policy.judge("smash", RISKS[Level.DESTRUCTIVE], place, ANA).deciders
    assert deciders.four_eyes
    assert policy.objection(make_proposal(deciders=deciders), ANA, ANA) is not None
    assert policy.objection(make_proposal(deciders=deciders), BEN, ANA) is None


def test_a_role_is_a_persons_whichever_account_has_it() -> None:
    policy = Policy(admins=frozenset({"slack:T1/U1"}))
    linked = Person("chat:ana", "Ana", frozenset({"chat:ana", "slack:T1/U1"}))
    assert policy.roles_of(linked) == {Role.ADMIN}
    assert policy.roles_of(ANA) == frozenset()


def test_who_may_not_decide_is_told_who_may() -> None:
    proposal = make_proposal(deciders=Deciders(requester=True, roles=("approver",), people=("chat:zoe",)))
    policy = Policy(approvers=frozenset({"chat:ben"}))
    assert policy.objection(proposal, ANA, ANA) is None
    assert policy.objection(proposal, BEN, ANA) is None
    assert policy.objection(proposal, EVE, ANA) == (
        "You may not decide this one. Who may: Ana, any approver or chat:zoe. It stays open."
    )


def test_without_anybody_who_may_decide_everybody_is_refused() -> None:
    proposal = make_proposal(deciders=Deciders(requester=False))
    assert all(Policy().objection(proposal, person, ANA) for person in (ANA, BEN, EVE))


def test_an_actor_is_known_by_its_account_not_by_its_name() -> None:
    assert Actor("chat", "ana", "Ana") == Actor("chat", "ana", "Somebody")
    assert Actor("chat", "ana") != Actor("slack", "ana")
