"""Nod as shipped, and the floor beside it.

Run as ``python -m benchmarks.peers.nod URL KEY PAYLOAD FOLDER`` or with ``floor`` at the end.
"""

import asyncio
import gc
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter

from benchmarks.floors import Calls, Commits
from benchmarks.model_server import client_of
from benchmarks.peers.driven import serve
from benchmarks.world import ASKED, ScriptedModel, make, running
from bot.agent.prompt import system_prompt


class TimedNotes(list[str]):
    """Notes that remember when the last one was added."""

    at = 0.0

    def append(self, text: str) -> None:
        self.at = perf_counter()
        super().append(text)


async def write_payload(where: Path) -> Path:
    """Write what Nod sends a model: its prompt, and its tools."""
    file = where / "payload.json"
    async with running(where / "payload.db", ScriptedModel()) as world:
        available = await world.available()
    tools = [
        {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
        for spec in (tool.spec for tool in available)
    ]
    file.write_text(json.dumps({"prompt": system_prompt(available), "tools": tools, "asked": ASKED}))
    return file


async def main(url: str, key: str, _payload: str, folder: str, what: str = "nod") -> None:
    async with AsyncExitStack() as stack:
        model, notes = client_of(url), TimedNotes()
        stack.push_async_callback(model.close)
        world = make(Path(folder) / "nod.db", model, notes=notes)
        await stack.enter_async_context(world.app.running())
        if what == "floor":
            commits = Commits(Path(folder) / "floor.db")
            stack.callback(commits.close)
            floor = Calls(url, key, commits, await world.available())
            stack.push_async_callback(floor.close)

            async def bare() -> float:
                await floor.cycle()
                return 0.0

            await serve(bare)
            return
        world.app.dispatcher.start(world.run, world.app.core.assistant.queue_of)
        gc.freeze()  # as `nod run` does once it is up

        async def cycle() -> float:
            pressed = await world.cycle()
            return notes.at - pressed

        await serve(cycle)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
