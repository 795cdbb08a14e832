"""How light Nod is: start, memory and weight, next to the bare interpreter with the same libraries below.

Each figure is of a process of its own. The floor serves one page with the same web server over a table of the
same database library, and does nothing else.
"""

import asyncio
import re
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.table import Row

_ROOT = Path(__file__).parent.parent
_NOD = ("-m", "bot.cli.main")
_SHELL = "import typer, pydantic_settings, sqlmodel"
_FLOOR = """
import asyncio, fastapi, sqlmodel, uvicorn

class Thing(sqlmodel.SQLModel, table=True):
    id: int = sqlmodel.Field(primary_key=True)

engine = sqlmodel.create_engine("sqlite:///floor.db")
sqlmodel.SQLModel.metadata.create_all(engine)
site = fastapi.FastAPI()

async def main():
    server = uvicorn.Server(uvicorn.Config(site, port=0, log_config=None))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    print("ready", flush=True)
    await serving

asyncio.run(main())
"""
_MEGABYTE = 1_000_000


async def rows(where: Path, *, rounds: int) -> list[Row]:
    demo = (*_NOD, "demo", "--port", "0", "-q")
    floor = [await _served(where, ("-c", _FLOOR)) for _ in range(rounds)]
    nod = [await _served(where, demo) for _ in range(rounds)]
    ready, bare = (median(seconds for seconds, _ in each) for each in (nod, floor))
    memory, least = (median(megabytes for _, megabytes in each) for each in (nod, floor))
    looking = (*_NOD, "--demo", "pending")
    return [
        await _row("the interpreter alone", where, ("-c", "pass"), rounds),
        await _row("nod --help", where, (*_NOD, "--help"), rounds, 0.3),
        await _row("the command line's and the database's libraries", where, ("-c", _SHELL), rounds),
        await _row("nod pending", where, looking, rounds, 0.6),
        Row("the floor serves after", f"{bare:.2f} s"),
        Row("nod demo is ready after", f"{ready:.2f} s", "< 2 s", met=ready < 2),
        Row("  memory (RSS) of the floor", f"{least:.0f} MB"),
        Row("  memory (RSS) of the demo", f"{memory:.0f} MB", "< 120 MB", met=memory < 120),
        Row("installed: the floor", f"{_weight(_closure(('fastapi', 'uvicorn', 'sqlmodel'))):.0f} MB"),
        Row("installed: Nod with PostgreSQL", f"{_weight(_pinned()):.0f} MB"),
    ]


async def _row(name: str, where: Path, words: Sequence[str], rounds: int, goal: float = 0.0) -> Row:
    took = median([await _ended(where, words) for _ in range(rounds)])
    return Row(name, f"{took:.2f} s", *((f"< {goal} s", took < goal) if goal else ()))


async def _begun(where: Path, words: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, *words), cwd=where, env=_environment(), stdout=asyncio.subprocess.PIPE
    )


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": str(_ROOT), "PATH": "/usr/bin:/bin"}


async def _ended(where: Path, words: Sequence[str]) -> float:
    begun = perf_counter()
    process = await _begun(where, words)
    await process.communicate()
    assert process.returncode == 0, words
    return perf_counter() - begun


async def _served(where: Path, words: Sequence[str]) -> tuple[float, float]:
    """Seconds until it serves, and its memory then."""
    begun = perf_counter()
    process = await _begun(where, words)
    assert process.stdout is not None
    assert await process.stdout.readline()
    took = perf_counter() - begun
    megabytes = _memory(process.pid)
    process.terminate()
    await process.communicate()
    return took, megabytes


def _memory(process: int) -> float:
    """Its resident memory in MB."""
    [kilobytes] = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(kilobytes) / 1000


def _pinned() -> set[str]:
    return set(re.findall(r"^([\w.-]+)==", (_ROOT / "requirements" / "run.txt").read_text(), re.MULTILINE))


def _closure(names: Sequence[str]) -> set[str]:
    found, left = set[str](), list(names)
    while left:
        name = left.pop().lower()
        there = None if name in found else _installed(name)
        if there is not None:
            found.add(name)
            needed = [each for each in there.requires or () if "extra ==" not in each]
            left += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needed]
    return found


def _weight(names: set[str]) -> float:
    """Megabytes of the files of these packages, of those that are installed here."""
    installed = [each for each in map(_installed, sorted(names)) if each is not None]
    paths = [Path(str(file.locate())) for each in installed for file in each.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / _MEGABYTE


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None
