"""Codex itself calls the team's tools; its model is a script on loopback. NOD_TEST_CODEX is its program."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.features.agents.kit import SETTINGS, make_agent, press
from tests.features.agents.test_claude_code import asked
from tests.web.conftest import Json, Serve

CODEX = os.environ.get("NOD_TEST_CODEX", "")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CODEX, reason="Codex is not installed")]


class ResponsesServer:
    """Answers the Responses API: these calls one after the other, then what their results were."""

    def __init__(self, calls: Sequence[Json]) -> None:
        self.calls, self.seen, self.url = calls, list[Json](), ""
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

    async def _respond(self, request: Request) -> Response:
        if request.method == "GET":
            return JSONResponse({"object": "list", "data": [], "models": []})
        body: Json = await request.json()
        self.seen.append(body)
        done = [item for item in body["input"] if item.get("type") == "function_call_output"]
        number = len(self.seen)
        if len(done) < len(self.calls):
            call = self.calls[len(done)]
            item: Json = {
                "type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "status": "completed", **call,
            }  # fmt: skip
        else:
            words = "DONE: " + " | ".join(json.dumps(item["output"]) for item in done)
            part = {"type": "output_text", "text": words, "annotations": []}
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


async def test_it_calls_and_is_told_what_people_decided(serve: Serve, tmp_path: Path):
    async with serve(patience=120, **SETTINGS) as nod:
        calls: list[dict[str, Any]] = [
            {"name": "read", "namespace": "mcp__nod", "arguments": "{}"},
            {"name": "keep", "namespace": "mcp__nod", "arguments": '{"text": "milk"}'},
            {"name": "keep", "namespace": "mcp__nod", "arguments": '{"text": "tea"}'},
        ]
        model = ResponsesServer(calls)
        await model.start()
        home = tmp_path / "codex"
        home.mkdir()
        (home / "config.toml").write_text(f"""
model = "gpt-5"
model_provider = "loop"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.loop]
name = "loop"
base_url = "{model.url}"
wire_api = "responses"
env_key = "LOOP_KEY"

[mcp_servers.nod]
url = "{nod.url}/mcp"
bearer_token_env_var = "NOD_TOKEN"
tool_timeout_sec = 60
required = true
""")
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(tmp_path), "CODEX_HOME": str(home),
            "LOOP_KEY": "x", "NOD_TOKEN": await make_agent(nod, "codex"),
        }  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            CODEX, "exec", "--skip-git-repo-check", "do it",
            cwd=tmp_path, env=environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        running = asyncio.create_task(process.communicate())
        looking = asyncio.create_task(asked(nod))
        await asyncio.wait([running, looking], return_when=asyncio.FIRST_COMPLETED)
        assert not running.done(), running.result()[0].decode()
        card = await looking
        assert card["requester"] == "codex, for ana"
        await press(nod, "approve", card)
        await press(nod, "decline", await asked(nod), reason="Not today")
        said = (await running)[0].decode()
        await model.stop()
        assert "kept" in said, said
        assert "Not today" in said, said
        assert nod.notes.kept == ["milk"]
