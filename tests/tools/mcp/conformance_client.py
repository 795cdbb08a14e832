"""Nod's MCP client as the public conformance suite runs it: ``python conformance_client.py <url>``.

It signs in where that is wanted, calls every tool once, and signs in again where a call lacks a scope.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2

from bot.domain.times import now
from bot.errors import ToolError
from bot.store import migrations
from bot.store.database import Database
from bot.telemetry import logs
from bot.tools.mcp.base import Action, Elicited, Question
from bot.tools.mcp.config import Http, OAuthClient, ServerConfig, Trust
from bot.tools.mcp.login import Logins
from bot.tools.mcp.toolset import McpToolset
from bot.tools.tool import CallContext

GIVEN = {"a": 5, "b": 3}
MOST_SIGN_INS = 3


async def accept(question: Question) -> Elicited:
    fields = question.schema.get("properties", {})
    return Elicited(Action.ACCEPT, {name: part["default"] for name, part in fields.items()})


async def sign_in(logins: Logins) -> None:
    _, page = await logins.begin("them", "http:ana")
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(page)
    await logins.came_back(dict(parse_qsl(urlsplit(answer.headers["location"]).query)))


async def run(url: str, folder: Path) -> None:
    database = Database(f"sqlite:///{folder / 'nod.db'}")
    migrations.upgrade(database.engine)
    known = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    client = OAuthClient(known.get("client_id", ""), known.get("client_secret", ""))
    config = ServerConfig("them", Http(url, client=client), Trust.TRUSTED)
    mcp = McpToolset([config], clock=now, database=database, ask=accept)
    [server] = mcp.servers
    logins = Logins(mcp.servers, database, now, lambda: "http://127.0.0.1:9/oauth/callback")
    try:
        tools = await mcp.tools()
        signed = 0
        if server.signed_out:
            await sign_in(logins)
            signed += 1
            while server.trouble:  # noqa: ASYNC110 - the suite ends it
                await asyncio.sleep(0.01)
            tools = await mcp.tools()
        for tool in tools:
            given = {name: GIVEN[name] for name in tool.parameters.get("properties", {})}
            while True:
                try:
                    await tool.run(given, CallContext("c1", "http:ana"))
                    break
                except ToolError as error:
                    if "does not allow this" not in str(error) or signed >= MOST_SIGN_INS:
                        raise
                    await sign_in(logins)
                    signed += 1
    finally:
        await logins.stop()
        await mcp.stop()
        database.close()


if __name__ == "__main__":
    logs.configure("error")
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(run(sys.argv[-1], Path(made)))
