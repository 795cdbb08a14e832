"""What a process holds of the rules between two transactions."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from sqlmodel import Session

from bot.domain.policy import Policy
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import EVERYWHERE, Rule
from bot.store import rules
from bot.store.database import Database
from bot.store.rules import Policies
from tests.kit import ADA, FakeClock

FORBIDDEN = Rule(0, Subject.POLICY, EVERYWHERE, "paint", Mode.FORBID)


@pytest.fixture
def policies() -> Policies:
    return Policies(Policy())


def test_an_older_snapshot_that_ends_last_does_not_bring_old_rules_back(
    database: Database, policies: Policies, clock: FakeClock
) -> None:
    begun, changed = Event(), Event()

    def slowly(session: Session) -> bool:
        rules.find_paused_since(session)
        begun.set()
        changed.wait(20)
        return policies.load(session).rulebook.has_forbid_rule

    with ThreadPoolExecutor(1) as pool:
        older = pool.submit(database.read_now, slowly)
        begun.wait(20)
        database.write_now(rules.set_rule, FORBIDDEN, ADA, clock())
        assert database.read_now(policies.load).rulebook.has_forbid_rule
        changed.set()
        assert not older.result(20)  # a snapshot is one moment
    assert policies.latest_policy.rulebook.has_forbid_rule


def test_rules_that_are_not_committed_are_not_held(
    database: Database, policies: Policies, clock: FakeClock
) -> None:
    def add_and_break(session: Session) -> None:
        rules.set_rule(session, FORBIDDEN, ADA, clock())
        assert policies.load(session).rulebook.has_forbid_rule
        raise RuntimeError

    with pytest.raises(RuntimeError):
        database.write_now(add_and_break)
    assert not policies.latest_policy.rulebook.has_forbid_rule
    database.write_now(
        rules.set_rule, Rule(0, Subject.POLICY, EVERYWHERE, "paint", Mode.ALWAYS), ADA, clock()
    )
    assert not database.read_now(policies.load).rulebook.has_forbid_rule
