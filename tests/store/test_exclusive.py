"""Which transactions wait for each other on PostgreSQL."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlmodel import Session

from bot.approvals import grants, runs
from bot.approvals.grants import GrantTerms
from bot.domain.chat import Address
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import EVERYWHERE, Rule
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope, Likeness, Scope
from bot.domain.verbs import Verb
from bot.store import people, rules, transitions, turns
from bot.store.audit import verification
from bot.store.audit.log import Author
from tests.kit import ADA, ANA
from tests.kit.tables import OURS
from tests.store.conftest import POLICIES, Rows

ELSEWHERE = Address("room", "2")


@pytest.fixture
def apart(rows: Rows) -> Rows:
    """Rows in a database where transactions overlap."""
    if rows.database.dialect != "postgresql":
        pytest.skip("SQLite has one writer; transactions never overlap there")
    return rows


def waits(rows: Rows, first: Callable[[Session], object], then: Callable[[], object]) -> bool:
    """Whether ``then`` waits for the transaction that did ``first``; that one ends, then the other."""
    found: list[bool] = []
    waiting = text(f"SELECT count(*) FROM pg_stat_activity WHERE {OURS} AND wait_event_type = 'Lock'")

    def both(session: Session) -> None:
        first(session)
        later.append(threads.submit(then))
        with rows.database.engine.connect() as look:
            while not later[0].done() and not look.execute(waiting).scalar_one():
                look.rollback()
        found.append(not later[0].done())

    with ThreadPoolExecutor(1) as threads:
        later: list[object] = []
        rows.database.write_now(both)
    later[0].result()  # type: ignore[attr-defined]
    assert rows.database.read_now(verification.find_faults_in_session) == []
    return found[0]


def opened(rows: Rows, proposal: Proposal) -> Callable[[Session], object]:
    return lambda session: transitions.change_proposal(session, proposal, Author.of_nod("open"), rows.clock())


def test_what_is_decided_in_one_conversation_waits_for_none_of_another(apart: Rows) -> None:
    [here], [there] = apart.propose(), apart.propose(at=ELSEWHERE)
    assert not waits(apart, opened(apart, here), lambda: apart.decide(there))
    assert apart.now(there).state is State.APPROVED


def test_the_last_of_an_answer_to_end_sees_that_it_is_the_last(apart: Rows) -> None:
    one, other = apart.running(2)
    ends = (one, State.SUCCEEDED, apart.clock())
    assert waits(apart, lambda s: runs.finish(s, *ends), lambda: apart.finish(other))
    assert apart.database.read_now(turns.list_wanted) == [one.conversation_id]


def test_a_rule_changes_when_what_is_being_decided_is_decided(apart: Rows) -> None:
    [p] = apart.propose()
    rule = (Rule(0, Subject.POLICY, EVERYWHERE, "pay", Mode.ALWAYS), ADA, apart.clock())
    assert waits(apart, opened(apart, p), lambda: apart.database.write_now(rules.set_rule, *rule))


def test_nothing_begins_to_run_while_a_pause_begins(apart: Rows) -> None:
    [p] = apart.propose()
    apart.decide(p)
    assert waits(apart, lambda s: rules.pause_all(s, ADA, apart.clock()), lambda: apart.claim(p))
    assert apart.now(p).state is State.APPROVED


def test_a_grant_that_is_being_revoked_allows_nothing(apart: Rows) -> None:
    [declined] = apart.propose()
    apart.decide(declined, Verb.DECLINE)
    ana = apart.database.read_now(people.load_person, ANA)
    scope = Scope("paint", "1", GrantScope.TOOL, "")
    terms = GrantTerms(scope, "paint", GrantAudience.HERE, GrantDuration.HOUR)
    apart.database.write_now(grants.give_grant, declined, ANA, ana, terms, apart.clock())
    [p] = apart.propose()

    def use() -> Proposal:
        def approve(session: Session) -> Proposal:
            return grants.approve_by_grant(session, POLICIES, p, Likeness(), apart.clock())

        used = apart.database.write_now(approve)
        judged.append(used)
        return used

    judged: list[Proposal] = []
    assert waits(apart, lambda s: grants.revoke_grants(s, None, ADA, apart.clock()), use)
    assert [each.state for each in judged] == [State.PROPOSED]
