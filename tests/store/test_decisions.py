"""What people and time do to proposals, with many at the same time."""

from datetime import timedelta

import pytest
from sqlmodel import Session

from bot.approvals import decide, lifecycle, runs
from bot.approvals.press_values import Contents, Prepared, PressOutcome
from bot.domain.chat import Answer
from bot.domain.jobs import Work
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.verbs import Verb
from bot.domain.verdicts import Judgement, Verdict
from bot.store import turns
from bot.store.rules import Policies
from tests.kit import ADA, ANA
from tests.store.conftest import POLICIES, DatabaseCluster, Rows


def test_of_twenty_who_decide_at_the_same_time_one_wins_and_the_rest_are_told(
    rows: Rows, together: DatabaseCluster
) -> None:
    [p] = rows.propose()
    verbs = [Verb.APPROVE, Verb.DECLINE]

    def press(n: int) -> Answer:
        return rows.decide(p, verbs[n % 2]).reply.answer

    answers = together([lambda n=n: press(n) for n in range(20)])  # type: ignore[misc]
    assert sorted(answers) == [Answer.ACCEPTED] + [Answer.ALREADY] * 19
    assert rows.now(p).version == 2


def test_when_twenty_of_one_answer_end_together_the_conversation_continues(
    rows: Rows, together: DatabaseCluster
) -> None:
    running = rows.running(20)
    ended = together([lambda p=p: rows.finish(p) for p in running])  # type: ignore[misc]
    woken = [job for _, jobs in ended for job in jobs if job.work is Work.TURN]
    assert len(woken) == 1
    assert rows.database.read_now(turns.list_wanted) == [running[0].conversation_id]


def test_a_group_decision_and_single_ones_at_the_same_time_leave_every_proposal_decided_once(
    rows: Rows, together: DatabaseCluster
) -> None:
    group = rows.propose(5)

    jobs = [lambda n=n: rows.decide(group[n], Verb.APPROVE_ALL) for n in range(5)]  # type: ignore[misc]
    jobs += [lambda n=n: rows.decide(group[n], Verb.DECLINE) for n in range(5)]  # type: ignore[misc]
    outcomes = together(jobs)
    assert [o for o in outcomes if isinstance(o, Exception)] == []
    assert all(rows.now(p).version == 2 for p in group)


def test_many_tickers_expire_each_due_proposal_once(rows: Rows, together: DatabaseCluster) -> None:
    due = [rows.propose()[0] for _ in range(10)]
    rows.clock.forward(timedelta(hours=24))
    tick = lambda: rows.database.write_now(lifecycle.expire_due, POLICIES, rows.clock(), 100)  # noqa: E731
    expired = [p.id for batch in together([tick] * 8) for p, _ in batch]
    assert sorted(expired) == sorted(p.id for p in due)
    assert {rows.now(p).version for p in due} == {2}


def test_expiry_and_approval_at_the_same_time_have_one_outcome(rows: Rows, together: DatabaseCluster) -> None:
    found = [rows.propose()[0] for _ in range(8)]
    deadline = rows.clock() + timedelta(hours=24)

    def expire() -> object:
        return rows.database.write_now(lifecycle.expire_due, POLICIES, deadline, 100)

    presses = [lambda p=p: rows.decide(p) for p in found]  # type: ignore[misc]
    outcomes = together([*presses, *[expire] * 8])
    assert [o for o in outcomes if isinstance(o, Exception)] == []
    assert {rows.now(p).version for p in found} == {2}
    assert {rows.now(p).state for p in found} <= {State.APPROVED, State.EXPIRED}


def test_the_same_person_votes_once_and_a_quorum_needs_two(rows: Rows) -> None:
    [p] = rows.propose(quorum=2)
    assert rows.decide(p).reply.text == "Your vote counts: 1 of 2."
    assert rows.decide(p).reply.answer is Answer.ALREADY
    assert rows.now(p).state is State.PROPOSED


def test_a_late_end_changes_nothing_once_the_claim_is_lost(rows: Rows) -> None:
    [p] = rows.running()
    rows.database.write_now(runs.abandon, p, rows.clock(), rerun=False)
    assert rows.finish(p) is None
    assert rows.now(p).cause is Cause.OUTCOME_UNKNOWN


def test_an_abandoned_idempotent_one_is_approved_again(rows: Rows) -> None:
    [p] = rows.running()
    jobs = rows.database.write_now(runs.abandon, p, rows.clock(), rerun=True)
    assert rows.now(p).state is State.APPROVED
    assert Work.EXECUTE in [job.work for job in jobs]


def test_an_admin_cannot_give_it_to_no_one(rows: Rows) -> None:
    [p] = rows.propose()
    policies = Policies(Policy(admins=frozenset({str(ADA)})))

    def press(session: Session) -> PressOutcome:
        asked = decide.Press(ADA, Verb.REASSIGN, p.id, reason="whoever")
        return decide.decide(session, asked, policies, rows.clock())

    assert rows.database.write_now(press).reply.answer is Answer.INVALID
    assert rows.now(p) == p


def test_what_was_decided_in_the_meantime_is_not_cancelled_as_undeliverable(rows: Rows) -> None:
    [p] = rows.propose()
    rows.decide(p)
    assert rows.database.write_now(lifecycle.cancel_undeliverable, p.id, "archived", rows.clock()) == ()
    assert rows.now(p).state is State.APPROVED


def test_an_edit_that_brings_it_under_another_rule_does_not_count_the_editors_vote(rows: Rows) -> None:
    [p] = rows.propose()
    admins_only = type(p.deciders)(requester=False, roles=("admin",))
    verdict = Verdict(Judgement.ASK, p.risk, "destructive calls", admins_only)
    edit = Contents({"lamp": "roof"}, "1", "other", "Smash roof", (), verdict, {})

    def press(session: Session) -> PressOutcome:
        asked = decide.Press(ANA, Verb.APPROVE, p.id, arguments=edit.arguments)
        return decide.decide(session, asked, POLICIES, rows.clock(), Prepared(edit))

    decided = rows.database.write_now(press)
    assert decided.reply.text.startswith("Edited, not approved. You may not decide this one.")
    now = rows.now(p)
    assert (now.state, now.votes, now.round) == (State.PROPOSED, (), 2)


@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.DECLINE, Verb.CANCEL])
def test_a_decision_and_its_record_are_one_transaction(rows: Rows, verb: Verb) -> None:
    [p] = rows.propose()

    def press_then_break(session: Session) -> None:
        decide.decide(session, decide.Press(ANA, verb, p.id), POLICIES, rows.clock())
        raise ValueError("the process dies here")

    with pytest.raises(ValueError, match="dies here"):
        rows.database.write_now(press_then_break)
    assert rows.now(p) == p
    assert rows.decide(p, verb).reply.answer is Answer.ACCEPTED
