"""Accounts and the Persons behind them."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from bot.approvals.accounts import linking
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.features.people import codes
from bot.features.people.codes import LinkOutcome
from bot.store import people
from bot.store.audit import verification
from bot.store.database import Database
from bot.store.rules import Policies
from tests.kit import ADA, FakeClock
from tests.store.conftest import POLICIES, DatabaseCluster

SLACK, PHONE, WEB = Actor("slack", "T1/U1", "Ana"), Actor("telegram", "9", "Ana K"), Actor("http", "ana")

Link = Callable[..., LinkOutcome]
NOTHING = linking.Unlinking(0, ())


def person_id(database: Database, actor: Actor) -> str:
    return database.read_now(people.load_person, actor).id


def test_an_account_that_was_never_linked_is_a_person_of_its_own(database: Database) -> None:
    person = database.read_now(people.load_person, SLACK)
    assert (person.id, person.name, person.accounts) == ("slack:T1/U1", "Ana", {"slack:T1/U1"})


@pytest.fixture
def link(database: Database, clock: FakeClock) -> Link:
    """Both accounts agree to be one person, all in one go."""

    def join(first: Actor, second: Actor, policies: Policies = POLICIES) -> LinkOutcome:
        code = database.write_now(codes.make_code, first, clock())
        assert database.write_now(codes.give_code, second, code, clock()) == first
        return database.write_now(codes.confirm, policies, first, second, clock())

    return join


def test_linked_accounts_are_one_person_also_over_a_third(database: Database, link: Link) -> None:
    for first, second in ((SLACK, PHONE), (PHONE, WEB)):
        assert link(first, second) is LinkOutcome.LINKED
    found = {person_id(database, actor) for actor in (SLACK, PHONE, WEB)}
    assert found == {"slack:T1/U1"}
    accounts = database.read_now(people.load_person, WEB).accounts
    assert accounts == {str(SLACK), str(PHONE), str(WEB)}


def test_two_linked_pairs_become_one_person_when_they_are_linked(database: Database, link: Link) -> None:
    other = Actor("slack", "T2/U2", "Ana too")
    for first, second in ((SLACK, PHONE), (WEB, other), (SLACK, WEB)):
        assert link(first, second) is LinkOutcome.LINKED
    assert len({person_id(database, actor) for actor in (SLACK, PHONE, WEB, other)}) == 1


def test_a_code_is_for_one_use_and_a_new_one_ends_the_old(
    database: Database, clock: FakeClock, together: DatabaseCluster
) -> None:
    old = database.write_now(codes.make_code, SLACK, clock())
    code = database.write_now(codes.make_code, SLACK, clock())
    assert database.write_now(codes.give_code, PHONE, old, clock()) is None
    assert database.write_now(codes.give_code, SLACK, code, clock()) is None  # its own
    used = together([lambda: database.write_now(codes.give_code, PHONE, code, clock())] * 10)
    assert [u for u in used if u is not None] == [SLACK]
    ended = together([lambda: database.write_now(codes.confirm, POLICIES, SLACK, PHONE, clock())] * 10)
    assert sorted(e.name for e in ended) == ["LINKED"] + ["NOTHING"] * 9


def test_a_code_and_a_yes_end_after_ten_minutes(database: Database, clock: FakeClock) -> None:
    code = database.write_now(codes.make_code, SLACK, clock())
    late = clock() + timedelta(minutes=10)
    assert database.write_now(codes.give_code, PHONE, code, late) is None
    assert database.write_now(codes.give_code, PHONE, code, clock()) == SLACK
    assert database.write_now(codes.confirm, POLICIES, SLACK, PHONE, late) is LinkOutcome.NOTHING
    assert person_id(database, PHONE) == str(PHONE)


def test_nothing_is_joined_before_the_side_that_asked_says_yes_to_that_account(
    database: Database, clock: FakeClock
) -> None:
    code = database.write_now(codes.make_code, SLACK, clock())
    assert database.write_now(codes.confirm, POLICIES, SLACK, PHONE, clock()) is LinkOutcome.NOTHING
    database.write_now(codes.give_code, PHONE, code, clock())
    assert database.write_now(codes.confirm, POLICIES, SLACK, WEB, clock()) is LinkOutcome.NOTHING
    assert database.write_now(codes.confirm, POLICIES, PHONE, SLACK, clock()) is LinkOutcome.NOTHING
    assert person_id(database, PHONE) == str(PHONE)
    assert database.write_now(codes.confirm, POLICIES, SLACK, PHONE, clock()) is LinkOutcome.LINKED


def test_a_link_that_gives_a_role_waits_for_an_admin(
    database: Database, clock: FakeClock, link: Link
) -> None:
    policies = Policies(Policy(admins=frozenset({"chat:ada"}), approvers=frozenset({str(SLACK)})))
    assert link(SLACK, PHONE, policies) is LinkOutcome.WAITS
    assert person_id(database, PHONE) == str(PHONE)
    assert database.write_now(codes.allow, policies, PHONE, WEB, ADA, clock()) is LinkOutcome.NOTHING
    assert database.write_now(codes.allow, policies, PHONE, SLACK, ADA, clock()) is LinkOutcome.LINKED
    assert person_id(database, PHONE) == str(SLACK)
    assert database.read_now(verification.find_faults_in_session) == []


@pytest.mark.parametrize("leaves", [SLACK, PHONE, WEB], ids=str)
def test_an_unlinked_account_is_a_person_of_its_own_and_the_rest_stay_one(
    database: Database, clock: FakeClock, link: Link, leaves: Actor
) -> None:
    link(SLACK, PHONE)
    link(SLACK, WEB)
    assert database.write_now(linking.unlink_account, str(leaves), ADA, clock()) == NOTHING
    rest = [actor for actor in (SLACK, PHONE, WEB) if actor != leaves]
    assert database.read_now(people.load_person, leaves).accounts == {str(leaves)}
    assert len({person_id(database, actor) for actor in rest}) == 1
    assert person_id(database, leaves) not in {person_id(database, actor) for actor in rest}
    assert database.write_now(linking.unlink_account, str(rest[0]), ADA, clock()) == NOTHING
    assert len({person_id(database, actor) for actor in (SLACK, PHONE, WEB)}) == 3
    assert database.write_now(linking.unlink_account, str(rest[1]), ADA, clock()) is None
    assert database.read_now(verification.find_faults_in_session) == []
