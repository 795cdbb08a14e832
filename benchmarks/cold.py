"""Cold start to first decision: from starting the process until one approve press is committed.

A run is a new process (``python -m benchmarks.cold DATABASE PROPOSAL``) over its own copy of a database;
the interpreter's start and every import are in the figure.
"""

import asyncio
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.table import Row
from benchmarks.world import make, running
from bot.store import proposals

_AT_ONCE = 50
_TARGET = 1.2


async def rows(where: Path, *, rounds: int, parked: int) -> list[Row]:
    """Both databases hold the one proposal that is pressed; one holds ``parked`` more."""
    pressed = {count: await _prepare(where / f"cold-{count}.db", count) for count in (0, parked)}
    took: dict[int, list[float]] = {count: [] for count in pressed}
    for turn in range(rounds + 1):
        for count in sorted(pressed, reverse=bool(turn % 2)):
            seconds = await _start(where / f"cold-{count}.db", pressed[count])
            if turn:  # the first round warms the machine's file cache
                took[count].append(seconds)
    ratio = median(full / empty for empty, full in zip(took[0], took[parked], strict=True))
    return [
        Row("with 0 parked", f"{1000 * median(took[0]):.0f} ms"),
        Row(f"with {parked:,} parked", f"{1000 * median(took[parked]):.0f} ms"),
        Row("  ratio", f"{ratio:.2f}x", f"≤ {_TARGET}", met=ratio <= _TARGET),
    ]


async def _prepare(database: Path, parked: int) -> str:
    async with running(database) as world:
        for batch in range(0, parked, _AT_ONCE):
            await asyncio.gather(*(world.park() for _ in range(min(_AT_ONCE, parked - batch))))
        _, proposal = await world.park()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return proposal.id


async def _start(database: Path, proposal_id: str) -> float:
    copy = database.with_name("cold-run.db")
    shutil.copyfile(database, copy)
    begun = perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.cold", str(copy), proposal_id, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    said = await process.stdout.readline()
    took = perf_counter() - begun
    await process.wait()
    assert said == b"decided\n", said
    for leftover in copy.parent.glob("cold-run.db*"):
        leftover.unlink()
    return took


async def _decide(database: Path, proposal_id: str) -> None:
    world = make(database)
    async with world.app.running():
        proposal = await world.app.database.read(proposals.get, proposal_id)
        assert proposal is not None
        await world.approve(proposal)
        print("decided", flush=True)


if __name__ == "__main__":
    asyncio.run(_decide(Path(sys.argv[1]), sys.argv[2]))
