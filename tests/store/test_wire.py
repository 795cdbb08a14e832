"""What processes on one PostgreSQL tell each other arrives in full and in order, and not at who said it."""

import asyncio
import contextlib
import gc
import warnings
from typing import Any

import pytest
from sqlalchemy import text

from bot.store.database import Database
from bot.store.locks.process_lock import CHANNEL_SQL, WORK_LOCK_SQL, is_at_work, notify_processes

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _server(database: Database) -> None:
    if database.dialect == "sqlite":
        pytest.skip("one process works on a file")


@contextlib.asynccontextmanager
async def wires(url: str, *names: str) -> Any:
    from bot.store.notifications import Wire

    opened = [Wire(url, name) for name in names]
    for wire in opened:
        await wire.open()
    try:
        yield opened
    finally:
        for wire in opened:
            await wire.close()


async def heard_by(wire: Any, many: int) -> list[Any]:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    wire.on("word", heard.put_nowait)
    async with asyncio.timeout(20):
        return [await heard.get() for _ in range(many)]


async def test_long_and_short_messages_arrive_in_full_and_in_order(database_url: str) -> None:
    said = ["a", "é" * 20_000, "a", {"n": [1, 2, None]}, "z" * 100_000]
    async with wires(database_url, "one", "two", "three") as (one, two, three):
        both = [asyncio.create_task(heard_by(wire, len(said))) for wire in (two, three)]
        await asyncio.sleep(0)
        for each in said:
            one.broadcast("word", each)
        assert await asyncio.gather(*both) == [said, said]


def notify(database: Database, *payloads: str) -> None:
    with database.engine.begin() as connection:
        for payload in payloads:
            connection.execute(text(f"SELECT pg_notify({CHANNEL_SQL}, :payload)"), {"payload": payload})


async def test_a_message_that_its_handler_cannot_read_does_not_end_the_listening(
    database: Database, database_url: str
) -> None:
    async with wires(database_url, "one", "two") as (one, two):
        two.on("pair", lambda body: dict([body]))
        heard = asyncio.create_task(heard_by(two, 2))
        await asyncio.sleep(0)
        one.broadcast("word", "before")
        one.broadcast("pair", "neither key nor value")
        notify(database, "a payload", "from a person's own shell", '1 2 0 ["unknown", null]', "1 3 0 []")
        one.broadcast("word", "after")
        assert await heard == ["before", "after"]


async def test_a_message_without_its_last_piece_takes_the_next_one_with_it_no_longer(
    database: Database, database_url: str
) -> None:
    async with wires(database_url, "one") as (one,):
        heard = asyncio.create_task(heard_by(one, 2))
        await asyncio.sleep(0)
        notify(database, 'two 0 1 ["word", ', 'two 1 0 ["word", "whole"]')
        notify(database, 'two 2 1 ["word", ', 'two 2 0 "in two pieces"]')
        assert await heard == ["whole", "in two pieces"]


async def test_a_message_does_not_come_back_to_its_sender(database_url: str) -> None:
    async with wires(database_url, "one", "two") as (one, two):
        mine = asyncio.create_task(heard_by(one, 1))
        theirs = asyncio.create_task(heard_by(two, 1))
        await asyncio.sleep(0)
        one.broadcast("word", "from one")
        assert await theirs == ["from one"]
        two.broadcast("word", "from two")
        assert await mine == ["from two"]


async def test_a_shell_rings_all_and_sees_that_they_are_at_work(
    database: Database, database_url: str
) -> None:
    assert not await asyncio.to_thread(is_at_work, database_url)
    async with wires(database_url, "one", "two") as both:
        assert await asyncio.to_thread(is_at_work, database_url)
        notify_processes(database.engine)
        async with asyncio.timeout(20):
            for wire in both:
                await anext(wire.wait_for_signals())


async def test_a_start_that_is_cancelled_closes_its_connection(database: Database, database_url: str) -> None:
    from bot.store.notifications import Wire

    waiting = text("SELECT count(*) FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))")
    with database.engine.begin() as connection, warnings.catch_warnings(record=True) as warned:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({WORK_LOCK_SQL})"))
        begun = asyncio.create_task(Wire(database_url, "one").open())
        async with asyncio.timeout(20):
            while not connection.execute(waiting).scalar():  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)
        begun.cancel()
        await asyncio.wait([begun])
        del begun
        warnings.simplefilter("always")
        gc.collect()
    assert [str(each.message) for each in warned] == []


async def test_a_lost_connection_is_made_again_and_counts_as_a_ring(
    database: Database, database_url: str
) -> None:
    async with wires(database_url, "one") as (one,):
        with database.engine.begin() as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND "
                    "((classid::bigint << 32) | objid::bigint) = "
                    "hashtextextended('nod ' || current_schema(), 0)"
                )
            )
        async with asyncio.timeout(20):
            await anext(one.wait_for_signals())
        assert await asyncio.to_thread(is_at_work, database_url)
