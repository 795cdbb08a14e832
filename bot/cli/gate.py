"""The parts of Nod that a command needs to run tools or to decide, built in this process for one call.

The *gate* lets a tool call run, asks people, or refuses. `open_tools` yields the registry of tools,
`open_gate` the gate over them, and `open_presses` the service that takes decisions. The running nod is not
asked: it finds in the database what a command left there.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

from bot.app.features import hooks_of, make_parts
from bot.app.tools import registry_of
from bot.approvals.gate import Gate
from bot.approvals.presses import Presses
from bot.cli.shared import redact_line
from bot.core import policies_of
from bot.domain.jobs import Process
from bot.domain.times import now
from bot.settings import Settings
from bot.store.database import Database
from bot.store.hooks import give_hooks
from bot.store.locks.process_lock import notify_processes
from bot.telemetry import tracing
from bot.tools.mcp.interface import SETTLE_SECONDS
from bot.tools.registry import Registry


@contextlib.asynccontextmanager
async def open_tools(
    settings: Settings, database: Database, *, all_now: bool = False
) -> AsyncIterator[Registry]:
    """Yield the registry of every tool that the settings name; MCP servers start when tools are first listed.

    ``all_now``: all servers start immediately; those that fail or leave out a tool are named on stderr.
    """
    parts = make_parts(settings, database, policies_of(settings))
    give_hooks(database, hooks_of(parts))
    registry, own_tools, mcp_servers = registry_of(parts)  # the own tools are those of NOD_TOOLS
    await own_tools.start()
    try:
        if all_now:
            # starts each server, and waits until it is up or has failed
            await mcp_servers.start_and_wait(SETTLE_SECONDS)
            await mcp_servers.tools()
        for server in await mcp_servers.status():
            if server.trouble and all_now:
                why = f"the MCP server {server.name} is unavailable ({server.trouble})"
                stderr_text = f"; it said: {server.said}" if server.said else ""
                print(redact_line(f"nod: {why}; without its tools{stderr_text}"), file=sys.stderr)
            elif server.left_out and all_now:
                print(redact_line(f"nod: the MCP server {server.name}: {server.left_out}"), file=sys.stderr)
        yield registry
    finally:
        await mcp_servers.stop()


@contextlib.asynccontextmanager
async def open_gate(settings: Settings, database: Database, *, all_now: bool = False) -> AsyncIterator[Gate]:
    """Yield the gate to every tool that the settings name; ``all_now`` as in `open_tools`."""
    async with open_tools(settings, database, all_now=all_now) as registry:
        yield Gate(registry, policies_of(settings), database, now, Process.this().id)
    notify_processes(database.engine)  # the running nod looks at the rows now, not only after some seconds


@contextlib.asynccontextmanager
async def open_presses(settings: Settings, database: Database) -> AsyncIterator[Presses]:
    """Yield the press service for this shell. The running nod finds the resulting jobs in the database."""
    async with contextlib.AsyncExitStack() as stack:
        gate = await stack.enter_async_context(open_gate(settings, database))
        if settings.otlp_endpoint is not None:
            end = tracing.begin_tracing(settings.otlp_endpoint, settings.otlp_header_pairs, Process.this().id)
            stack.push_async_callback(asyncio.to_thread, end)
        yield Presses(database, gate, now)
