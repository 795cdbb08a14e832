"""What models cost below a place counts that place to the letter, on both databases alike."""

import pytest
from sqlalchemy import update

from bot.domain.chat import Address
from bot.store import counts
from bot.store.database import Database
from bot.store.tables.conversations import TurnRow
from tests.kit import FakeClock
from tests.store.conftest import Rows


@pytest.mark.parametrize(
    ("scope", "cost"),
    [
        ("*", 2.0),
        ("chat:*", 2.0),
        ("chat:T1/C2", 2.0),
        ("chat:T1/C2/9", 1.0),
        ("chat:T1/C", 0.0),
        ("chat:t1/c2", 0.0),
        ("Chat:*", 0.0),
        ("chat:T1/C_", 0.0),
    ],
)
def test_what_a_place_costs(
    rows: Rows, database: Database, clock: FakeClock, scope: str, cost: float
) -> None:
    start = clock()
    rows.propose(at=Address("chat", "T1/C2"))
    rows.propose(at=Address("chat", "T1/C2/9"))
    database.write_now(lambda session: session.execute(update(TurnRow).values(cost=1.0)))
    assert database.read_now(counts.sum_spent_since, start, scope, []) == cost
