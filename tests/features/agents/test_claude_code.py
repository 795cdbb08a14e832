"""Claude Code itself calls the team's tools; its model is a script on loopback.

NOD_TEST_CLAUDE names its program, of npm's package @anthropic-ai/claude-code. With -p, its version 2.1.332
declares no tasks unless its maker turns them on, so it waits.
"""

import asyncio
import json
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.messages_server import Json, MessagesServer, results_in, text, use
from tests.features.agents.kit import SETTINGS, make_agent, press, waiting
from tests.web.conftest import Serve, Served

CLAUDE = os.environ.get("NOD_TEST_CLAUDE", "")
KEEP, READ, CHECK = "mcp__nod__keep", "mcp__nod__read", "mcp__nod__check_approval"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CLAUDE, reason="Claude Code is not installed")]


class Coder:
    """Claude Code in a folder of its own, whose model makes these calls one after the other, then stops."""

    def __init__(self, folder: Path, nod: Served, token: str, calls: Sequence[Json], until: str = "") -> None:
        """``until``: it makes its last call again until a result has this in it, as a model would."""
        self._calls, self._until = calls, until
        self.model = MessagesServer(self._answer)
        self._folder, self._nod, self._token = folder, nod, token
        self.process: asyncio.subprocess.Process | None = None

    def _answer(self, body: Json) -> list[Json]:
        results = results_in(body)
        if len(results) < len(self._calls):
            return [dict(self._calls[len(results)])]
        if self._until not in results[-1] and len(results) < 12:
            return [dict(self._calls[-1])]
        return [text("DONE: " + " | ".join(results_in(body)))]

    async def begin(self) -> None:
        await self.model.start()
        server = {
            "type": "http",
            "url": f"{self._nod.url}/mcp",
            "headers": {"Authorization": f"Bearer {self._token}"},
        }
        config = self._folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"nod": server}}))
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "a-key-for-loopback",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "MCP_TIMEOUT": "20000",
        }
        self.process = await asyncio.create_subprocess_exec(
            CLAUDE, "-p", "do it", "--mcp-config", str(config), "--strict-mcp-config",
            "--allowedTools", f"{KEEP},{READ},{CHECK}", "--output-format", "text",
            cwd=self._folder, env=environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip

    async def end(self) -> str:
        assert self.process is not None
        said, _ = await self.process.communicate()
        await self.model.stop()
        return said.decode()

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.process.communicate()
        await self.model.stop()


async def asked(nod: Served) -> Json:
    while True:
        found = await waiting(nod)
        if found:
            return found[0]
        await asyncio.sleep(0.1)


async def test_it_lists_reads_calls_and_is_told_the_result(serve: Serve, tmp_path: Path):
    async with serve(patience=120, **SETTINGS) as nod:
        coder = Coder(tmp_path, nod, await make_agent(nod), [use(READ), use(KEEP, text="milk")])
        await coder.begin()
        card = await asked(nod)
        assert card["requester"] == "claude-code, for ana"
        await press(nod, "approve", card)
        said = await coder.end()
        told = json.dumps(coder.model.seen)  # it may offer them by their names alone, until they are used
        assert all(name in told for name in (KEEP, READ, CHECK))
        assert "DONE" in said, said
        assert "kept" in said, said
        assert nod.notes.kept == ["milk"]


async def test_a_decline_an_edit_and_an_expiry_are_told_as_they_are(serve: Serve, tmp_path: Path):
    calls = [use(KEEP, text="1"), use(KEEP, text="2"), use(KEEP, text="3")]
    async with serve(patience=180, **SETTINGS) as nod:
        coder = Coder(tmp_path, nod, await make_agent(nod), calls)
        await coder.begin()
        await press(nod, "decline", await asked(nod), reason="Not today")
        card = await asked(nod)
        await press(nod, "approve", card, arguments=card["tool_arguments"] | {"text": "tea"})
        await asked(nod)
        nod.clock.forward(timedelta(hours=25))
        await nod.app.core.recovery.expire_due(nod.clock())
        await nod.idle()
        said = await coder.end()
        assert "Not today" in said, said
        assert "changed text from 2 to tea" in said, said
        assert "EXPIRED" in said, said
        assert nod.notes.kept == ["tea"]


async def test_nod_is_restarted_while_a_card_is_open(serve: Serve, tmp_path: Path):
    async with serve(patience=120, **SETTINGS) as nod:
        port, token = nod.app.web.port, await make_agent(nod)
        coder = Coder(tmp_path, nod, token, [use(KEEP, text="milk")], until="kept")
        await coder.begin()
        card = await asked(nod)
        coder.model.pause = 3.0  # between its tries, while Nod is away
    async with serve(patience=120, **SETTINGS | {"NOD_PORT": port}) as nod:
        assert [each["id"] for each in await waiting(nod)] == [card["id"]]
        await press(nod, "approve", card)
        said = await coder.end()
        assert "kept" in said, said
        assert nod.notes.kept == ["milk"]


async def test_killed_and_started_again_it_joins_the_open_card(serve: Serve, tmp_path: Path):
    async with serve(patience=180, **SETTINGS) as nod:
        token = await make_agent(nod)
        first = Coder(tmp_path, nod, token, [use(KEEP, text="milk")])
        await first.begin()
        card = await asked(nod)
        await first.kill()
        second = Coder(tmp_path, nod, token, [use(KEEP, text="milk")])
        await second.begin()
        while not second.model.seen:  # noqa: ASYNC110 - another program comes when it comes
            await asyncio.sleep(0.1)
        assert [each["id"] for each in await waiting(nod)] == [card["id"]]
        await press(nod, "approve", card)
        said = await second.end()
        assert "kept" in said, said
        assert nod.notes.kept == ["milk"]
