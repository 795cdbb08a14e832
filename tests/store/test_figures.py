"""What those who watch Nod see is counted the same on both databases."""

from collections import Counter
from datetime import timedelta

from bot.approvals import runs
from bot.domain.verbs import Verb
from bot.store import counts, posted_cards
from bot.store.counts import Move, Waiting
from bot.store.database import Database
from tests.kit import ROOM, FakeClock
from tests.store.conftest import Rows


def test_what_stands_is_counted_and_what_waits_has_an_age(rows: Rows, database: Database, clock: FakeClock):
    first, _, third = rows.propose(3)
    database.write_now(posted_cards.add_card, first.id, ROOM, "m1", 1)
    rows.decide(first)
    began = clock()
    clock.forward(timedelta(seconds=30))
    rows.decide(third)
    rows.say("and another")
    tally, found = database.read_now(counts.count_all), database.read_now(counts.count_waiting)
    assert tally.proposals == {"proposed": 1, "approved": 2}
    assert tally.unknown == 0
    assert found.waiting["execute"] == Waiting(2, began)
    assert found.waiting["turn"] == Waiting(1, clock())
    assert found.waiting["redraw"] == Waiting(1)
    assert found.waiting["webhook"] == Waiting(0)


def test_moves_are_told_once_with_the_time_that_a_person_took(
    rows: Rows, database: Database, clock: FakeClock
):
    first, second = rows.propose(2)
    last, moves = database.read_now(counts.list_moves, 0)
    assert moves == [Move("proposed", None)] * 2
    clock.forward(timedelta(minutes=5))
    rows.decide(first)
    rows.decide(second, Verb.DECLINE)
    last, moves = database.read_now(counts.list_moves, last)
    assert moves == [Move("approved", 300.0, "proposed"), Move("declined", 300.0, "proposed")]
    rows.claim(first)
    last, moves = database.read_now(counts.list_moves, last)
    assert moves == [Move("executing", None, "approved")]
    assert database.read_now(counts.list_moves, last) == (last, [])


def test_a_tally_that_is_followed_is_what_counting_all_gives(
    rows: Rows, database: Database, clock: FakeClock
):
    rows.propose()
    tally = database.read_now(counts.count_all)
    unknown, again, _ = rows.running(3)
    rows.propose(2)
    database.write_now(runs.abandon, unknown, clock(), rerun=False)
    database.write_now(runs.abandon, again, clock(), rerun=True)
    tally, moves = database.read_now(counts.update_tally, tally)
    assert moves
    assert {state: many for state, many in tally.proposals.items() if many} == {
        "proposed": 3,
        "failed": 1,
        "approved": 1,
        "executing": 1,
    }
    assert tally.unknown == 1
    everything = database.read_now(counts.count_all)
    assert +Counter(tally.proposals) == Counter(everything.proposals)
    assert (tally.last_id, tally.unknown) == (everything.last_id, everything.unknown)
    rows.decide(unknown, Verb.RETRY)
    assert database.read_now(counts.update_tally, tally)[0].unknown == 0


def test_a_turn_is_seen_while_it_runs_and_when_it_has_ended(rows: Rows, database: Database):
    said = rows.say()
    assert said is not None
    newest, under_way = database.read_now(counts.find_turns_under_way)
    assert under_way == {newest}
    [seen] = database.read_now(counts.list_turns, newest + 1000, under_way)
    assert (seen.id, seen.seconds) == (newest, None)
