"""Approve → executed: from the call of ``handle(Press)`` until the tool has run and its end is on disk."""

from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from benchmarks.floors import Commits
from benchmarks.table import Row
from benchmarks.world import running


async def approve_to_executed(where: Path, *, times: int) -> list[Row]:
    """Each press is followed by two bare commits, so that both see the same disk."""
    took: list[float] = []
    bare: list[float] = []
    commits = Commits(where / "latency-floor.db")
    async with running(where / "latency.db") as world:
        for turn in range(times + 20):
            ear, proposal = await world.park()
            seconds = await world.approve_and_time(proposal)
            await ear.answered
            begun = perf_counter()
            commits.commit(2)
            if turn >= 20:
                took.append(seconds)
                bare.append(perf_counter() - begun)
    commits.close()
    return [
        Row("p50", f"{1000 * median(took):.2f} ms"),
        Row("p99", f"{1000 * _p99(took):.2f} ms"),
        Row("  floor: two bare commits, p50", f"{1000 * median(bare):.2f} ms"),
        Row("  floor: two bare commits, p99", f"{1000 * _p99(bare):.2f} ms"),
        Row("  p50 / floor's p50", f"{median(took) / median(bare):.1f}x"),
        Row("  p99 / floor's p99", f"{_p99(took) / _p99(bare):.1f}x"),
    ]


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]
