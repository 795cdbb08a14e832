"""A server of the Messages API on loopback that answers by script, for coding agents run as they are."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Json = dict[str, Any]
Answer = Callable[[Json], list[Json]]
"""From a request to the blocks of the answer: `text` or `use`."""


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(name: str, **arguments: Any) -> Json:
    return {"type": "tool_use", "name": name, "input": arguments}


def results_in(body: Json) -> list[str]:
    """The results of tools that a request tells the model, oldest first."""
    found = []
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block.get("type") == "tool_result":
                content = block.get("content", "")
                parts = content if isinstance(content, list) else [{"text": content}]
                found.append(" ".join(str(part.get("text", "")) for part in parts))
    return found


class MessagesServer:
    """``answer`` says what each request with tools gets; any other gets a short text."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.pause = 0.0  # seconds before each answer
        self.seen: list[Json] = []
        self.url = ""
        routes = [
            Route("/v1/messages", self._message, methods=["POST"]),
            Route("/{path:path}", self._other, methods=["GET", "POST", "HEAD"]),
        ]
        config = uvicorn.Config(Starlette(routes=routes), port=0, log_config=None, lifespan="off")
        self._server = uvicorn.Server(config)

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve())
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._task

    async def _other(self, request: Request) -> Response:
        if request.url.path.endswith("count_tokens"):
            return JSONResponse({"input_tokens": 10})
        return JSONResponse({})

    async def _message(self, request: Request) -> Response:
        body: Json = await request.json()
        if body.get("tools"):
            self.seen.append(body)
            await asyncio.sleep(self.pause)
            blocks = self.answer(body)
        else:
            blocks = [text("A title")]
        number = len(self.seen)
        for place, block in enumerate(blocks):
            if block["type"] == "tool_use":
                block["id"] = f"toolu_{number:04}{place:04}"
        stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        message = {
            "id": f"msg_{number:08}", "type": "message", "role": "assistant", "model": body["model"],
            "content": blocks, "stop_reason": stop, "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }  # fmt: skip
        if not body.get("stream"):
            return JSONResponse(message)
        return StreamingResponse(iter(_events(message)), media_type="text/event-stream")


def _events(message: Json) -> list[str]:
    events: list[Json] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
    ]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
