"""Accounts and the Persons behind them."""

from datetime import timedelta

import pytest

from bot.domain.people import Actor
from bot.store import people
from bot.store.database import Database
from tests.conftest import FakeClock
from tests.store.conftest import Together

SLACK, PHONE, WEB = Actor("slack", "T1/U1", "Ana"), Actor("telegram", "9", "Ana K"), Actor("http", "ana")


@pytest.fixture
def link(database: Database, clock: FakeClock) -> object:
    def join(first: Actor, second: Actor) -> Actor | None:
        code = database.write_now(people.new_code, first, clock())
        return database.write_now(people.link, second, code, clock())

    return join


def person_id(database: Database, actor: Actor) -> str:
    return database.read_now(people.person_of, actor).id


def test_an_account_that_was_never_linked_is_a_person_of_its_own(database: Database) -> None:
    person = database.read_now(people.person_of, SLACK)
    assert (person.id, person.name, person.accounts) == ("slack:T1/U1", "Ana", {"slack:T1/U1"})


def test_linked_accounts_are_one_person_also_over_a_third(database: Database, clock: FakeClock) -> None:
    for first, second in ((SLACK, PHONE), (PHONE, WEB)):
        code = database.write_now(people.new_code, first, clock())
        assert database.write_now(people.link, second, code, clock()) == first
    found = {person_id(database, actor) for actor in (SLACK, PHONE, WEB)}
    assert found == {"slack:T1/U1"}
    accounts = database.read_now(people.person_of, WEB).accounts
    assert accounts == {str(SLACK), str(PHONE), str(WEB)}


def test_two_linked_pairs_become_one_person_when_they_are_linked(
    database: Database, clock: FakeClock
) -> None:
    other = Actor("slack", "T2/U2", "Ana too")
    for first, second in ((SLACK, PHONE), (WEB, other), (SLACK, WEB)):
        code = database.write_now(people.new_code, first, clock())
        database.write_now(people.link, second, code, clock())
    assert len({person_id(database, actor) for actor in (SLACK, PHONE, WEB, other)}) == 1


def test_a_code_is_for_one_use_and_a_new_one_ends_the_old(
    database: Database, clock: FakeClock, together: Together
) -> None:
    old = database.write_now(people.new_code, SLACK, clock())
    code = database.write_now(people.new_code, SLACK, clock())
    assert database.write_now(people.link, PHONE, old, clock()) is None
    used = together([lambda: database.write_now(people.link, PHONE, code, clock())] * 10)
    assert [u for u in used if u is not None] == [SLACK]


def test_a_code_ends_after_ten_minutes(database: Database, clock: FakeClock) -> None:
    code = database.write_now(people.new_code, SLACK, clock())
    late = clock() + timedelta(minutes=10)
    assert database.write_now(people.link, PHONE, code, late) is None
    assert person_id(database, PHONE) == str(PHONE)
