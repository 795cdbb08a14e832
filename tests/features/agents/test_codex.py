"""Codex itself calls the team's tools; its model is a script on loopback. NOD_TEST_CODEX is its program."""

import asyncio
import json
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.features.agents.kit import SETTINGS, make_agent, press, waiting
from tests.features.agents.test_claude_code import asked
from tests.web.conftest import Json, Serve, Served

CODEX = os.environ.get("NOD_TEST_CODEX", "")
MOST_CALLS = 12
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CODEX, reason="Codex is not installed")]


def use(tool: str, **arguments: Any) -> Json:
    return {"name": tool, "namespace": "mcp__nod", "arguments": json.dumps(arguments)}


class ResponsesServer:
    """Answers the Responses API: these calls one after the other, then what their results were.

    ``until``: the last call is made again until a result has this in it, as a model would. ``pause``: seconds
    before each answer.
    """

    def __init__(self, calls: Sequence[Json], until: str = "") -> None:
        self.calls, self.seen, self.url = calls, list[Json](), ""
        self.pause, self._until = 0.0, until
        routes = [Route("/v1/{path:path}", self._respond, methods=["GET", "POST"])]
        config = uvicorn.Config(Starlette(routes=routes), port=0, log_config=None, lifespan="off")
        self._server = uvicorn.Server(config)

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve())
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}/v1"

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._task

    def _find_next(self, results: Sequence[str]) -> Json | None:
        if len(results) < len(self.calls):
            return self.calls[len(results)]
        if self._until not in results[-1] and len(results) < MOST_CALLS:
            return self.calls[-1]
        return None

    async def _respond(self, request: Request) -> Response:
        if request.method == "GET":
            return JSONResponse({"object": "list", "data": [], "models": []})
        body: Json = await request.json()
        self.seen.append(body)
        await asyncio.sleep(self.pause)
        results = [
            json.dumps(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"
        ]
        number = len(self.seen)
        call = self._find_next(results)
        if call is not None:
            item: Json = {
                "type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "status": "completed", **call,
            }  # fmt: skip
        else:
            part = {"type": "output_text", "text": "DONE: " + " | ".join(results), "annotations": []}
            item = {
                "type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
                "content": [part],
            }  # fmt: skip
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response: Json = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
        ended = {**response, "status": "completed", "output": [item], "usage": usage}
        events: list[Json] = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": ended},
        ]
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        return StreamingResponse(iter(lines), media_type="text/event-stream")


class Coder:
    """Codex in a folder of its own, whose model makes these calls."""

    def __init__(self, folder: Path, nod: Served, token: str, calls: Sequence[Json], until: str = "") -> None:
        self.model = ResponsesServer(calls, until)
        self._folder, self._nod, self._token = folder, nod, token
        self._running: asyncio.Task[tuple[bytes, bytes]] | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def begin(self) -> None:
        await self.model.start()
        home = self._folder / "codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(f"""
model = "gpt-5"
model_provider = "loop"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.loop]
name = "loop"
base_url = "{self.model.url}"
wire_api = "responses"
env_key = "LOOP_KEY"

[mcp_servers.nod]
url = "{self._nod.url}/mcp"
bearer_token_env_var = "NOD_TOKEN"
tool_timeout_sec = 60
required = true
""")
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self._folder), "CODEX_HOME": str(home),
            "LOOP_KEY": "x", "NOD_TOKEN": self._token,
        }  # fmt: skip
        self._process = await asyncio.create_subprocess_exec(
            CODEX, "exec", "--skip-git-repo-check", "do it",
            cwd=self._folder, env=environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._running = asyncio.create_task(self._process.communicate())

    async def see_card(self) -> Json:
        """Return the card that its call opened. Raises AssertionError where it ended before."""
        assert self._running is not None
        looking = asyncio.create_task(asked(self._nod))
        await asyncio.wait([self._running, looking], return_when=asyncio.FIRST_COMPLETED)
        assert not self._running.done(), self._running.result()[0].decode()
        return await looking

    async def end(self) -> str:
        assert self._running is not None
        said = (await self._running)[0].decode()
        await self.model.stop()
        return said

    async def kill(self) -> None:
        """Kill it, and the program that its launcher started."""
        assert self._process is not None
        os.killpg(self._process.pid, 9)
        await self.end()


async def test_it_calls_and_is_told_what_people_decided(serve: Serve, tmp_path: Path):
    async with serve(patience=240, **SETTINGS) as nod:
        calls = [use("read"), use("keep", text="milk"), use("keep", text="tea")]
        coder = Coder(tmp_path, nod, await make_agent(nod, "codex"), calls)
        await coder.begin()
        card = await coder.see_card()
        assert card["requester"] == "codex, for ana"
        await press(nod, "approve", card)
        await press(nod, "decline", await coder.see_card(), reason="Not today")
        said = await coder.end()
        assert "kept" in said, said
        assert "Not today" in said, said
        assert nod.notes.kept == ["milk"]


async def test_an_edit_and_an_expiry_are_told_as_they_are(serve: Serve, tmp_path: Path):
    async with serve(patience=240, **SETTINGS) as nod:
        calls = [use("keep", text="2"), use("keep", text="3")]
        coder = Coder(tmp_path, nod, await make_agent(nod, "codex"), calls)
        await coder.begin()
        card = await coder.see_card()
        await press(nod, "approve", card, arguments=card["tool_arguments"] | {"text": "tea"})
        await coder.see_card()
        nod.clock.forward(timedelta(hours=25))
        await nod.app.core.recovery.expire_due(nod.clock())
        await nod.idle()
        said = await coder.end()
        assert "changed text from 2 to tea" in said, said
        assert "EXPIRED" in said, said
        assert nod.notes.kept == ["tea"]


async def test_nod_is_restarted_while_a_card_is_open(serve: Serve, tmp_path: Path):
    async with serve(patience=240, **SETTINGS) as nod:
        port, token = nod.app.web.port, await make_agent(nod, "codex")
        coder = Coder(tmp_path, nod, token, [use("keep", text="milk")], until="kept")
        await coder.begin()
        card = await coder.see_card()
        coder.model.pause = 3.0  # between its tries, while Nod is away
    async with serve(patience=240, **SETTINGS | {"NOD_PORT": port}) as nod:
        assert [each["id"] for each in await waiting(nod)] == [card["id"]]
        await press(nod, "approve", card)
        said = await coder.end()
        assert "kept" in said, said
        assert nod.notes.kept == ["milk"]


async def test_killed_and_started_again_it_joins_the_open_card(serve: Serve, tmp_path: Path):
    async with serve(patience=240, **SETTINGS) as nod:
        token = await make_agent(nod, "codex")
        first = Coder(tmp_path, nod, token, [use("keep", text="milk")])
        await first.begin()
        card = await first.see_card()
        await first.kill()
        second = Coder(tmp_path, nod, token, [use("keep", text="milk")])
        await second.begin()
        while not second.model.seen:  # noqa: ASYNC110 - another program comes when it comes
            await asyncio.sleep(0.1)
        assert [each["id"] for each in await waiting(nod)] == [card["id"]]
        await press(nod, "approve", card)
        said = await second.end()
        assert "kept" in said, said
        assert nod.notes.kept == ["milk"]
