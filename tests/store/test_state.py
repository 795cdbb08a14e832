"""State that is kept by name: in rooms by key, and for tasks that come back."""

import asyncio
import threading
from datetime import timedelta

import pytest
from sqlmodel import Session

from bot.store import rules
from bot.store.database import Database
from bot.store.state import (
    claim_day,
    count_states,
    forget_states,
    list_states,
    list_unchanged_keys,
    load_state,
    load_task_state,
    pop_state,
    store_state,
    store_task_state,
)
from bot.store.tables.rules import BookRow
from tests.kit import FakeClock


def test_a_state_is_remembered_replaced_and_ended(database: Database, clock: FakeClock) -> None:
    for state in ({"step": 1}, {"step": 2}):
        database.write_now(store_state, "room", "7", state, clock())
        assert database.read_now(load_state, "room", "7") == state
    database.write_now(store_state, "room", "7", None, clock())
    assert database.read_now(load_state, "room", "7") is None


async def test_two_who_keep_the_same_state_at_the_same_time_both_do(database: Database, clock: FakeClock):
    states = [{"prompt": number} for number in range(20)]
    await asyncio.gather(*(database.write(store_state, "room", "7", state, clock()) for state in states))
    assert await database.read(load_state, "room", "7") in states


def test_a_room_lists_counts_and_forgets_its_own_alone(database: Database, clock: FakeClock) -> None:
    write, read, begun = database.write_now, database.read_now, clock()
    for room, key in (("asks", "a/1"), ("asks", "a/2"), ("asks", "b/1"), ("other", "a/1")):
        write(store_state, room, key, {"key": key}, clock())
        clock.forward(timedelta(minutes=1))
    assert read(list_states, "asks", "a/") == {"a/1": {"key": "a/1"}, "a/2": {"key": "a/2"}}
    assert sorted(read(list_states, "asks")) == ["a/1", "a/2", "b/1"]
    assert (read(count_states, "asks"), read(count_states, "nowhere")) == (3, 0)
    assert read(list_unchanged_keys, "asks", begun + timedelta(seconds=1), clock()) == ["a/1"]
    write(forget_states, "asks", begun + timedelta(minutes=1))
    assert (list(read(list_states, "asks")), list(read(list_states, "other"))) == (["b/1"], ["a/1"])


@pytest.mark.parametrize(
    ("prefix", "other"), [("my_hub ", "my-hub 1"), ("50% ", "50 percent 1"), ("a/", "A/1")]
)
def test_a_prefix_is_taken_literally(database: Database, clock: FakeClock, prefix: str, other: str) -> None:
    for key in (f"{prefix}1", other):
        database.write_now(store_state, "waits", key, {}, clock())
    assert list(database.read_now(list_states, "waits", prefix)) == [f"{prefix}1"]


def test_what_is_taken_is_gone_and_what_is_too_old_is_not_given(database: Database, clock: FakeClock) -> None:
    for key in ("old", "new"):
        database.write_now(store_state, "begun", key, {"key": key}, clock())
        clock.forward(timedelta(minutes=2))
    after = clock() - timedelta(minutes=3)
    assert database.write_now(pop_state, "begun", "old", after) is None
    assert database.write_now(pop_state, "begun", "new", after) == {"key": "new"}
    assert database.write_now(pop_state, "begun", "new", after) is None


def test_each_task_keeps_its_own_state_and_claims_a_day_once(database: Database, clock: FakeClock) -> None:
    assert database.read_now(load_task_state, "resume") == {}
    database.write_now(store_task_state, "resume", {}, {"after": 7})
    assert database.write_now(claim_day, "digest", clock().date())
    assert not database.write_now(claim_day, "digest", clock().date())
    assert database.write_now(claim_day, "digest", clock().date() + timedelta(days=1))
    assert database.read_now(load_task_state, "resume") == {"after": 7}


async def test_of_two_who_claim_a_day_at_the_same_time_one_gets_it_and_no_other_state_is_lost(
    database: Database, clock: FakeClock
) -> None:
    if database.dialect == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    await database.write(store_task_state, "anchor", {}, {"at": 1})
    met, ran = threading.Barrier(2), set[str]()

    def claim(session: Session, who: str, task: str) -> bool:
        row = session.get(BookRow, rules.BOOK_ID)  # as both know it
        if who not in ran:  # the one that runs again meets no other
            ran.add(who)
            met.wait(10)
        assert row is not None
        return claim_day(session, task, clock().date())

    both = (database.write(claim, who, "digest") for who in "ab")
    assert sorted(await asyncio.gather(*both)) == [False, True]
    ran.clear()
    assert await asyncio.gather(database.write(claim, "a", "one"), database.write(claim, "b", "other")) == [
        True,
        True,
    ]
    kept = [await database.read(load_task_state, task) for task in ("digest", "anchor", "one", "other")]
    assert all(kept)
