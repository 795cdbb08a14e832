"""Calls through an MCP client are put to people, with the official SDK's client and server and a real Nod."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from mcp import Client
from mcp.server import MCPServer

from nod_client import StillWaiting
from nod_client.mcp import Approvals
from tests.clients.conftest import House

RAN: list[str] = []


@contextlib.asynccontextmanager
async def deployer() -> AsyncIterator[Client]:
    """A client of a server with two tools; it must be left by the task that entered it."""
    server = MCPServer("deployer", log_level="ERROR")
    RAN.clear()

    @server.tool()
    async def deploy(version: str) -> str:
        """Deploy a version."""
        RAN.append(version)
        return f"{version} is out"

    @server.tool()
    async def list_versions() -> str:
        """List them."""
        return "1.3, 1.4"

    async with Client(server) as made:
        yield made


async def test_a_call_runs_as_people_edited_it(house: House, asking):
    async with deployer() as client:
        call = asyncio.create_task(Approvals(asking).call_tool(client, "deploy", {"version": "1.4"}))
        proposal = await house.card()
        assert (proposal["description"], RAN) == ("deploy: 1.4", [])
        await house.edit(version="1.3")
        assert (await call).content[0].text == "1.3 is out"
        assert RAN == ["1.3"]


async def test_what_is_not_approved_comes_back_as_an_error_in_words(house: House, asking):
    async with deployer() as client:
        call = asyncio.create_task(Approvals(asking).call_tool(client, "deploy", {"version": "1.4"}))
        await house.press("decline", reason="Not today")
        refused = await call
        assert (refused.is_error, refused.content[0].text) == (True, "ben declined it. Reason: Not today")
        call = asyncio.create_task(Approvals(asking).call_tool(client, "deploy", {"version": "1.4"}))
        await house.expire()
        silent = await call
        assert (silent.is_error, silent.content[0].text) == (
            True,
            "No one decided in time. No one refused it.",
        )
        assert RAN == []


async def test_only_what_you_named_runs_unasked(house: House, asking):
    async with deployer() as client:
        approvals = Approvals(asking, unasked=("list_*",))
        assert (await approvals.call_tool(client, "list_versions")).content[0].text == "1.3, 1.4"
        assert await house.all() == []


async def test_under_a_key_a_call_continues_after_a_restart_of_both(house: House, asking):
    async with deployer() as client:
        with pytest.raises(StillWaiting):
            await Approvals(asking, key="r7", wait=0).call_tool(
                client, "deploy", {"version": "1.4"}, call="1"
            )
        with pytest.raises(ValueError, match="each call needs a name of its own"):
            await Approvals(asking, key="r7").call_tool(client, "deploy", {"version": "1.4"})
        await house.restart()
        await house.press("approve")
        approvals = Approvals(asking, key="r7")
        assert not (await approvals.call_tool(client, "deploy", {"version": "1.4"}, call="1")).is_error
        assert (RAN, len(await house.all())) == (["1.4"], 1)
