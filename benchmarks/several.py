"""Several processes on one PostgreSQL: cycles per second, a press that arrives elsewhere, a take-over.

Each process is ``python -m benchmarks.together``. Each measurement has a schema of its own.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from statistics import median, quantiles
from typing import Any

from benchmarks import quota
from benchmarks.model_server import model_server
from benchmarks.table import Row
from bot.domain.jobs import BEAT_SECONDS
from tests.kit.urls import schema

AT_ONCE = 48  # conversations, divided by 1, 2 and 3
PART = 0.25  # of a core for each process, where the cores are not to be full
AT_ONCE_IN_PART = 24
_OF_FLOOR = 0.5
_OF_ONE = 1.5
_PRESS_MS = 15.0
_GONE_SECONDS = 15.0
_ACQUAINTED = 2 * BEAT_SECONDS  # a process speaks only where it knows of others


class Member:
    """One process, and what it answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def ask(self, what: str, *given: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([what, *given]).encode() + b"\n")
        return await self.answer()

    async def answer(self) -> Any:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "a process ended by itself"
        return json.loads(line)


@asynccontextmanager
async def member(
    name: str, url: str, model_url: str = "", *, works: bool = True, cores: float | None = None
) -> AsyncIterator[Member]:
    """``cores``: how much of a core it has at the most once it is up; None: all it gets."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.together", name, url, model_url, "works" if works else "hears"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    found = Member(process)
    with ExitStack() as stack:
        try:
            assert await found.answer() == "ready"
            if cores is not None:
                stack.enter_context(quota.limited(process.pid, cores))
            yield found
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def rows(database: str, *, rounds: int, in_round: int, pressed: int, killed: int) -> list[Row]:
    return [
        *await cycles(database, rounds, in_round),
        *await in_parts(database, rounds, in_round),
        *await presses(database, pressed),
        *await kills(database, killed),
    ]


async def cycles(
    database: str, rounds: int, in_round: int, *, sizes: Sequence[int] = (1, 2, 3), at_once: int = AT_ONCE
) -> list[Row]:
    """With all that the machine has, beside the floors."""
    found = []
    one: list[float] = []
    async with model_server() as model_url:
        for processes in sizes:
            rates = await _rates(
                database, model_url, processes, rounds, in_round, at_once, ("cycles", "floor", "same")
            )
            nod = rates["cycles"]
            one = one or nod
            to_least, ratio = (_ratio(nod, rates[floor]) for floor in ("floor", "same"))
            found += [
                Row(
                    f"cycles/s, {_many(processes)}, {at_once} conversations at the same time",
                    f"{median(nod):.1f}",
                ),
                Row("  floor: the same model calls and commits, all bare", f"{median(rates['same']):.1f}"),
                Row("  the same model calls and four bare commits", f"{median(rates['floor']):.1f}"),
            ]
            found += (
                [
                    Row("  cycles / floor", f"{ratio:.2f}", f"≥ {_OF_FLOOR}", met=ratio >= _OF_FLOOR),
                    Row("  cycles / four bare commits", f"{to_least:.2f}"),
                ]
                if processes == 1
                else [Row("  to one process", f"{_ratio(nod, one):.2f}x")]
            )
    return found


async def in_parts(
    database: str,
    rounds: int,
    in_round: int,
    *,
    sizes: Sequence[int] = (1, 2, 3),
    at_once: int = AT_ONCE_IN_PART,
) -> list[Row]:
    """Each process has a part of a core: what more of them bring while no core is full."""
    if not quota.can_limit():
        return [Row("cycles/s with a part of a core for each process: needs root on Linux", "left out")]
    found = []
    one: list[float] = []
    async with model_server() as model_url:
        for processes in sizes:
            rates = await _rates(
                database, model_url, processes, rounds, in_round, at_once, ("cycles",), cores=PART
            )
            nod = rates["cycles"]
            one = one or nod
            more = _ratio(nod, one)
            met = (f"≥ {_OF_ONE}x", more >= _OF_ONE) if processes == 2 else ()
            what = f"cycles/s, {_many(processes)}, {PART} of a core each, {at_once} conversations"
            found.append(Row(what, f"{median(nod):.1f}"))
            if processes > 1:
                found.append(Row("  to one process", f"{more:.2f}x", *met))
    return found


def _many(processes: int) -> str:
    return f"{processes} process{'es' if processes > 1 else ''}"


def _ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    """The median of each round's own."""
    return median(rate / other for rate, other in zip(rates, others, strict=True))


async def _rates(
    database: str,
    model_url: str,
    processes: int,
    rounds: int,
    in_round: int,
    at_once: int,
    kinds: Sequence[str],
    *,
    cores: float | None = None,
) -> dict[str, list[float]]:
    """Nod's and those of the floors, by turns, of all processes together."""
    share = at_once // processes
    each = max(in_round // at_once, 1)
    rates: dict[str, list[float]] = {who: [] for who in kinds}
    with schema(database) as url:
        async with AsyncExitStack() as stack:
            members = [
                await stack.enter_async_context(member(f"m{number}-", url, model_url, cores=cores))
                for number in range(processes)
            ]
            await asyncio.sleep(_ACQUAINTED)
            for who in rates:
                await asyncio.gather(*(m.ask(who, share, 1) for m in members))
            for turn in range(rounds):
                for who in sorted(rates, reverse=bool(turn % 2)):
                    begun = time.perf_counter()
                    await asyncio.gather(*(m.ask(who, share, each) for m in members))
                    rates[who].append(processes * share * each / (time.perf_counter() - begun))
    return rates


async def presses(database: str, times: int) -> list[Row]:
    """Parked in one process, pressed in one that does no work, carried out by the first."""
    took = []
    with schema(database) as url:
        async with member("hand-", url) as hand, member("ear-", url, works=False) as ear:
            await asyncio.sleep(_ACQUAINTED)
            for turn in range(times + 10):
                seconds = await ear.ask("press", await hand.ask("park"))
                if turn >= 10:
                    took.append(1000 * seconds)
    what = "approve → executed, pressed in another process than parked, p50"
    return [
        Row(what, f"{median(took):.1f} ms", f"≤ {_PRESS_MS:.0f}", met=median(took) <= _PRESS_MS),
        Row("  p99", f"{quantiles(took, n=100)[98]:.1f} ms"),
    ]


async def kills(database: str, times: int) -> list[Row]:
    """A turn is under way in a process that is killed; until another one has parked what it asks for."""
    took = []
    for _ in range(times):
        with schema(database) as url:
            async with member("dies-", url) as dies, member("lives-", url, works=False) as ear:
                key = await dies.ask("hang")
                listening = asyncio.create_task(ear.ask("listen", key))
                async with member("works-", url):
                    await asyncio.sleep(_ACQUAINTED)
                    dies.process.kill()
                    killed = time.perf_counter()
                    await dies.process.wait()
                    took.append(await listening - killed)
    longest = max(took)
    return [
        Row(f"take-over of a turn whose process was killed, median of {times}", f"{median(took):.1f} s"),
        Row("  longest", f"{longest:.1f} s", f"≤ {_GONE_SECONDS:.0f}", met=longest <= _GONE_SECONDS),
    ]
