"""Slack's own rows."""

from datetime import timedelta

from bot.channels.slack import rows as slack
from bot.store.database import Database
from tests.kit import FakeClock


def test_an_install_that_was_begun_is_finished_once_and_within_its_time(
    database: Database, clock: FakeClock
) -> None:
    def finished(state: str) -> bool:
        return database.write_now(slack.consume_install_state, state, clock())

    for state in ("first", "second"):
        database.write_now(slack.store_install_state, state, clock())
    assert [finished("never begun"), finished("first"), finished("first")] == [False, True, False]
    clock.forward(timedelta(minutes=11))
    assert not finished("second")
