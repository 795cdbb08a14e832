"""The OpenAI Agents SDK's own way: a tool that needs approval, the run's state as JSON in SQLite until then.

Run as ``python -m benchmarks.peers.openai_agents URL KEY PAYLOAD FOLDER`` where the SDK is installed.
"""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    RunState,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from benchmarks.peers.driven import serve


async def main(url: str, key: str, given: Mapping[str, Any], folder: str) -> None:
    set_tracing_disabled(disabled=True)
    kept = sqlite3.connect(Path(folder) / "openai_agents.db", isolation_level=None)
    kept.execute("PRAGMA journal_mode=WAL")
    kept.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, state TEXT)")
    began: dict[str, float] = {}

    async def invoke(_: Any, arguments: str) -> str:
        began["last"] = perf_counter()
        json.loads(arguments)
        return "SUCCEEDED: added"

    agent = Agent(
        name="bench",
        instructions=given["prompt"],
        model=OpenAIChatCompletionsModel("gpt-test", AsyncOpenAI(api_key=key, base_url=url)),
        model_settings=ModelSettings(include_usage=True),
        tools=[
            FunctionTool(
                spec["name"],
                spec["description"],
                spec["parameters"],
                invoke,
                strict_json_schema=False,
                needs_approval=True,
            )
            for spec in given["tools"]
        ],
    )
    numbers = count(1)

    async def run(asked: Any) -> Any:
        running = Runner.run_streamed(agent, asked)
        async for _event in running.stream_events():
            pass
        return running

    async def cycle() -> float:
        number = next(numbers)
        asked = await run(given["asked"])
        state = json.dumps(asked.to_state().to_json())
        kept.execute("INSERT INTO run VALUES (?, ?)", (number, state))
        pressed = perf_counter()
        [(state,)] = kept.execute("SELECT state FROM run WHERE id = ?", (number,))
        waiting = await RunState.from_json(agent, json.loads(state))
        for call in waiting.get_interruptions():
            waiting.approve(call)
        ended = await run(waiting)
        state = json.dumps(ended.to_state().to_json())
        kept.execute("UPDATE run SET state = ? WHERE id = ?", (state, number))
        return began["last"] - pressed

    await serve(cycle)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(Path(sys.argv[3]).read_text()), sys.argv[4]))
