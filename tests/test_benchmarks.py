"""Each part of the benchmarks runs; how fast is not this test's matter."""

from pathlib import Path

import pytest

from benchmarks import (
    cold,
    compared,
    costs,
    cycles,
    grown,
    latency,
    parked,
    past,
    record,
    rules,
    several,
    size,
    slack,
    start,
    tools,
)
from tests.kit.urls import POSTGRES_URL

pytestmark = [pytest.mark.slow, pytest.mark.platform]


@pytest.mark.parametrize("run", [
    lambda where: cycles.with_server(where, rounds=1, cycles=2, at_once=3),
    lambda where: cycles.in_process(where, rounds=1, cycles=2, at_once=3),
    lambda where: compared.rows(where, rounds=1, cycles=2, before=".", peers=False),
    lambda where: latency.approve_to_executed(where, times=2),
    lambda where: slack.rows(where, times=2),
    lambda where: tools.rows(where, rounds=1, calls=2),
    lambda where: parked.rows(where, warm=2, count=2),
    lambda where: rules.rows(where, due=2, seconds=0.01),
    lambda where: past.rows(where, count=200, times=1),
    lambda where: grown.rows(where, "", count=100, times=1),
    lambda where: record.rows(where, "", count=100, writes=20),
    lambda where: size.rows(where, "", sizes=(20, 21), turns=2),
    lambda where: costs.on_sqlite(where, cycles=1),
    lambda where: cold.rows(where, rounds=1, parked=2),
    lambda where: start.rows(where, rounds=1),
], ids=[
    "server", "process", "compared", "latency", "slack", "tools", "parked", "rules", "past", "grown",
    "record", "size", "costs", "cold", "start",
])  # fmt: skip
async def test_each_part_gives_its_rows(run, tmp_path: Path):
    assert await run(tmp_path)


@pytest.mark.skipif(not POSTGRES_URL, reason="needs a PostgreSQL")
@pytest.mark.parametrize("run", [
    lambda: costs.on_postgres(POSTGRES_URL, cycles=2),
    lambda: grown.rows(Path(), POSTGRES_URL, count=100, times=1),
    lambda: record.on_postgres(POSTGRES_URL, count=100, writes=20),
    lambda: size.rows(Path(), POSTGRES_URL, sizes=(20,), turns=2),
    lambda: several.cycles(POSTGRES_URL, 2, 2, sizes=[1], at_once=2),
    lambda: several.in_parts(POSTGRES_URL, 1, 2, sizes=[1], at_once=2),
    lambda: several.presses(POSTGRES_URL, 2),
    lambda: several.kills(POSTGRES_URL, 1),
], ids=["costs", "grown", "record", "size", "cycles", "parts", "presses", "kills"])  # fmt: skip
async def test_each_part_that_needs_postgres_gives_its_rows(run):
    assert await run()
