"""One token that three processes want to renew in the same moment: the server is asked once each time."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.features.connections.conftest import ANA, KEY, Connectable
from tests.features.connections.tracker import Tracker
from tests.web.conftest import Serve

pytestmark = [pytest.mark.more, pytest.mark.slow, pytest.mark.timeout(900)]

PROCESSES = 3
RACES = 200
ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def racing(url: str, config: Path) -> AsyncIterator[Process]:
    environment = {
        **os.environ,
        "NOD_DATABASE_URL": url,
        "NOD_SECRET_KEY": KEY,
        "NOD_MCP_CONFIG": str(config),
    }
    program = ("-m", "tests.features.connections.racer", str(ANA))
    racer = await asyncio.create_subprocess_exec(
        sys.executable, *program, stdin=PIPE, stdout=PIPE, cwd=ROOT, env=environment
    )
    try:
        assert await hear(racer) == "ready"
        yield racer
    finally:
        racer.kill()
        await racer.wait()


async def hear(racer: Process) -> str:
    assert racer.stdout is not None
    return (await racer.stdout.readline()).decode().strip()


async def test_three_processes_race_for_the_refresh_of_one_token_200_times(
    serve: Serve, tracker: Tracker, tmp_path: Path, database_url: str
) -> None:
    """Its refresh tokens are good once: a second use would end the connection."""
    given = {"NOD_MCP_CONFIG": "mcp.json", "NOD_SECRET_KEY": (KEY,), "NOD_DATABASE_URL": database_url}
    async with AsyncExitStack() as stack:
        nod = await stack.enter_async_context(serve(**given, patience=800.0))
        there = Connectable(nod, tracker)
        await there.connect()
        config = tmp_path / "mcp.json"
        racers = [await stack.enter_async_context(racing(database_url, config)) for _ in range(PROCESSES)]
        for race in range(1, RACES + 1):
            nod.clock.forward(timedelta(hours=2))
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"{nod.clock().isoformat()}\n".encode())
            tokens = await asyncio.gather(*(hear(racer) for racer in racers))
            assert len(set(tokens)) == 1, f"race {race}: {tokens}"
            assert tracker.people.whose[tokens[0]] == "octocat"
            assert tracker.people.refreshed == race
        [row] = there.rows()
        assert (row.refusals, row.busy_until) == (0, None)
        await there.close()
