"""An installation moves to another database with everything that waits in it, and its audit log verifies."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlmodel import Session

from bot.domain.proposal_states import State
from bot.errors import SettingsError
from bot.store import migrations, proposals
from bot.store.audit import log, verification
from bot.store.database import Database
from bot.store.transfer import transfer
from tests.kit import FakeClock, make_tables
from tests.store.conftest import Rows

pytestmark = pytest.mark.slow


@pytest.fixture
def old(tmp_path: Path, clock: FakeClock) -> Iterator[Rows]:
    """A SQLite installation in which things wait."""
    url = f"sqlite:///{tmp_path / 'old.db'}"
    make_tables(url)
    rows = Rows(Database(url), clock)
    rows.propose(3)
    rows.running(2)
    yield rows
    rows.database.close()


def test_what_waits_waits_in_the_new_database_too_and_continues_there(
    old: Rows, database_url: str, clock: FakeClock
) -> None:
    new = Database(database_url)
    assert transfer(old.database.engine, new.engine) > 10
    open_ = [State.PROPOSED, State.EXECUTING]
    there, here = (each.read_now(proposals.list_in_states, open_, 100) for each in (new, old.database))
    assert there == here
    assert len(there) == 5
    rows = Rows(new, clock)
    waiting = next(p for p in there if p.state is State.PROPOSED)
    rows.decide(waiting)
    assert rows.claim(waiting)
    rows.say()  # rows that the database counts continue after the old ones
    with Session(new.engine) as session:
        assert verification.find_faults_in_session(session) == []
        assert len(log.list_rows_of_proposal(session, waiting.id)) == 3
    new.close()


def test_a_database_that_is_in_use_is_left_alone(old: Rows, database_url: str, clock: FakeClock) -> None:
    new = Database(database_url)
    migrations.upgrade(new.engine)
    Rows(new, clock).propose()
    with pytest.raises(SettingsError, match="in use"):
        transfer(old.database.engine, new.engine)
    assert len(new.read_now(proposals.list_in_states, [State.PROPOSED], 100)) == 1
    new.close()
