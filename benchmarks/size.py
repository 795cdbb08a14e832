"""What waits by the hundred, the hundred thousand, the million: bytes, memory, and how long things take.

Each size has a process of its own (``python -m benchmarks.size URL COUNT TURNS``) for the sake of its memory.
All of them are measured by turns, a little at a time: a machine is not the same from one minute to the next.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from sqlalchemy import text
from sqlmodel import Session

from benchmarks import rules
from benchmarks.parked import rss
from benchmarks.table import Row
from benchmarks.world import World, make
from bot.domain.chat import Answer, Press
from bot.domain.jobs import Job
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.times import now
from bot.domain.verbs import Verb
from bot.store import migrations, proposals
from bot.store.database import Database
from tests.kit.urls import schema

_BATCH = 500
_TURNS = 17  # the first does not count: it also loads and prepares what is used for the first time
_EACH = 5  # lists, presses and sweeps in a turn
_LISTED = 10  # as many as are left of the smallest size after all presses, so that each lists the same
_GROWTH = 1.5
_CLOCK, _CPU = 0, 1
_ON_SQLITE = (
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
)
_ON_POSTGRES = (
    "VACUUM (ANALYZE)",
    "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE schemaname = current_schema()",
)
_TIMED = {
    "start until ready and stopped, p50": "start",
    "the newest 10 listed, p50": "list",
    "a press, p50": "press",
    "the sweep of a tick, p50": "sweep",
}

_Turn = dict[str, Any]


async def rows(where: Path, database: str, *, sizes: tuple[int, ...], turns: int = _TURNS) -> list[Row]:
    """``database``: the URL of a PostgreSQL; empty for SQLite. Each turn presses `_EACH` of each size."""
    with ExitStack() as stack:
        urls = [
            stack.enter_context(schema(database)) if database else f"sqlite:///{where / f'size-{count}.db'}"
            for count in sizes
        ]
        weights = [
            await asyncio.to_thread(_fill, url, count) / count for url, count in zip(urls, sizes, strict=True)
        ]
        return _told(sizes, weights, await _by_turns(urls, sizes, turns))


def _told(sizes: tuple[int, ...], weights: list[float], measured: list[list[_Turn]]) -> list[Row]:
    found: list[Row] = []
    for count, weight, of_it in zip(sizes, weights, measured, strict=True):
        found += [
            Row(f"{count:,} parked: bytes each", f"{weight:,.0f}"),
            Row("  memory (RSS) of the process", f"{of_it[-1]['rss']:.0f} MB"),
        ]
        for words, key in _TIMED.items():
            each = [_of(of_it, key, kind) for kind in (_CLOCK, _CPU)]
            growth, more = (
                median(now / then for now, then in zip(mine, _of(measured[0], key, kind), strict=True))
                for kind, mine in zip((_CLOCK, _CPU), each, strict=True)
            )
            target = (f"≤ {_GROWTH}x", growth <= _GROWTH) if of_it is not measured[0] else ()
            took, cpu = (f"{1000 * median(seconds):.1f} ms" for seconds in each)
            found.append(Row(f"  {words} ({growth:.2f}x; CPU {more:.2f}x)", f"{took}; CPU {cpu}", *target))
    return found


def _of(turns: list[_Turn], key: str, kind: int) -> list[float]:
    return [turn[key][kind] for turn in turns if key in turn]


async def _by_turns(urls: list[str], sizes: tuple[int, ...], turns: int) -> list[list[_Turn]]:
    """What each turn took, for each size."""
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.size", url, str(count), str(turns)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for url, count in zip(urls, sizes, strict=True)
    ]
    measured: list[list[_Turn]] = [[] for _ in processes]
    for turn in range(2 * turns):
        order = list(zip(processes, measured, strict=True))
        for process, of_it in order if turn % 2 else reversed(order):
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"\n")
            line = json.loads(await process.stdout.readline())
            if turn % turns:
                of_it.append(line)
    for process in processes:
        await process.communicate()
        assert process.returncode == 0
    return measured


def _fill(url: str, count: int) -> int:
    """Gives the bytes that it has then, once the database has put in order what was written at one go."""
    database = Database(url)
    migrations.upgrade(database.engine)
    at = now()
    for first in range(1, count + 1, _BATCH):
        database.write_now(rules.park, first, min(_BATCH, count + 1 - first), at)
    engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
    order, weight = _ON_POSTGRES if database.dialect == "postgresql" else _ON_SQLITE
    with engine.connect() as connection:
        connection.execute(text(order))
        bytes_ = connection.execute(text(weight)).scalar_one()
    database.close()
    return int(bytes_)


async def _measure(url: str, count: int, turns: int) -> None:
    """A turn for each line of the standard input: first the starts, since only one Nod has the file."""
    for _ in range(turns):
        await _tell(partial(_starts, url))
    world = make(url)
    async with world.app.running(ticking=False):
        world.app.dispatcher.start(_rest)
        step = max(count // (turns * _EACH), 1)
        ids = [rules.proposal(1 + n * step, now()).id for n in range(turns * _EACH)]
        for turn in range(turns):
            await _tell(partial(_works, world, ids[turn * _EACH :][:_EACH]))


async def _tell(turn: Callable[[], Awaitable[_Turn]]) -> None:
    await asyncio.to_thread(sys.stdin.readline)
    print(json.dumps(await turn()), flush=True)


async def _starts(url: str) -> _Turn:
    return {"start": await _timed(lambda _: _start(url), [""])}


async def _works(world: World, ids: Sequence[str]) -> _Turn:
    return {
        "list": await _timed(lambda _: world.app.database.read(_newest), ids),
        "press": await _timed(lambda ident: _decline(world, ident), ids),
        "sweep": await _timed(lambda _: _sweep(world), ids),
        "rss": rss(),
    }


async def _start(url: str) -> None:
    async with make(url).app.running(ticking=False):
        pass


async def _rest(_: Job) -> tuple[Job, ...]:
    """What follows a press is not run: the press alone is measured."""
    return ()


async def _timed(do: Callable[[str], Awaitable[object]], each: Sequence[str]) -> tuple[float, float]:
    """The medians of the seconds it took, and of those of this process's CPU: others may want the machine."""
    took, used = [], []
    for ident in each:
        begun, before = perf_counter(), process_time()
        await do(ident)
        took.append(perf_counter() - begun)
        used.append(process_time() - before)
    return median(took), median(used)


def _newest(session: Session) -> list[Proposal]:
    return proposals.list_in_states(session, [State.PROPOSED], _LISTED)


async def _decline(world: World, ident: str) -> None:
    reply = await world.app.core.assistant.handle(Press(rules.ANA, Verb.DECLINE, ident))
    assert reply.answer is Answer.ACCEPTED, reply.text


async def _sweep(world: World) -> None:
    at = now()
    await world.app.core.recovery.expire_due(at)
    await world.app.core.recovery.recover(at)


if __name__ == "__main__":
    asyncio.run(_measure(sys.argv[1], *map(int, sys.argv[2:])))
