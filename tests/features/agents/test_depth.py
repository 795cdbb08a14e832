"""Nod tells the servers that it calls how many calls led there, so a loop through Nod comes to an end."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations

from bot.app.assembly import build
from bot.domain.agents import DEPTH_META
from bot.settings import Settings
from tests.features.agents.kit import call, make_agent, press
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls
from tests.web.conftest import ANA, TOKENS, Notes, Served
from tests.web.scripted import ScriptedModel, ask, say

pytestmark = pytest.mark.slow


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[list[Any]]:
    """What a server was told of the depth of each call."""
    depths: list[Any] = []
    server: MCPServer[Any] = MCPServer("echo", log_level="ERROR")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    async def look(context: Context[Any, Any]) -> str:
        depths.append((context.request_context.meta or {}).get(DEPTH_META))
        return "seen"

    @server.tool()
    async def change(context: Context[Any, Any]) -> str:
        depths.append((context.request_context.meta or {}).get(DEPTH_META))
        return "changed"

    config = uvicorn.Config(server.streamable_http_app(stateless_http=True), port=0, log_config=None)
    serving = uvicorn.Server(config)
    task = asyncio.create_task(serving.serve())
    while not serving.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = serving.servers[0].sockets[0].getsockname()[1]
    entry = {"url": f"http://127.0.0.1:{port}/mcp", "trust": "trusted"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"echo": entry}}))
    yield depths
    serving.should_exit = True
    await task


async def test_each_call_is_one_deeper_than_what_led_to_it(
    told: list[Any],
    database_of: Urls,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    make_tables(url := database_of("nod"))
    settings = Settings.load(
        NOD_DATABASE_URL=url,
        NOD_PORT=0,
        NOD_MCP_CONFIG="mcp.json",
        NOD_HTTP_TOKENS=TOKENS,
        NOD_APPROVERS=("http:ben",),
    )
    model = ScriptedModel(ask(("echo_look", {})), say("Seen."))
    app = build(settings, model=model, clock=clock)
    async with asyncio.timeout(60), app.running(ticking=False), httpx.AsyncClient() as client:
        nod = Served(app, model, Notes(), clock, client)
        async with nod.caller(ANA) as ana, nod.caller(await make_agent(nod)) as agent:
            nod.client = ana
            await nod.chat("look", ana)
            await call(agent, "echo_look")
            deeper = {"Nod-Depth": "2"}
            await agent.post("/api/tools/echo_look/calls", json={}, headers=deeper)
            await agent.post("/api/tools/echo_change/calls", json={}, headers=deeper)
            await press(nod, "approve")
            stopped = await agent.post("/api/tools/echo_look/calls", json={}, headers={"Nod-Depth": "4"})
    assert told == [1, 1, 3, 3]
    assert stopped.status_code == 403
