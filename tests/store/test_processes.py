"""A turn and an execution belong to one process, and only what a gone process owned is taken over."""

from dataclasses import replace
from typing import Any

import pytest

from bot.approvals import runs
from bot.domain.conversations import Turn, Usage
from bot.domain.jobs import Process
from bot.domain.proposal_states import State
from bot.errors import TakenOver
from bot.store import abandoned_work, processes, turns
from bot.store.database import Database
from tests.kit import FakeClock
from tests.store.conftest import Rows

FIRST, SECOND = Process("first", "here", 1), Process("second", "there", 2)


@pytest.fixture
def both(database: Database, clock: FakeClock) -> Database:
    for process in (FIRST, SECOND):
        database.write_now(processes.enter_process, process, clock())
    return database


@pytest.fixture
def turn(both: Database, rows: Rows) -> Turn:
    said = rows.say()
    assert said is not None
    return rows.turn(said.conversation_id)


def gone(database: Database, process: Process, beats: int = 0) -> list[str]:
    return database.write_now(processes.forget_processes, {process.id: beats})


def taken(database: Database, turn: Turn, process: Process, most: int = 2) -> Turn | None:
    took = database.write_now(turns.claim_turn, turn.id, process.id, most)
    return replace(turn, owner=process.id) if took else None


def answer(database: Database, turn: Turn, clock: FakeClock, text: str = "done") -> turns.StoredAnswer | None:
    used = replace(turn, usage=Usage(1, 1, 1))
    return database.write_now(turns.store_answer, used, text, [], {}, None, delivered=True, now=clock())


def test_a_turn_that_a_living_process_runs_is_not_taken(both: Database, turn: Turn) -> None:
    assert taken(both, turn, FIRST)
    assert taken(both, turn, SECOND) is None


def test_a_turn_of_a_gone_process_is_taken_over_and_its_late_answer_refused(
    both: Database, turn: Turn, clock: FakeClock
) -> None:
    frozen = taken(both, turn, FIRST)
    assert gone(both, FIRST) == ["first"]
    living = taken(both, turn, SECOND)
    assert frozen is not None
    assert living is not None
    both.write_now(processes.raise_beats, FIRST, clock())  # it comes back
    with pytest.raises(TakenOver):
        answer(both, frozen, clock)
    assert answer(both, living, clock)
    with pytest.raises(TakenOver):
        both.write_now(turns.check_owned, frozen)
    assert taken(both, turn, FIRST) is None


def test_a_process_that_comes_back_in_time_keeps_its_turn(
    both: Database, turn: Turn, clock: FakeClock
) -> None:
    kept = taken(both, turn, FIRST)
    assert kept is not None
    gone(both, FIRST)
    both.write_now(processes.raise_beats, FIRST, clock())
    assert taken(both, turn, SECOND) is None
    assert answer(both, kept, clock)


def test_one_that_beat_since_it_was_looked_at_is_not_forgotten(both: Database, clock: FakeClock) -> None:
    both.write_now(processes.raise_beats, FIRST, clock())
    assert gone(both, FIRST, beats=0) == []
    assert both.write_now(processes.raise_beats, SECOND, clock()) == {"first": 1}


def test_a_turn_is_given_up_only_after_it_took_its_processes_down(
    both: Database, turn: Turn, clock: FakeClock
) -> None:
    give_up: Any = lambda by: both.write_now(turns.give_up_turn, turn.id, by.id, 2, "no", clock())  # noqa: E731
    assert taken(both, turn, FIRST)
    assert give_up(SECOND) is False  # it runs
    gone(both, FIRST)
    assert taken(both, turn, SECOND)
    gone(both, SECOND)
    both.write_now(processes.enter_process, FIRST, clock())
    assert taken(both, turn, FIRST) is None
    assert give_up(FIRST) is True


def test_what_a_process_lets_go_of_in_order_is_free(both: Database, turn: Turn) -> None:
    assert taken(both, turn, FIRST)
    both.write_now(turns.release_turn, turn.id, SECOND.id)
    assert taken(both, turn, SECOND) is None
    both.write_now(turns.release_turn, turn.id, FIRST.id)
    assert taken(both, turn, SECOND)


def test_only_executions_of_gone_processes_are_abandoned(
    both: Database, rows: Rows, clock: FakeClock
) -> None:
    [p] = rows.propose()
    rows.decide(p)
    claimed = rows.claim(p, FIRST.id)
    assert claimed is not None
    assert both.read_now(abandoned_work.list_abandoned_runs, SECOND.id) == []
    gone(both, FIRST)
    [lost] = both.read_now(abandoned_work.list_abandoned_runs, SECOND.id)
    both.write_now(runs.abandon, lost, clock(), rerun=False)
    late = both.write_now(runs.finish, claimed, State.SUCCEEDED, clock(), result="did it")
    assert late is None


def test_one_at_a_time_holds_a_name_and_a_gone_holder_is_followed(both: Database) -> None:
    def holds(process: Process) -> bool:
        return both.write_now(processes.take_lease, "telegram", process.id) == process.id

    assert holds(FIRST)
    assert holds(FIRST)
    assert not holds(SECOND)
    gone(both, FIRST)
    assert holds(SECOND)
    both.write_now(processes.leave_process, SECOND)
    assert holds(FIRST)
