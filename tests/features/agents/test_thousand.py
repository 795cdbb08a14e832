"""A thousand open tasks: the requests of clients that keep to their polls, statements, and memory."""

import resource
from bisect import bisect_right
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from bot.approvals.agents import choose_pause
from tests.features.agents.kit import SETTINGS, call, make_agent
from tests.features.mcp.test_tools import Raw
from tests.web.conftest import Serve

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TASKS, AGENTS = 1000, 4
MOST_REQUESTS = 20  # in a second, on average over a minute
MOST_STATEMENTS = 12  # of one look at an open task
MOST_BYTES = 100_000  # that an open task may keep in memory


def count_polls(opened: list[datetime], begin: datetime, seconds: int) -> Counter[int]:
    """Count the looks in each second of clients that keep to the pause that they are given."""
    counted: Counter[int] = Counter()
    end = begin + timedelta(seconds=seconds)
    for at in opened:
        now = at
        while True:
            there = bisect_right(opened, now)
            now += timedelta(seconds=choose_pause((now - at).total_seconds(), there))
            if now >= end:
                break
            if now >= begin:
                counted[int((now - begin).total_seconds())] += 1
    return counted


async def test_a_thousand_open_tasks_cost_few_requests_statements_and_bytes(serve: Serve):
    settings: dict[str, Any] = {
        **SETTINGS,
        "NOD_MAX_OPEN_PER_PERSON": 2 * TASKS,
        "NOD_MAX_AGENT_CALLS": 10 * TASKS,
    }
    async with serve(patience=800, **settings) as nod:
        agents = [nod.caller(await make_agent(nod, f"agent-{number}")) for number in range(AGENTS)]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        calls = []
        for number in range(TASKS):
            calls.append(await call(agents[number % AGENTS], "keep", text=f"note {number}"))
            nod.clock.forward(timedelta(milliseconds=60))  # a minute for all
        assert {each["end"] for each in calls} == {"waiting"}
        grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        assert grown / TASKS < MOST_BYTES, grown

        opened = [datetime.fromisoformat(each["created_at"]) for each in calls]
        polls = count_polls(opened, opened[0], 660)
        for begin in range(600):
            in_a_minute = sum(polls[second] for second in range(begin, begin + 60))
            assert in_a_minute / 60 < MOST_REQUESTS, begin
        assert max(polls.values()) < 2 * MOST_REQUESTS

        statements: list[str] = []

        def note(*given: Any) -> None:
            statements.append(given[2])

        nod.clock.forward(timedelta(minutes=2))
        raw = Raw(agents[0])
        assert (await raw.ask("tasks/get", taskId=calls[0]["id"]))["status"] == "working"
        event.listen(nod.app.database.engine, "before_cursor_execute", note)
        told = await raw.ask("tasks/get", taskId=calls[AGENTS]["id"])
        event.remove(nod.app.database.engine, "before_cursor_execute", note)
        assert told["pollIntervalMs"] == 60_000
        asked = [each for each in statements if not each.startswith(("BEGIN", "COMMIT", "SAVEPOINT"))]
        assert len(asked) <= MOST_STATEMENTS, asked

        for agent in agents:
            await agent.aclose()
