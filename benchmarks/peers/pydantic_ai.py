"""Pydantic AI's own way: a tool that requires approval, the run kept as JSON in SQLite until it is decided.

Run as ``python -m benchmarks.peers.pydantic_ai URL KEY PAYLOAD FOLDER`` where Pydantic AI is installed.
"""

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterable, Mapping
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.driven import serve


async def main(url: str, key: str, given: Mapping[str, Any], folder: str) -> None:
    kept = sqlite3.connect(Path(folder) / "pydantic_ai.db", isolation_level=None)
    kept.execute("PRAGMA journal_mode=WAL")
    kept.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, messages BLOB)")
    began: dict[str, float] = {}

    def tool(spec: dict[str, Any]) -> Any:
        async def run(**arguments: Any) -> str:  # noqa: ARG001 - as the schema has them
            began["last"] = perf_counter()
            return "SUCCEEDED: added"

        made = Tool.from_schema(run, spec["name"], spec["description"], spec["parameters"])
        made.requires_approval = True
        return made

    client = AsyncOpenAI(api_key=key, base_url=url)
    model = OpenAIChatModel("gpt-test", provider=OpenAIProvider(openai_client=client))
    agent = Agent(
        model,
        instructions=given["prompt"],
        tools=[tool(spec) for spec in given["tools"]],
        output_type=[str, DeferredToolRequests],
    )
    numbers = count(1)

    async def stream(_: Any, events: AsyncIterable[Any]) -> None:
        async for _event in events:
            pass

    async def cycle() -> float:
        number = next(numbers)
        asked = await agent.run(given["asked"], event_stream_handler=stream)
        assert isinstance(asked.output, DeferredToolRequests)
        [call] = asked.output.approvals
        kept.execute("INSERT INTO run VALUES (?, ?)", (number, asked.all_messages_json()))
        pressed = perf_counter()
        [(messages,)] = kept.execute("SELECT messages FROM run WHERE id = ?", (number,))
        ended = await agent.run(
            message_history=ModelMessagesTypeAdapter.validate_json(messages),
            deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: True}),
            event_stream_handler=stream,
        )
        kept.execute("UPDATE run SET messages = ? WHERE id = ?", (ended.all_messages_json(), number))
        return began["last"] - pressed

    await serve(cycle)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(Path(sys.argv[3]).read_text()), sys.argv[4]))
