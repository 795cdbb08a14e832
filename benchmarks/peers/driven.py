"""The protocol of a peer: a line of JSON asks for cycles, a line of JSON answers with times."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time
from typing import Any

Cycle = Callable[[], Awaitable[float]]
"""One cycle; gives the seconds from the press until the tool began."""


async def serve(cycle: Cycle) -> None:
    """Answer each line of the standard input until it ends.

    A line has ``at_once`` and ``each``. The answer has ``rate`` in cycles a second, ``cpu`` in milliseconds
    of this process for a cycle, and ``press``, the milliseconds from each press to its tool.
    """
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps("ready"), flush=True)
    while line := await reader.readline():
        asked = json.loads(line)
        print(json.dumps(await _measure(cycle, **asked)), flush=True)


async def _measure(cycle: Cycle, at_once: int, each: int) -> dict[str, Any]:
    pressed: list[float] = []

    async def talk() -> None:
        pressed.extend([1000 * await cycle() for _ in range(each)])

    begun, before = perf_counter(), process_time()
    await asyncio.gather(*(talk() for _ in range(at_once)))
    took, used = perf_counter() - begun, process_time() - before
    many = at_once * each
    return {"rate": many / took, "cpu": 1000 * used / many, "press": pressed}
