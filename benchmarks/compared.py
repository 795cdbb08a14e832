"""Cycles of Nod next to the floor, Pydantic AI and the OpenAI Agents SDK: each in a process of its own.

All send the same prompt and tools to one model server and stream its answers. Rounds are interleaved, since
a machine is not the same from one minute to the next: only ratios within a round say anything. The peers get
environments of their own under ``build/peers``, made the first time.
"""

import asyncio
import json
import os
import sys
import venv
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cycles import AT_ONCE
from benchmarks.model_server import KEY, model_server
from benchmarks.peers.nod import write_payload
from benchmarks.table import Row

PEERS = Path("build/peers")
_PINS = {"pydantic-ai": "pydantic-ai-slim[openai]==2.68.0", "openai-agents": "openai-agents==0.24.0"}
_NOD = "benchmarks.peers.nod"
_MODULES = {"pydantic-ai": "benchmarks.peers.pydantic_ai", "openai-agents": "benchmarks.peers.openai_agents"}
_AHEAD = {1: 1.1, AT_ONCE: 1.25}  # of Pydantic AI
_OF_FLOOR = {1: 0.42, AT_ONCE: 0.65}
_PRESS = 1.6  # of Pydantic AI's

_Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Peer:
    """A process that does cycles when it is asked."""

    name: str
    process: asyncio.subprocess.Process

    async def ask(self, at_once: int, each: int) -> _Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"at_once": at_once, "each": each}).encode() + b"\n")
        answer: _Answer = json.loads(await self.process.stdout.readline())
        return answer


async def rows(where: Path, *, rounds: int, cycles: int, before: str = "", peers: bool = True) -> list[Row]:
    """``before``: a folder with another state of ``bot/``, which takes part as well."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(model_server())
        payload = await write_payload(where)
        found = [
            await _start(stack, "floor", sys.executable, _NOD, where, url, payload, "floor"),
            await _start(stack, "nod", sys.executable, _NOD, where, url, payload),
        ]
        if before:
            bot = await asyncio.to_thread(_link_bot, where, before)
            found.append(
                await _start(stack, "nod before", sys.executable, _NOD, where, url, payload, bot=bot)
            )
        for name, module in _MODULES.items() if peers else ():
            python = await asyncio.to_thread(_make_environment, name)
            found.append(await _start(stack, name, str(python), module, where, url, payload))
        return [row for at_once in (1, AT_ONCE) for row in await _compare(found, at_once, rounds, cycles)]


def _link_bot(where: Path, before: str) -> Path:
    """Return a folder that has nothing but another state of ``bot/``."""
    folder = where / "other"
    folder.mkdir()
    (folder / "bot").symlink_to(Path(before).resolve() / "bot")
    return folder


def _make_environment(name: str) -> Path:
    """Return the Python of a peer's own environment."""
    folder = PEERS / name
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        os.spawnv(os.P_WAIT, python, [str(python), "-m", "pip", "install", "--quiet", _PINS[name]])  # noqa: S606
    return python.absolute()


async def _start(
    stack: AsyncExitStack,
    name: str,
    python: str,
    module: str,
    where: Path,
    url: str,
    payload: Path,
    *more: str,
    bot: Path | None = None,
) -> Peer:
    folder = where / name
    folder.mkdir()
    paths = [str(each) for each in (bot, Path.cwd()) if each]
    process = await asyncio.create_subprocess_exec(
        *(python, "-m", module, url, KEY, str(payload), str(folder), *more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**20,
        # a folder of the command line's own comes first with -m, so that of another bot/ is where it starts
        cwd=bot or Path.cwd(),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    stack.push_async_callback(process.wait)
    assert process.stdin is not None
    stack.callback(process.stdin.close)
    assert process.stdout is not None
    ready = await process.stdout.readline()
    assert json.loads(ready) == "ready", f"{name} did not start"
    return Peer(name, process)


async def _compare(peers: Sequence[Peer], at_once: int, rounds: int, cycles: int) -> list[Row]:
    share = max(cycles // at_once, 2)
    answers: dict[str, list[_Answer]] = {peer.name: [] for peer in peers}
    for peer in peers:
        await peer.ask(at_once, 2)
    for turn in range(rounds):
        for peer in peers if turn % 2 else reversed(peers):
            answers[peer.name].append(await peer.ask(at_once, share))
    how = "one after the other" if at_once == 1 else f"{at_once} side by side"
    return [row for name in answers for row in _tell(name, answers, at_once, how)]


def _tell(name: str, answers: Mapping[str, Sequence[_Answer]], at_once: int, how: str) -> list[Row]:
    mine = answers[name]
    found = [
        Row(f"{name}, {how}: cycles/s", _spread([each["rate"] for each in mine])),
        Row("  processor time for a cycle, ms", _spread([each["cpu"] for each in mine])),
    ]
    if at_once == 1 and name != "floor":
        found.append(Row("  press to tool, p50, ms", _spread([median(each["press"]) for each in mine])))
    if name != "floor":
        rates = [each["rate"] / floor["rate"] for each, floor in zip(mine, answers["floor"], strict=True)]
        least = _OF_FLOOR[at_once] if name == "nod" else None
        found.append(_ratio("  cycles / floor", rates, least))
    if name == "nod" and (others := answers.get("pydantic-ai")):
        rates = [each["rate"] / other["rate"] for each, other in zip(mine, others, strict=True)]
        found.append(_ratio("  cycles / Pydantic AI", rates, _AHEAD[at_once]))
        pressed = [
            median(each["press"]) / median(other["press"]) for each, other in zip(mine, others, strict=True)
        ]
        if at_once == 1:
            most = median(pressed)
            found.append(
                Row("  press to tool / Pydantic AI", _spread(pressed), f"≤ {_PRESS}", met=most <= _PRESS)
            )
    return found


def _ratio(what: str, ratios: Sequence[float], least: float | None) -> Row:
    target = (f"≥ {least}", median(ratios) >= least) if least is not None else ()
    return Row(what, _spread(ratios), *target)


def _spread(figures: Sequence[float]) -> str:
    """The median, the least and the most."""
    return f"{median(figures):.2f} ({min(figures):.2f} to {max(figures):.2f})"
