"""The start of the MCP server at ``/mcp``, by the first request for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import ASGIApp

from bot.features.mcp import server
from tests.features.agents.kit import SETTINGS
from tests.features.mcp.test_agents import over_http
from tests.features.mcp.test_tools import QUESTIONS, names_of
from tests.web.conftest import Serve

PATIENCE_SECONDS = 20


async def test_a_start_that_failed_is_tried_again_by_the_next_request(serve: Serve, monkeypatch):
    run_http_app = server.run_http_app
    faults = [OSError("too many open files")]

    @contextlib.asynccontextmanager
    async def run_or_fail(*given: Any) -> AsyncIterator[ASGIApp]:
        if faults:
            raise faults.pop()
        async with run_http_app(*given) as http_app:
            yield http_app

    monkeypatch.setattr(server, "run_http_app", run_or_fail)
    async with serve(**SETTINGS) as nod:
        assert (await nod.client.post("/mcp", json={})).status_code == 500
        async with over_http(nod) as client:
            assert await names_of(client) == QUESTIONS


@pytest.mark.parametrize("has_started", [False, True], ids=["while it starts", "after it started"])
async def test_a_start_that_was_cancelled_keeps_no_request_waiting(
    serve: Serve, monkeypatch, has_started: bool
):
    run_http_app = server.run_http_app
    starting = asyncio.Event()

    @contextlib.asynccontextmanager
    async def run_late(*given: Any) -> AsyncIterator[ASGIApp]:
        starting.set()
        if not has_started:
            await asyncio.Event().wait()
        async with run_http_app(*given) as http_app:
            yield http_app

    monkeypatch.setattr(server, "run_http_app", run_late)
    async with serve(**SETTINGS) as nod, asyncio.timeout(PATIENCE_SECONDS):
        request = asyncio.create_task(nod.client.post("/mcp", json={}))
        await starting.wait()
        if has_started:
            await request
        [sessions] = [task for task in asyncio.all_tasks() if task.get_name() == "mcp sessions"]
        sessions.cancel()
        await asyncio.wait([sessions])
        if not has_started:
            assert (await request).status_code == 503
        monkeypatch.setattr(server, "run_http_app", run_http_app)
        async with over_http(nod) as client:
            assert await names_of(client) == QUESTIONS
