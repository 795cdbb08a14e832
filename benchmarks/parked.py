"""What parked proposals cost: memory and disk, one conversation each.

Run as a process of its own (``python -m benchmarks.parked DIRECTORY WARM COUNT``), so that no other
measurement's memory is in it. ``WARM`` proposals are parked first and SQLite's page caches are given back
before each reading, so that what is read is what proposals keep, not what caches hold. The C allocator keeps
some of what it was given back, a few MB up or down; the count of memory blocks that Python holds is exact.
"""

import asyncio
import ctypes
import gc
import json
import resource
import sys
from pathlib import Path
from typing import Any

from sqlmodel import Session

from benchmarks.table import Row
from benchmarks.world import World, running

_AT_ONCE = 50
_NOISE_MB = 3.0  # what the allocator moves by, up or down, between two readings
_NOISE_BLOCKS = 0.5  # per parked proposal; a proposal alone is about a hundred


async def rows(where: Path, *, warm: int, count: int) -> list[Row]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.parked",
        str(where),
        str(warm),
        str(count),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    found = json.loads(out)
    growth = found["after"] - found["before"]
    return [
        Row(f"memory (RSS) of the process with {warm:,} parked", f"{found['before']:.1f} MB"),
        Row(
            f"  growth by {count:,} more, page caches given back",
            f"{growth:+.1f} MB",
            "0",
            met=growth < _NOISE_MB,
        ),
        Row(
            "  the same as it stands, page caches (≤ 16 MB a connection) included",
            f"{found['cached']:+.1f} MB",
        ),
        Row(
            f"  memory blocks that Python holds more, per proposal of the {count:,}",
            f"{found['blocks']:+.2f}",
            "0",
            met=found["blocks"] < _NOISE_BLOCKS,
        ),
        Row("  growth of asyncio tasks", f"{found['tasks']:+d}", "0", met=found["tasks"] <= 0),
        Row(
            "bytes on disk per parked proposal (conversation, messages, turn, audit)",
            f"{found['bytes']:,.0f}",
        ),
    ]


async def _measure(where: Path, warm: int, count: int) -> dict[str, Any]:
    async with running(where / "parked.db") as world:
        await _park(world, warm)
        await _settle(world)
        before, tasks, size = rss(), len(asyncio.all_tasks()), _size(where)
        blocks = sys.getallocatedblocks()
        await _park(world, count)
        cached = rss() - before
        await _settle(world)
        return {
            "before": before,
            "after": rss(),
            "cached": cached,
            "blocks": (sys.getallocatedblocks() - blocks) / count,
            "tasks": len(asyncio.all_tasks()) - tasks,
            "bytes": (_size(where) - size) / count,
        }


async def _park(world: World, count: int) -> None:
    async def some(share: int) -> None:
        for _ in range(share):
            await world.park()

    await asyncio.gather(*(some(count // _AT_ONCE) for _ in range(_AT_ONCE)))
    world.forget()
    await world.app.dispatcher.wait_until_idle()
    gc.collect()


async def _settle(world: World) -> None:
    """Move the write-ahead log into the file, give caches back, and let the allocator return free pages."""
    await world.app.database.read(_shrink)
    await asyncio.to_thread(_checkpoint, world)
    await world.app.database.write(_shrink)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _shrink(session: Session) -> None:
    session.connection().exec_driver_sql("PRAGMA shrink_memory")


def _checkpoint(world: World) -> None:
    with world.app.database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("PRAGMA shrink_memory")


def _size(where: Path) -> int:
    return (where / "parked.db").stat().st_size


def rss() -> float:
    """Resident memory in MB (10⁶ bytes)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    directory, warm, count = sys.argv[1:]
    print(json.dumps(asyncio.run(_measure(Path(directory), int(warm), int(count)))))
