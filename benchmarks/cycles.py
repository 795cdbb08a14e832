"""Complete cycles per second, and the floors beside them, in interleaved rounds."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.floors import COMMITS, Calls, Commits
from benchmarks.model_server import KEY, client_of, model_server
from benchmarks.table import Row
from benchmarks.world import ScriptedModel, World, running

AT_ONCE = 50
_SERVER_TARGET = 0.6
_IN_PROCESS_TARGET = 0.06

Cycle = Callable[[], Awaitable[object]]


async def with_server(where: Path, *, rounds: int, cycles: int, at_once: int = AT_ONCE) -> list[Row]:
    """The model as a separate process, through the openai client."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(model_server())
        model = client_of(url)
        stack.push_async_callback(model.close)
        world = await stack.enter_async_context(running(where / "server.db", model))
        commits = Commits(where / "server-floor.db")
        stack.callback(commits.close)
        floor = Calls(url, KEY, commits, await world.available())
        stack.push_async_callback(floor.close)
        runs: Mapping[str, Cycle] = {"nod": world.cycle, "floor": floor.cycle}
        return await _compare(
            world,
            runs,
            "model in another process, openai client",
            f"two bare model calls + {COMMITS} bare commits",
            _SERVER_TARGET,
            rounds,
            cycles,
            at_once,
        )


async def in_process(where: Path, *, rounds: int, cycles: int, at_once: int = AT_ONCE) -> list[Row]:
    """The model in this process, so that what remains is Nod and the disk."""
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(running(where / "process.db", ScriptedModel()))
        commits = Commits(where / "process-floor.db")
        stack.callback(commits.close)
        return await _compare(
            world,
            {"nod": world.cycle, "floor": commits.cycle},
            "model in this process",
            f"{COMMITS} bare commits",
            _IN_PROCESS_TARGET,
            rounds,
            cycles,
            at_once,
        )


async def _compare(
    world: World,
    runs: Mapping[str, Cycle],
    name: str,
    floor: str,
    target: float,
    rounds: int,
    cycles: int,
    most: int,
) -> list[Row]:
    rows = []
    for at_once in (1, most):
        share = max(cycles // at_once, 2)
        for cycle in runs.values():
            await rate(cycle, at_once, 2)
        rates: dict[str, list[float]] = {who: [] for who in runs}
        for turn in range(rounds):
            for who in sorted(runs, reverse=bool(turn % 2)):
                before = len(world.notes)
                rates[who].append(await rate(runs[who], at_once, share))
                ran = len(world.notes) - before
                assert ran == (at_once * share if who == "nod" else 0), f"{ran} tools ran"
            world.forget()
        ratio = median(n / f for n, f in zip(rates["nod"], rates["floor"], strict=True))
        how = "one after the other" if at_once == 1 else f"{at_once} conversations at once"
        rows += [
            Row(f"cycles/s, {name}, {how}", f"{median(rates['nod']):.0f}"),
            Row(f"  floor: {floor}, {how}", f"{median(rates['floor']):.0f}"),
            Row("  cycles / floor", f"{ratio:.3f}", f"≥ {target}", met=ratio >= target),
        ]
    return rows


async def rate(cycle: Cycle, at_once: int, each: int) -> float:
    """Cycles per second of ``at_once`` conversations side by side, ``each`` times in a row."""

    async def talk() -> None:
        for _ in range(each):
            await cycle()

    begun = perf_counter()
    await asyncio.gather(*(talk() for _ in range(at_once)))
    return at_once * each / (perf_counter() - begun)
