"""The public suite's scenarios of tasks over Nod's tools, with people who press as the fixtures want.

It needs a newer suite than the rest, and Node 22: NOD_TEST_TASKS_SUITE names the suite's ``dist/index.js``,
and NOD_TEST_NODE the program. A call of ``slow_compute`` is approved after as many seconds as it names.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bot.errors import ToolError
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from tests.features.agents.kit import SETTINGS, make_agent
from tests.web.conftest import BEN, Serve, Served

SUITE = os.environ.get("NOD_TEST_TASKS_SUITE", "")
NODE = os.environ.get("NOD_TEST_NODE", "node")
PASSES = (
    "tasks-wire-fields",
    "tasks-request-headers",
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-request-state-removal",
)
IN_PART = {"tasks-lifecycle": "TasksProtocolErrorFailedShape"}
"""Scenarios of which one check does not apply: what fails here is the tool's answer, so no task is failed."""
NOT_HERE = {
    "tasks-mrtr-input": "a task never asks its client: people answer in their chat",
    "tasks-mrtr-composition": "the same",
    "tasks-required-task-error": "no tool of Nod's refuses a client without tasks",
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SUITE, reason="the suite with tasks is not installed"),
]


def make_fixtures() -> tuple[Tool, ...]:
    @tool(writes=False)
    async def greet(name: str) -> str:
        """Greet someone."""
        return f"Hello, {name}!"

    @tool
    async def slow_compute(seconds: float = 1, label: str = "") -> str:
        """Compute something that people let run after a while."""
        return f"computed {label}"

    @tool
    async def failing_job() -> str:
        """Fail."""
        raise ToolError("it failed")

    return greet, slow_compute, failing_job


async def decide(nod: Served) -> None:
    """Approve each open call once it has waited as long as it names."""
    loop = asyncio.get_running_loop()
    seen: dict[str, float] = {}
    async with nod.caller(BEN) as ben:
        while True:
            found = (await ben.get("/api/proposals", params={"state": "proposed"})).json()["proposals"]
            for card in found:
                began = seen.setdefault(card["id"], loop.time())
                if loop.time() - began >= min(30, float(card["tool_arguments"].get("seconds", 0.5))):
                    await nod.press(card, "approve", ben)
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def with_token(nod: Served, token: str) -> AsyncIterator[str]:
    """A server that adds an agent's token to what the suite sends, which knows none."""

    async def forward(request: Request) -> Response:
        headers = {k: v for k, v in request.headers.items() if k not in ("host", "content-length")}
        headers["authorization"] = f"Bearer {token}"
        client = httpx.AsyncClient(timeout=90)
        body = await request.body()
        sent = client.build_request(request.method, f"{nod.url}/mcp", content=body, headers=headers)
        answer = await client.send(sent, stream=True)

        async def pass_on() -> AsyncIterator[bytes]:
            try:
                async for part in answer.aiter_raw():
                    yield part
            finally:
                await answer.aclose()
                await client.aclose()

        passed = ("content-type", "content-encoding", "mcp-session-id")
        kept = {name: value for name, value in answer.headers.items() if name in passed}
        return StreamingResponse(pass_on(), answer.status_code, kept)

    app = Starlette(routes=[Route("/mcp", forward, methods=["GET", "POST", "DELETE"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await serving


async def run_suite(serve: Serve, scenario: str) -> tuple[int, str]:
    settings: dict[str, Any] = {**SETTINGS, "NOD_MAX_AGENT_CALLS": 1000, "NOD_AGENT_WAIT": 0}
    async with serve(tools=make_fixtures(), patience=200, **settings) as nod:
        deciding = asyncio.create_task(decide(nod))
        async with with_token(nod, await make_agent(nod)) as url:
            running = await asyncio.create_subprocess_exec(
                NODE, SUITE, "server", "--url", url, "--scenario", scenario, "--timeout", "90000",
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip
            said, _ = await running.communicate()
        deciding.cancel()
        await asyncio.wait([deciding])
    return running.returncode or 0, said.decode()


@pytest.mark.parametrize("scenario", PASSES)
async def test_the_tools_pass_the_scenarios_of_tasks(serve: Serve, scenario: str) -> None:
    code, said = await run_suite(serve, scenario)
    assert code == 0, said


@pytest.mark.parametrize("scenario", IN_PART)
async def test_of_a_scenario_all_that_applies_passes(serve: Serve, scenario: str) -> None:
    _, said = await run_suite(serve, scenario)
    failed = said.partition("=== Failed Checks ===")[2]
    assert "1 failed" in said, said
    assert IN_PART[scenario] in failed


async def test_every_scenario_of_tasks_runs_or_has_its_reason() -> None:
    listing = await asyncio.create_subprocess_exec(NODE, SUITE, "list", stdout=asyncio.subprocess.PIPE)
    said, _ = await listing.communicate()
    named = set(re.findall(r"^  - (tasks-\S+)", said.decode(), re.MULTILINE))
    assert named == {*PASSES, *IN_PART, *NOT_HERE}
