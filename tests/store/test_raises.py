"""A raise races with a press, a claim, an edit and an expiry: the number of votes is right each time."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import Session

from bot.approvals import decide, lifecycle
from bot.approvals.press_values import Contents, Prepared
from bot.domain.chat import Press
from bot.domain.deciders import Deciders
from bot.domain.digests import make_digest
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level, Risk
from bot.domain.verbs import Verb
from bot.domain.verdicts import Judgement, Verdict
from bot.store import requirements
from bot.store.audit import verification
from bot.store.audit.log import Author
from tests.kit import ANA, BEN
from tests.store.conftest import POLICIES, DatabaseCluster, Rows

pytestmark = pytest.mark.slow

RACES = 25
DECIDERS = Deciders(requester=True, people=(str(BEN),))
BLUE = {"lamp": "desk", "color": "blue"}


def propose(rows: Rows, **changes: Any) -> Proposal:
    [proposal] = rows.propose(requester=ANA, deciders=DECIDERS, **changes)
    return proposal


def raising(rows: Rows, proposal: Proposal) -> Callable[[], Any]:
    given = (POLICIES, proposal.id, 1, "no", rows.clock())
    return lambda: rows.database.write_now(lifecycle.require_another_approval, *given)[0]


def check(rows: Rows, proposal: Proposal, state: State, quorum: int, votes: int) -> None:
    now = rows.now(proposal)
    assert (now.state, now.quorum, len(now.votes)) == (state, quorum, votes)


def test_with_a_press_it_always_needs_two_and_has_one(rows: Rows, together: DatabaseCluster) -> None:
    for _ in range(RACES):
        proposal = propose(rows)
        together([raising(rows, proposal), lambda p=proposal: rows.decide(p)])
        check(rows, proposal, State.PROPOSED, 2, 1)
        rows.decide(proposal, actor=BEN)
        check(rows, proposal, State.APPROVED, 2, 2)
    assert rows.database.read_now(verification.find_faults_in_session) == []


def test_with_a_claim_it_runs_with_one_or_waits_for_a_second(rows: Rows, together: DatabaseCluster) -> None:
    for _ in range(RACES):
        proposal = propose(rows)
        rows.decide(proposal)
        claim = lambda p=proposal: rows.claim(p, "here")  # noqa: E731
        raised, first, second = together([raising(rows, proposal), claim, claim])
        claimed = [each for each in (first, second) if isinstance(each, Proposal)]
        if raised is None:
            assert len(claimed) == 1
            check(rows, proposal, State.EXECUTING, 1, 1)
            rows.finish(claimed[0])
        else:
            assert claimed == []
            check(rows, proposal, State.PROPOSED, 2, 1)
    assert rows.database.read_now(verification.find_faults_in_session) == []


def test_with_an_edit_what_is_asked_now_needs_what_its_rule_says(
    rows: Rows, together: DatabaseCluster
) -> None:
    for _ in range(RACES):
        proposal = propose(rows)
        verdict = Verdict(Judgement.ASK, Risk(Level.WRITE, ""), "", DECIDERS)
        contents = Contents(
            BLUE, "1", make_digest("paint", "1", BLUE), "Paint", proposal.preview, verdict, {}
        )
        press = Press(ANA, Verb.EDIT, proposal.id, 1)
        given = (press, POLICIES, rows.clock(), Prepared(contents))
        edit = lambda given=given: rows.database.write_now(decide.decide, *given)  # noqa: E731
        together([raising(rows, proposal), edit])
        assert rows.now(proposal).round == 2
        check(rows, proposal, State.PROPOSED, 1, 0)
    assert rows.database.read_now(verification.find_faults_in_session) == []


def test_with_an_expiry_it_has_ended(rows: Rows, together: DatabaseCluster) -> None:
    for _ in range(RACES):
        proposal = propose(rows)
        rows.clock.forward(timedelta(hours=25))
        expire = lambda: rows.database.write_now(lifecycle.expire_due, POLICIES, rows.clock(), 9)  # noqa: E731
        raised, _ = together([raising(rows, proposal), expire])
        expire()
        assert not isinstance(raised, Exception)
        assert rows.now(proposal).state is State.EXPIRED
        assert rows.database.write_now(
            lifecycle.require_another_approval, POLICIES, proposal.id, 1, "no", rows.clock()
        ) == (*(None, ()),)
    assert rows.database.read_now(verification.find_faults_in_session) == []


def test_nothing_is_lowered_and_nothing_else_changes(rows: Rows) -> None:
    proposal = propose(rows, quorum=2)
    by, now = Author.of_nod("raise"), rows.clock()

    def attempt(session: Session, before: Proposal, **changes: Any) -> object:
        given = {"deciders": before.deciders, **changes}
        return requirements.raise_requirements(session, before, by, now, **given)

    for wrong in (
        {"quorum": 1},
        {"deciders": replace(DECIDERS, people=())},
        {"deciders": replace(DECIDERS, four_eyes=True)},
        {"expires_at": now},
    ):
        with pytest.raises(ValueError, match="requirements"):
            rows.database.write_now(attempt, proposal, **wrong)
    rows.decide(proposal, Verb.DECLINE)
    with pytest.raises(ValueError, match="waiting or approved"):
        rows.database.write_now(attempt, rows.now(proposal), quorum=3)
