"""Clients that listen are told when the tools of their token change, and of no other token's."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client, MCPError, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import Subscription, SubscriptionLost

from bot.domain.people import Actor
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import Rule
from bot.features.mcp.listening import MAX_STREAMS_OF_TOKEN
from bot.features.mcp.server import run_http_app
from bot.store import rules
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from tests.features.agents.kit import SETTINGS, make_agent
from tests.features.mcp.test_agents import ROOT, over_stdio
from tests.tools.mcp.conftest import Quiet, until
from tests.web.conftest import Serve, Served

LOOK_SECONDS = 0.05
MANY_LOOKS_SECONDS = 0.5


@tool(writes=False)
async def read() -> str:
    """Read the notes."""
    return "nothing"


@tool
async def keep(text: str) -> str:
    """Keep a note."""
    return text


@tool
async def shred(number: int) -> str:
    """Shred a note."""
    return str(number)


class Notebook:
    """A toolset whose tools change, as those of a server do."""

    name = "notebook"

    def __init__(self) -> None:
        self.there: Sequence[Tool] = (read, keep)

    async def tools(self) -> Sequence[Tool]:
        return self.there


@contextlib.asynccontextmanager
async def looking_often(nod: Served) -> AsyncIterator[str]:
    """The MCP server of a running Nod, which looks at tools much more often than the one at ``/mcp``."""

    def connect(headers: Mapping[str, str] | None) -> httpx2.AsyncClient:
        given = {"Authorization": (headers or {})["authorization"]}
        return httpx2.AsyncClient(base_url=nod.url, headers=given)

    async with run_http_app(connect, 200, 0, LOOK_SECONDS) as application:
        server = Quiet(
            uvicorn.Config(application, port=0, lifespan="off", log_config=None, interface="asgi3")
        )
        serving = asyncio.create_task(server.serve())
        await until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        finally:
            server.should_exit = server.force_exit = True
            await serving


@contextlib.asynccontextmanager
async def client_at(url: str, token: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        yield client


async def is_told(heard: Subscription, within: float = 10) -> bool:
    try:
        async with asyncio.timeout(within):
            await anext(heard)
    except TimeoutError:
        return False
    return True


async def forbid(nod: Served, name: str) -> None:
    rule = Rule(0, Subject.POLICY, "*", name, Mode.FORBID)
    await nod.app.database.write(rules.set_rule, rule, Actor("http", "chief"), nod.clock())


async def test_a_client_is_told_when_the_tools_of_its_token_change(serve: Serve):
    notebook = Notebook()
    async with (
        serve(toolset=notebook, **SETTINGS) as nod,
        looking_often(nod) as url,
        client_at(url, await make_agent(nod)) as client,
        client_at(url, await make_agent(nod, "reader", tools=("read",))) as reader,
        client.listen(tools_list_changed=True) as heard,
        reader.listen(tools_list_changed=True) as unheard,
    ):
        notebook.there = (read, keep, shred)
        assert await is_told(heard)
        assert "shred" in {each.name for each in (await client.list_tools()).tools}
        await forbid(nod, "keep")
        assert await is_told(heard)
        assert "keep" not in {each.name for each in (await client.list_tools()).tools}
        assert not await is_told(heard, MANY_LOOKS_SECONDS)
        assert not await is_told(unheard, MANY_LOOKS_SECONDS)


async def test_at_the_end_of_its_token_a_client_is_told_and_its_stream_ends(serve: Serve):
    async with (
        serve(toolset=Notebook(), **SETTINGS) as nod,
        looking_often(nod) as url,
        client_at(url, await make_agent(nod)) as client,
        client.listen(tools_list_changed=True) as heard,
    ):
        [agent] = (await nod.client.get("/api/agents")).json()["agents"]
        await nod.client.delete(f"/api/agents/{agent['label']}")
        assert await is_told(heard)
        async with asyncio.timeout(10):
            assert [each async for each in heard] == []
        with pytest.raises(MCPError):
            await client.list_tools()


async def test_what_was_not_asked_for_is_not_told(serve: Serve):
    notebook = Notebook()
    async with (
        serve(toolset=notebook, **SETTINGS) as nod,
        looking_often(nod) as url,
        client_at(url, await make_agent(nod)) as client,
        client.listen(prompts_list_changed=True) as heard,
    ):
        notebook.there = (read,)
        assert not await is_told(heard, MANY_LOOKS_SECONDS)


async def test_one_token_has_few_streams_and_one_that_ends_makes_room(serve: Serve):
    async with (
        serve(toolset=Notebook(), **SETTINGS) as nod,
        looking_often(nod) as url,
        client_at(url, await make_agent(nod)) as client,
        client_at(url, await make_agent(nod, "other")) as other,
    ):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(MAX_STREAMS_OF_TOKEN):
                await stack.enter_async_context(client.listen(tools_list_changed=True))
            with pytest.raises(MCPError, match="Close a stream first"):
                async with client.listen(tools_list_changed=True):
                    pass
            async with other.listen(tools_list_changed=True):
                pass
        async with client.listen(tools_list_changed=True):
            pass


async def test_a_token_of_before_listens_at_mcp_and_nothing_changes(serve: Serve):
    async with (
        serve(toolset=Notebook(), **SETTINGS) as nod,
        client_at(f"{nod.url}/mcp", SETTINGS["token"]) as client,
        client.listen(tools_list_changed=True) as heard,
    ):
        assert client.server_capabilities.tools.list_changed is True
        assert heard.honored.tools_list_changed is True


async def test_nod_stops_although_a_client_listens(serve: Serve):
    async with contextlib.AsyncExitStack() as stack:
        async with contextlib.AsyncExitStack() as running:
            nod = await running.enter_async_context(serve(toolset=Notebook(), **SETTINGS))
            client = await stack.enter_async_context(client_at(f"{nod.url}/mcp", await make_agent(nod)))
            heard = await stack.enter_async_context(client.listen(tools_list_changed=True))
            begun = time.monotonic()
        assert time.monotonic() - begun < 10
        with contextlib.suppress(SubscriptionLost):
            assert [each async for each in heard] == []


async def test_without_a_way_to_be_told_nothing_is_promised(serve: Serve):
    async with serve(toolset=Notebook(), **SETTINGS) as nod:
        headers = {"Authorization": f"Bearer {await make_agent(nod)}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{nod.url}/mcp", http_client=http), mode="legacy") as client,
        ):
            assert not client.server_capabilities.tools.list_changed


SERVER = """
import asyncio, os, httpx2
from bot.features.mcp.server import make_mcp_server
from bot.telemetry import logs
logs.configure("error")
headers = {{"Authorization": "Bearer " + os.environ["NOD_TOKEN"]}}
connect = lambda _: httpx2.AsyncClient(base_url=os.environ["NOD_URL"], headers=headers)
asyncio.run(make_mcp_server(connect, 200, 0, {seconds}).run_stdio_async())
"""


@contextlib.asynccontextmanager
async def often_on_stdio(nod: Served, token: str, **given: Any) -> AsyncIterator[Client]:
    environment = {"NOD_URL": nod.url, "NOD_TOKEN": token, "PYTHONPATH": str(ROOT)}
    program = SERVER.format(seconds=LOOK_SECONDS)
    launch = StdioServerParameters(command=sys.executable, args=["-c", program], env=environment)
    async with Client(stdio_client(launch), **given) as client:
        yield client


@pytest.mark.slow
async def test_on_stdio_a_client_of_this_revision_listens(serve: Serve):
    notebook = Notebook()
    async with (
        serve(toolset=notebook, **SETTINGS) as nod,
        often_on_stdio(nod, await make_agent(nod)) as client,
        client.listen(tools_list_changed=True) as heard,
    ):
        notebook.there = (read,)
        assert await is_told(heard)


@pytest.mark.slow
async def test_on_stdio_a_client_of_an_older_revision_is_told_unasked(serve: Serve):
    notebook, told = Notebook(), asyncio.Event()

    async def note(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with (
        serve(toolset=notebook, **SETTINGS) as nod,
        often_on_stdio(nod, await make_agent(nod), mode="legacy", message_handler=note) as client,
    ):
        assert client.server_capabilities.tools.list_changed is True
        await client.list_tools()
        await asyncio.sleep(MANY_LOOKS_SECONDS)
        assert not told.is_set()
        notebook.there = (read,)
        async with asyncio.timeout(10):
            await told.wait()


@pytest.mark.slow
async def test_nod_mcp_tells_as_well(serve: Serve):
    notebook = Notebook()
    async with (
        serve(toolset=notebook, **SETTINGS) as nod,
        over_stdio(nod, NOD_TOKEN=await make_agent(nod)) as client,
        client.listen(tools_list_changed=True) as heard,
    ):
        notebook.there = (read,)
        assert await is_told(heard, 25)
