"""Nod's MCP client as the public conformance suite runs it, in the process of the tests.

It signs in where that is wanted, calls every tool once, and signs in again where a call lacks a scope. What
the suite starts is `RELAY`, which hands over what the suite says: to load all that Nod loads takes seconds.
"""

import asyncio
import contextlib
import json
import shlex
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2

from bot.domain.times import now
from bot.errors import ToolError
from bot.store import migrations
from bot.store.database import Database
from bot.tools.call import CallContext
from bot.tools.mcp.config import Http, OAuthClient, ServerConfig, Trust
from bot.tools.mcp.interface import Action, Elicited, Question
from bot.tools.mcp.login import SharedSignIns
from bot.tools.mcp.toolset import McpToolset

GIVEN = {"a": 5, "b": 3}
MOST_SIGN_INS = 3

RELAY = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as client, client.makefile("rw") as line:
    client.connect(sys.argv[1])
    line.write(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}") + chr(10) + sys.argv[-1] + chr(10))
    line.flush()
    sys.exit(line.read() or 0)
"""
"""Says what fault there was, and ends with 1; with 0 where there was none."""


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """The command that the suite is to run, which this process answers."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        known, url = await reader.readline(), (await reader.readline()).decode().strip()
        with tempfile.TemporaryDirectory(dir=folder) as made:
            try:
                await run(url, Path(made), json.loads(known))
            except Exception:  # noqa: BLE001 - it is told by the suite
                writer.write(traceback.format_exc().encode())
        writer.close()

    at = str(folder / "relay")
    async with await asyncio.start_unix_server(answer, at):
        yield shlex.join([sys.executable, "-S", "-c", RELAY, at])


async def accept(question: Question) -> Elicited:
    fields = question.schema.get("properties", {})
    return Elicited(Action.ACCEPT, {name: part["default"] for name, part in fields.items()})


async def sign_in(logins: SharedSignIns) -> None:
    _, page = await logins.begin("them", "http:ana")
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(page)
    await logins.take_return(dict(parse_qsl(urlsplit(answer.headers["location"]).query)))


async def run(url: str, folder: Path, known: dict[str, str]) -> None:
    database = Database(f"sqlite:///{folder / 'nod.db'}")
    migrations.upgrade(database.engine)
    client = OAuthClient(known.get("client_id", ""), known.get("client_secret", ""))
    config = ServerConfig("them", Http(url, client=client), Trust.TRUSTED)
    mcp = McpToolset([config], clock=now, database=database, ask=accept)
    [server] = mcp.servers
    logins = SharedSignIns(mcp.servers, database, now, lambda: "http://127.0.0.1:9/oauth/callback")
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
