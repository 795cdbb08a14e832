"""What Nod adds to a call that only reads: to a Python function's, and to one of a real MCP server."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from benchmarks.table import Row
from benchmarks.world import running
from bot.approvals.gate import Gate
from bot.core import policies_of
from bot.domain.chat import Address
from bot.domain.conversations import Conversation, Transcript
from bot.domain.model import ToolCall
from bot.domain.times import now
from bot.store import conversations
from bot.tools.decorator import tool
from bot.tools.mcp.config import ServerConfig, Stdio, Trust
from bot.tools.mcp.toolset import McpToolset
from bot.tools.registry import Registry
from bot.tools.toolset import FixedToolset, Toolset

Call = Callable[[], Awaitable[Any]]

SERVER = """\
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("words", log_level="CRITICAL")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def count(text: str) -> int:
    return len(text.split())


server.run("stdio")
"""
TEXT = "to be or not to be"
ARGUMENTS = '{"text": "to be or not to be"}'
FEW_WORDS = 6


@tool(writes=False)
async def count_words(text: str) -> int:
    """Count the words of a text."""
    return await _counted(text)


async def rows(where: Path, *, rounds: int, calls: int) -> list[Row]:
    """Rounds alternate between the ways to call; ratios are medians of each round's own ratio."""
    async with running(where / "nod.db") as world:
        await world.park()  # a conversation to call in
        database = world.app.database
        conversation = await database.read(conversations.find_current_conversation, Address("bench", "c1"))
        assert conversation is not None

        def through(toolset: Toolset, name: str) -> Call:
            policies, process = policies_of(world.app.settings), world.app.process.id
            gate = Gate(Registry([toolset]), policies, database, now, process)
            return lambda: _through(gate, conversation, name)

        own = through(FixedToolset("own", (count_words,)), "count_words")
        found = await _rounds({"nod": own, "bare": _bare_function}, rounds, calls * 10)
        return [*_told("a Python function", found), *await _mcp(where, through, rounds, calls)]


async def _mcp(where: Path, through: Callable[[Toolset, str], Call], rounds: int, calls: int) -> list[Row]:
    """Two processes of the same server, one for each client."""
    script = where / "words.py"
    script.write_text(SERVER)
    config = ServerConfig("words", Stdio(sys.executable, (str(script),)), Trust.TRUSTED)
    toolset = McpToolset(
        (config,), clock=now, turn_wait_seconds=60.0
    )  # however long the server takes to start
    try:
        nod = through(toolset, "count")
        async with Client(
            stdio_client(StdioServerParameters(command=sys.executable, args=[str(script)]))
        ) as client:

            async def bare() -> None:
                answer = await client.call_tool("count", {"text": TEXT})
                assert answer.structured_content == {"result": FEW_WORDS}

            found = await _rounds({"nod": nod, "bare": bare}, rounds, calls)
    finally:
        await toolset.stop()
    return _told("an MCP server over stdio", found)


async def _through(gate: Gate, conversation: Conversation, name: str) -> None:
    """As the loop does it: the shelf, the judgement, the read."""
    available = await gate.registry.load_tools()
    calls = [ToolCall("call_1", name, ARGUMENTS)]
    [judged] = await gate.consider(available, calls, Transcript(conversation, [], {}), "")
    assert judged.read is not None, judged.result
    result = await gate.read(*judged.read, conversation)
    assert result.text == str(FEW_WORDS)


async def _counted(text: str) -> int:
    return len(text.split())


async def _bare_function() -> None:
    assert await _counted(TEXT) == FEW_WORDS


async def _rounds(ways: dict[str, Call], rounds: int, calls: int) -> dict[str, list[float]]:
    """Seconds per call, by way, one figure for each round."""
    for call in ways.values():
        await _seconds(call, max(calls // 10, 3))
    found: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds):
        for way in sorted(ways, reverse=bool(turn % 2)):
            found[way].append(await _seconds(ways[way], calls))
            await asyncio.sleep(0)
    return found


async def _seconds(call: Call, times: int) -> float:
    begun = perf_counter()
    for _ in range(times):
        await call()
    return (perf_counter() - begun) / times


def _told(what: str, found: Mapping[str, Sequence[float]]) -> list[Row]:
    added = median(n - b for n, b in zip(found["nod"], found["bare"], strict=True))
    ratio = median(n / b for n, b in zip(found["nod"], found["bare"], strict=True))
    return [
        Row(f"one read of {what}, through Nod", f"{median(found['nod']) * 1e6:.0f} µs"),
        Row("  bare", f"{median(found['bare']) * 1e6:.1f} µs"),
        Row("  added by Nod", f"{added * 1e6:.0f} µs"),
        Row("  Nod / bare", f"{ratio:.2f}"),
    ]
