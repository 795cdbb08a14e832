"""What platforms delivered, kept until it is handled."""

from datetime import timedelta

from bot.store import events
from bot.store.database import Database
from bot.store.events import EventRow
from tests.kit import FakeClock


def test_an_event_is_kept_once_and_found_until_it_is_handled(database: Database, clock: FakeClock) -> None:
    write, read = database.write_now, database.read_now
    first = write(events.record, "slack", "e1", {"n": 1}, clock())
    assert first is not None
    assert write(events.record, "slack", "e1", {"n": 1}, clock()) is None
    second = write(events.record, "slack", "e2", {"n": 2}, clock())
    assert write(events.record, "telegram", "e1", {"n": 3}, clock()) is not None
    assert read(events.list_unhandled, "slack") == [(first, {"n": 1}), (second, {"n": 2})]
    write(events.mark_handled, first, clock())
    assert read(events.list_unhandled, "slack") == [(second, {"n": 2})]
    assert write(events.record, "slack", "e1", {"n": 1}, clock()) is None
    kept = read(lambda session: session.get(EventRow, first))
    assert kept is not None
    assert kept.payload == {}


def test_only_what_was_handled_long_ago_is_forgotten(database: Database, clock: FakeClock) -> None:
    for number in range(3):
        row = database.write_now(events.record, "slack", f"e{number}", {}, clock())
        if number and row is not None:
            database.write_now(events.mark_handled, row, clock() + timedelta(days=number))
    database.write_now(events.forget_handled, clock() + timedelta(days=2), 25)
    again = [database.write_now(events.record, "slack", f"e{n}", {}, clock()) for n in range(3)]
    assert [row is None for row in again] == [True, False, True]
