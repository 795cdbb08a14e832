"""What waits by the hundred, the hundred thousand, the million: bytes, memory, and how long things take.

Each size has a process of its own (``python -m benchmarks.size DATABASE COUNT``) for the sake of its memory.
"""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from sqlmodel import Session

from benchmarks import rules
from benchmarks.parked import rss
from benchmarks.table import Row
from benchmarks.world import World, make
from bot.domain.chat import Answer, Press
from bot.domain.jobs import Job
from bot.domain.proposals import Proposal, State
from bot.domain.times import now
from bot.domain.verbs import Verb
from bot.store import migrations, proposals
from bot.store.database import Database

_BATCH = 2000
_TIMES = 50
_LISTED = 100  # as many as the smallest size has, so that each lists the same
_STARTS = 5  # in one process: the first of them also loads what is loaded when it is used
_GROWTH = 1.5
_TIMED = {
    "start until ready and stopped, p50": "start",
    "the newest 100 listed, p50": "list",
    "a press, p50": "press",
    "the sweep of a tick, p50": "sweep",
}


async def rows(where: Path, *, sizes: tuple[int, ...]) -> list[Row]:
    found: list[Row] = []
    smallest: dict[str, Any] = {}
    for count in sizes:
        database = where / f"size-{count}.db"
        await asyncio.to_thread(_fill, database, count)
        bytes_ = database.stat().st_size
        measured = await _measured(database, count)
        database.unlink()
        smallest = smallest or measured
        found += [
            Row(f"{count:,} parked: bytes each", f"{bytes_ / count:,.0f}"),
            Row("  memory (RSS) of the process", f"{measured['rss']:.0f} MB"),
        ]
        for words, key in _TIMED.items():
            growth, more = (now / then for now, then in zip(measured[key], smallest[key], strict=True))
            target = (f"≤ {_GROWTH}x", growth <= _GROWTH) if measured is not smallest else ()
            took, cpu = (f"{1000 * seconds:.1f} ms" for seconds in measured[key])
            found.append(Row(f"  {words} ({growth:.2f}x; CPU {more:.2f}x)", f"{took}; CPU {cpu}", *target))
    return found


def _fill(file: Path, count: int) -> None:
    database = Database(f"sqlite:///{file}")
    migrations.upgrade(database.engine)
    at = now()
    for first in range(1, count + 1, _BATCH):
        database.write_now(rules.park, first, min(_BATCH, count + 1 - first), at)
    database.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _measured(database: Path, count: int) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.size", str(database), str(count)), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    measured: dict[str, Any] = json.loads(out)
    return measured


async def _measure(database: Path, count: int) -> dict[str, Any]:
    starts = await _timed(lambda _: _start(database), [""] * _STARTS)
    world = make(database)
    async with world.app.running(ticking=False):
        world.app.dispatcher.start(_rest)
        step = max(count // _TIMES, 1)
        ids = [rules.proposal(1 + n * step, now()).id for n in range(min(_TIMES, count))]
        measured = {
            "start": starts,
            "list": await _timed(lambda _: world.app.database.read(_newest), ids),
            "press": await _timed(lambda ident: _decline(world, ident), ids),
            "sweep": await _timed(lambda _: _sweep(world), ids),
        }
        return measured | {"rss": rss()}


async def _start(database: Path) -> None:
    async with make(database).app.running(ticking=False):
        pass


async def _rest(_: Job) -> tuple[Job, ...]:
    """What follows a press is not run: the press alone is measured."""
    return ()


async def _timed(do: Callable[[str], Awaitable[object]], each: list[str]) -> tuple[float, float]:
    """The medians of the seconds it took, and of those of this process's CPU: others may want the machine."""
    took, used = [], []
    for ident in each:
        begun, before = perf_counter(), process_time()
        await do(ident)
        took.append(perf_counter() - begun)
        used.append(process_time() - before)
    return median(took), median(used)


def _newest(session: Session) -> list[Proposal]:
    return proposals.in_states(session, [State.PROPOSED], _LISTED)


async def _decline(world: World, ident: str) -> None:
    reply = await world.app.assistant.handle(Press(rules.ANA, Verb.DECLINE, ident))
    assert reply.answer is Answer.ACCEPTED, reply.text


async def _sweep(world: World) -> None:
    at = now()
    await world.app.recovery.expire_due(at)
    await world.app.recovery.recover(at)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(Path(sys.argv[1]), int(sys.argv[2])))))
