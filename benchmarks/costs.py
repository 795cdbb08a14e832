"""What one cycle costs: CPU time, bytes of the write-ahead log, commits, and Nod's own statements.

What Procrastinate asks of PostgreSQL by its own connections is in the log alone. Nothing else may write to
that server.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text

from benchmarks.table import Row
from benchmarks.world import World, running
from tests.kit.urls import schema

_WARM = 5


async def rows(where: Path, database: str, *, cycles: int) -> list[Row]:
    """``database``: the URL of a PostgreSQL, or empty."""
    found = await on_sqlite(where, cycles=cycles)
    return found + (await on_postgres(database, cycles=cycles) if database else [])


def _counted(engine: Engine) -> Counter[str]:
    counts: Counter[str] = Counter()

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):  # a statement on SQLite alone
            counts.update(["statements"])

    def committed(connection: Connection) -> None:
        if not connection.get_execution_options().get("postgresql_readonly"):  # reads end with one there
            counts.update(["commits"])

    event.listen(engine, "before_cursor_execute", note)
    event.listen(engine, "commit", committed)
    return counts


async def on_sqlite(where: Path, *, cycles: int) -> list[Row]:
    file = where / "costs.db"
    async with running(file) as world:
        engine = world.app.database.engine
        log = file.with_name("costs.db-wal")

        async def size() -> int:
            return log.stat().st_size

        await _cycles(world, max(_WARM, cycles))
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return await _measured("SQLite", world, cycles, engine, size)


async def on_postgres(database: str, *, cycles: int) -> list[Row]:
    engine = create_engine(database)

    def written() -> int:
        with engine.connect() as connection:
            found = connection.execute(text("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))
            return int(found.scalar_one())

    async def size() -> int:
        return await asyncio.to_thread(written)

    with schema(database) as url:
        async with running(url) as world:
            await _cycles(world, max(_WARM, cycles))
            found = await _measured("PostgreSQL", world, cycles, world.app.database.engine, size)
    engine.dispose()
    return found


async def _cycles(world: World, count: int) -> None:
    for _ in range(count):
        await world.cycle()
    await world.app.dispatcher.wait_until_idle()


async def _measured(
    name: str, world: World, cycles: int, engine: Engine, log: Callable[[], Awaitable[int]]
) -> list[Row]:
    before = await log()
    begun, cpu = time.perf_counter(), time.process_time()
    await _cycles(world, cycles)
    spent, took = time.process_time() - cpu, time.perf_counter() - begun
    grown = await log() - before
    counts = _counted(engine)  # from here on: to count costs, too
    await _cycles(world, cycles)
    return [
        Row(f"{name}: CPU of the process for a cycle", f"{1000 * spent / cycles:.1f} ms"),
        Row("  bytes of the write-ahead log", f"{grown / cycles:,.0f}"),
        Row("  from begin to end, one after the other", f"{1000 * took / cycles:.0f} ms"),
        *_told(counts, cycles),
    ]


def _told(counts: Counter[str], cycles: int) -> list[Row]:
    return [Row(f"  {what}", f"{counts[what] / cycles:.1f}") for what in sorted(counts)]
