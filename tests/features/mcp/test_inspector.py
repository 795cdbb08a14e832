"""MCP's own inspector as a second client: it lists the tools, and calls one that people let through.

NOD_TEST_INSPECTOR names its ``clients/launcher/build/index.js`` (npm's @modelcontextprotocol/inspector, seen
with 2.12.0), and NOD_TEST_NODE a Node of 22 or later.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.features.agents.kit import SETTINGS, make_agent, press
from tests.features.agents.test_claude_code import asked
from tests.web.conftest import Serve, Served

INSPECTOR = os.environ.get("NOD_TEST_INSPECTOR", "")
NODE = os.environ.get("NOD_TEST_NODE", "node")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INSPECTOR, reason="the inspector is not installed"),
]
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


async def inspect(nod: Served, token: str, home: Path, *words: str) -> tuple[int, Any]:
    """Run the inspector; returns its exit code, and its answer or what it said instead."""
    process = await asyncio.create_subprocess_exec(
        NODE, INSPECTOR, "--cli", "--server-url", f"{nod.url}/mcp", "--transport", "http",
        "--header", f"Authorization: Bearer {token}", "--stored-auth-only", "--format", "json", *words,
        cwd=home, env={"PATH": os.environ["PATH"], "HOME": str(home)}, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, error = await process.communicate()
    try:
        return process.returncode or 0, json.loads(said)
    except ValueError:
        return process.returncode or 0, said.decode() + error.decode()


@ERAS
async def test_it_lists_the_tools_and_finds_no_fault_with_their_schemas(
    serve: Serve, tmp_path: Path, era: str
):
    async with serve(patience=120, **SETTINGS) as nod:
        words = ("--protocol-era", era, "--method", "tools/list", "--strict")
        code, said = await inspect(nod, await make_agent(nod), tmp_path, *words)
        assert code == 0, said
        tools = said.get("result", said)["tools"]
        assert {"request_approval", "keep", "read"} <= {tool["name"] for tool in tools}


@ERAS
async def test_its_call_waits_for_people_and_returns_the_tools_answer(serve: Serve, tmp_path: Path, era: str):
    async with serve(patience=120, **SETTINGS) as nod:
        token = await make_agent(nod)
        words = ("--protocol-era", era, "--method", "tools/call", "--tool-name", "keep")
        running = asyncio.create_task(inspect(nod, token, tmp_path, *words, "--tool-arg", "text=milk"))
        looking = asyncio.create_task(asked(nod))
        await asyncio.wait([running, looking], return_when=asyncio.FIRST_COMPLETED)
        assert not running.done(), running.result()
        card = await looking
        assert card["requester"] == "claude-code, for ana"
        await press(nod, "approve", card)
        code, said = await running
        assert code == 0, said
        assert said.get("result", said)["structuredContent"] == {"kept": 1}
        assert nod.notes.kept == ["milk"]


async def test_a_token_that_is_wrong_is_refused(serve: Serve, tmp_path: Path):
    async with serve(patience=120, **SETTINGS) as nod:
        code, said = await inspect(nod, "noda_0", tmp_path, "--method", "tools/list")
        assert code != 0, said
