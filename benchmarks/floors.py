"""The least that could do the same work: bare durable commits, and bare calls through the openai client.

Nothing here is Nod's: one SQLite connection with one prepared insert, committed in the caller's thread, and
the openai library read the way its documentation shows. The payload is the one Nod sends.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any, Protocol

from openai import AsyncOpenAI

from benchmarks.world import ASKED
from bot.agent.prompt import system_prompt
from bot.tools.registry import AvailableTools

COMMITS = 4  # of one cycle, at the very least: message, proposal, decision, end
# What Nod makes of them (`tests/store/test_statements.py` counts them): a claim before the tool starts, and
# an answer of its own to each model call. Where several processes divide the work, also which of them runs
# each turn.
NODS_COMMITS = 8


class Commits:
    """One small durable row per commit: WAL, ``synchronous=FULL``."""

    def __init__(self, database: Path) -> None:
        self._connection = sqlite3.connect(database, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")

    def commit(self, times: int = COMMITS) -> None:
        for _ in range(times):
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("INSERT INTO note (text) VALUES (?)", (ASKED,))
            self._connection.execute("COMMIT")

    async def cycle(self) -> None:
        self.commit()

    def close(self) -> None:
        self._connection.close()


class Committing(Protocol):
    """Makes durable commits."""

    def commit(self, times: int = COMMITS) -> None: ...


class Calls:
    """Two streamed model calls with the tools payload and prompt that Nod sends, and four commits."""

    def __init__(self, url: str, key: str, commits: Committing, available: AvailableTools) -> None:
        self._client = AsyncOpenAI(api_key=key, base_url=url)
        self._commits = commits
        functions = [
            {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
            | ({"strict": True} if spec.strict else {})
            for spec in (tool.spec for tool in available)
        ]
        self._fields: dict[str, Any] = {
            "model": "gpt-test",
            "tools": [{"type": "function", "function": function} for function in functions],
            "parallel_tool_calls": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        self._opening = [
            {"role": "system", "content": system_prompt(available)},
            {"role": "user", "content": ASKED},
        ]

    async def cycle(self) -> None:
        """A commit each for what was asked, proposed, decided and done, around the two calls."""
        self._commits.commit(1)
        text, call = await self._ask(self._opening)
        self._commits.commit(2)
        result = {"role": "tool", "tool_call_id": call["id"], "content": "SUCCEEDED: added"}
        asked = {"role": "assistant", "content": text or None, "tool_calls": [call]}
        text, _ = await self._ask([*self._opening, asked, result])
        assert text
        self._commits.commit(1)

    async def _ask(self, messages: list[Any]) -> tuple[str, dict[str, Any]]:
        text, ident, name, arguments = "", "", "", ""
        async for chunk in await self._client.chat.completions.create(messages=messages, **self._fields):
            if not chunk.choices:
                continue
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for part in delta.tool_calls or ():
                ident = ident or part.id or ""
                if part.function:
                    name = name or part.function.name or ""
                    arguments += part.function.arguments or ""
        if arguments:
            json.loads(arguments)
        return text, {
            "id": ident,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }

    async def close(self) -> None:
        await self._client.close()
