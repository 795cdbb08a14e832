"""What a command needs that decides or runs something: the tools, the gate, presses from this shell."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

from bot.app import registry_of
from bot.approvals.gate import Gate
from bot.approvals.presses import Presses
from bot.cli.shared import line
from bot.core import policies_of
from bot.domain.processes import Process
from bot.domain.times import now
from bot.settings import Settings
from bot.store.database import Database
from bot.store.lock import ring
from bot.telemetry import tracing
from bot.tools.registry import Registry


@contextlib.asynccontextmanager
async def tools_of(
    settings: Settings, database: Database, *, all_now: bool = False
) -> AsyncIterator[Registry]:
    """Every tool that the settings name; MCP servers start when tools are first asked for.

    ``all_now``: they all start immediately, and those that fail are reported.
    """
    registry, own, mcp = registry_of(settings, database, policies_of(settings), now)
    await own.start()
    try:
        if all_now:
            await mcp.tools()
        for server in await mcp.status():
            if server.trouble and all_now:
                why = f"the MCP server {server.name} is unavailable ({server.trouble})"
                print(line(f"nod: {why}; without its tools"), file=sys.stderr)
        yield registry
    finally:
        await mcp.stop()


@contextlib.asynccontextmanager
async def gate_of(settings: Settings, database: Database, *, all_now: bool = False) -> AsyncIterator[Gate]:
    """The door to every tool that the settings name; ``all_now`` as in `tools_of`.

    The running nod is woken at the end: it does what has been decided here.
    """
    async with tools_of(settings, database, all_now=all_now) as registry:
        yield Gate(registry, policies_of(settings), database, now, Process.this().id)
    ring(database.engine)


@contextlib.asynccontextmanager
async def presses_of(settings: Settings, database: Database) -> AsyncIterator[Presses]:
    """Presses from this shell: whatever work they make is found in the rows by the running nod."""
    async with contextlib.AsyncExitStack() as stack:
        gate = await stack.enter_async_context(gate_of(settings, database))
        if settings.otlp_endpoint is not None:
            end = tracing.begin(settings.otlp_endpoint, settings.otlp_header_pairs, Process.this().id)
            stack.push_async_callback(asyncio.to_thread, end)
        yield Presses(database, gate, now)
