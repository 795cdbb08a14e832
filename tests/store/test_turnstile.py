"""One at a time changes one thing, also where several processes work on one database."""

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from bot.store.database import Database
from bot.store.locks.resource_lock import ResourceLock
from tests.kit.tables import OURS


@pytest.fixture
def elsewhere(database: Database, database_url: str) -> Iterator[Database]:
    """The same database in another process."""
    if database.dialect == "sqlite":
        pytest.skip("one process works on a file")
    opened = Database(database_url)
    yield opened
    opened.close()


async def test_who_waits_is_called_in_the_order_they_came(database: Database) -> None:
    turnstile = ResourceLock(database)
    assert [await turnstile.enter(who, "issue 1") for who in "abc"] == [True, False, False]
    assert await turnstile.leave("a", "issue 1") == ("b",)
    assert not await turnstile.enter("d", "issue 1")  # b was here before
    assert await turnstile.enter("b", "issue 1")
    assert await turnstile.leave("b", "issue 1") == ("c",)


async def test_who_waits_in_vain_makes_room_for_the_next(database: Database) -> None:
    turnstile = ResourceLock(database)
    assert [await turnstile.enter(who, "issue 1") for who in "abc"] == [True, False, False]
    assert turnstile.stop_waiting("a") == ()  # it is inside, and stays there
    assert await turnstile.leave("a", "issue 1") == ("b",)
    assert turnstile.stop_waiting("b") == ("c",)
    assert turnstile.stop_waiting("c") == ()


async def test_one_that_is_called_twice_enters_once_and_lets_no_other_in(database: Database) -> None:
    turnstile = ResourceLock(database)
    assert await turnstile.enter("a", "issue 1")
    assert not await turnstile.enter("a", "issue 1")
    assert turnstile.stop_waiting("a") == ()
    assert not await turnstile.enter("b", "issue 1")
    assert await turnstile.leave("a", "issue 1") == ("b",)


async def test_other_things_are_free(database: Database) -> None:
    turnstile = ResourceLock(database)
    assert await turnstile.enter("a", "issue 1")
    assert await turnstile.enter("b", "issue 2")


async def test_another_process_waits_until_the_name_is_given_up(
    database: Database, elsewhere: Database
) -> None:
    here, there = ResourceLock(database), ResourceLock(elsewhere)
    assert await here.enter("a", "issue 1")
    entering = asyncio.create_task(there.enter("b", "issue 1"))
    assert await there.enter("c", "issue 2")  # one name's wait holds up no other name
    assert not entering.done()
    await here.leave("a", "issue 1")
    assert await entering


async def test_no_transaction_is_open_while_a_name_is_held(database: Database, elsewhere: Database) -> None:
    assert await ResourceLock(database).enter("a", "issue 1")
    with elsewhere.engine.connect() as connection:
        idle = text(
            f"SELECT count(*) FROM pg_stat_activity WHERE {OURS} AND state LIKE 'idle in transaction%'"
        )
        assert connection.execute(idle).scalar_one() == 0


async def test_a_lost_connection_gives_its_names_up_and_the_next_one_is_a_new_one(
    database: Database, elsewhere: Database
) -> None:
    here, there = ResourceLock(database), ResourceLock(elsewhere)
    assert await here.enter("a", "issue 1")
    with elsewhere.engine.connect() as connection:
        holders = text(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
            f"WHERE locktype = 'advisory' AND {OURS}"
        )
        assert connection.execute(holders).all()
    assert await there.enter("b", "issue 1")
    assert await here.leave("a", "issue 1") == ()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(here.enter("c", "issue 1"), 0.2)
    await there.leave("b", "issue 1")
    assert await here.enter("c", "issue 1")
