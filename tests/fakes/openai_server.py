"""An OpenAI-compatible server on loopback: real HTTP and SSE, scripted replies, OpenAI's refusals.

In a test::

    async with OpenAIServer() as server:
        server.reply(say("Hello"), ask(("note_add", {"text": "x"})))
        ... AsyncOpenAI(base_url=server.url, api_key=server.key)

``server.requests`` holds every accepted or refused body. As a process, for benchmarks:
``python -m tests.fakes.openai_server --port 9001``; it answers with one ``note_add`` call, then with text.
"""

import argparse
import asyncio
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

from aiohttp import web

from tests.fakes.model_dialects import Dialect, plain_error
from tests.fakes.openai_responses import check_response, response_events
from tests.fakes.openai_rules import RefusalError, check

Json = dict[str, Any]
_ids = itertools.count(1)


@dataclass(frozen=True)
class Reply:
    """One answer. ``chunks`` are sent as SSE events in order; bytes go out exactly as they are."""

    chunks: tuple[Json | bytes, ...] = ()
    done: bool = True  # end with [DONE]
    cut_after: int | None = None  # break the connection after that many chunks
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: asyncio.Event | None = None  # hold the answer back until set
    hang: bool = False  # keep the stream open after its end
    whole: bytes | None = None  # sent instead of a stream, as ``kind``
    kind: str = "text/event-stream"
    slam: bool = False  # take the request and close the connection without a byte

    def cut(self, after: int) -> "Reply":
        return replace(self, cut_after=after)


def chunk(delta: Json | None = None, finish: str | None = None) -> Json:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}]}


def usage(prompt: int, completion: int) -> Json:
    return {"choices": [], **_spent(prompt, completion)}


def _spent(prompt: int, completion: int) -> Json:
    tokens = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"usage": tokens}


def stream(*chunks: Json | bytes, done: bool = True) -> Reply:
    """Any chunks at all: for servers that are odd."""
    return Reply(chunks, done=done)


def unstreamed(message: Json, finish: str = "stop") -> Reply:
    """One JSON object, from a server that does not stream."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test-model"}
    body = {**head, "choices": [choice], **_spent(12, 5)}
    return Reply(whole=json.dumps(body).encode(), kind="application/json")


def page(html: str) -> Reply:
    """A web page with status 200: a proxy's sign-in, or the wrong path."""
    return Reply(whole=html.encode(), kind="text/html; charset=utf-8")


def words(text: str | bytes, *, status: int = 200, kind: str = "text/plain; charset=utf-8") -> Reply:
    """A body as it is, with any status and label: plain text, or JSON that is labelled otherwise."""
    return Reply(whole=text if isinstance(text, bytes) else text.encode(), kind=kind, status=status)


def blame(status: int, body: Any, *, headers: Mapping[str, str] | None = None) -> Reply:
    """An error in another shape than OpenAI's."""
    return Reply(status=status, body=body, headers=headers or {})


def say(text: str, *, finish: str | None = "stop", tokens: tuple[int, int] = (12, 5)) -> Reply:
    """Text, word by word."""
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1][:-1]
    return Reply(
        (
            chunk({"role": "assistant", "content": ""}),
            *(chunk({"content": word}) for word in words),
            chunk(finish=finish),
            usage(*tokens),
        )
    )


def fragment(  # one entry of delta.tool_calls; what is not given is not sent
    *,
    index: int | None = None,
    call_id: str | None = None,
    name: str | None = None,
    arguments: str | None = None,
) -> Json:
    made: Json = {"type": "function", "function": {"name": name, "arguments": arguments}}
    made |= {"index": index} if index is not None else {}
    return made | ({"id": call_id} if call_id is not None else {})


def ask(
    *calls: tuple[str, Any],
    text: str = "",
    finish: str = "tool_calls",
    tokens: tuple[int, int] = (12, 5),
) -> Reply:
    """Tool calls the way OpenAI streams them. Text as arguments goes out as it is, so it may be bad."""
    chunks: list[Json] = [chunk({"role": "assistant", "content": text or None})]
    for index, (name, arguments) in enumerate(calls):
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        chunks.append(
            chunk(
                {"tool_calls": [fragment(index=index, call_id=f"call_{next(_ids)}", name=name, arguments="")]}
            )
        )
        for start in range(0, len(raw), 16):
            part = {"index": index, "function": {"arguments": raw[start : start + 16]}}
            chunks.append(chunk({"tool_calls": [part]}))
    return Reply((*chunks, chunk(finish=finish), usage(*tokens)))


def fail(
    status: int, message: str = "no", *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """An error before the stream; ``headers`` may hold Retry-After."""
    return Reply(status=status, body=_error(message, code), headers=headers or {})


def _error(message: str, code: str | None) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


Script = Callable[[Json], Reply]


class OpenAIServer:
    """Answers with the queued replies in order, or by a script; 500 when neither is left."""

    def __init__(
        self,
        *,
        key: str = "test-key",
        script: Script | None = None,
        port: int = 0,
        dialect: Dialect | None = None,
    ) -> None:
        """``dialect``: whose refusals it has; without one, OpenAI's as far as messages go."""
        self.key = key
        self.dialect = dialect or Dialect("messages", check, plain_error)
        self.refused: list[str] = []  # why, for each request that was
        self.requests: list[Json] = []
        self.connections: set[tuple[str, int]] = set()  # peers seen: how many connections were opened
        self.arrived = asyncio.Event()  # set with each request
        self._script = script
        self._port = port
        self._replies: deque[Reply] = deque()
        self._runner: web.AppRunner | None = None

    def reply(self, *replies: Reply) -> None:
        self._replies.extend(replies)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._completions)
        app.router.add_post("/v1/responses", self._responses)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        """The same replies by the other interface."""
        return await self._completions(request, check_response, self._as_response)

    def _as_response(self, body: Json, reply: Reply) -> Reply:
        if (
            reply.whole is not None
            or reply.status != 200
            or not all(isinstance(c, dict) for c in reply.chunks)
        ):
            return reply
        events = tuple(response_events(body, [c for c in reply.chunks if isinstance(c, dict)]))
        if not body.get("stream"):
            return Reply(whole=json.dumps(events[-1]["response"]).encode(), kind="application/json")
        lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)
        return replace(reply, chunks=tuple(lines), done=False)

    async def _completions(
        self,
        request: web.Request,
        check: Callable[[Json], None] | None = None,
        made: Callable[[Json, Reply], Reply] = lambda _, reply: reply,
    ) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        if request.transport is not None:
            self.connections.add(request.transport.get_extra_info("peername"))
        self.arrived.set()
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            masked = "Incorrect API key provided: test****"
            return web.json_response(_error(masked, "invalid_api_key"), status=401)
        try:
            (check or self.dialect.check)(body)
        except RefusalError as refusal:
            self.refused.append(str(refusal))
            told = self.dialect.error(str(refusal), refusal.code)
            return web.json_response(told, status=self.dialect.status)
        return await self._answer(request, body, made(body, self._next(body)))

    def _next(self, body: Json) -> Reply:
        if self._replies:
            return self._replies.popleft()
        if self._script is not None:
            return self._script(body)
        return fail(500, "the test queued no reply for this request", headers={"x-should-retry": "false"})

    async def _answer(self, request: web.Request, body: Json, reply: Reply) -> web.StreamResponse:
        if reply.wait is not None:
            await reply.wait.wait()
        if reply.slam and request.transport is not None:
            request.transport.close()
        if reply.whole is not None:
            kind = {"Content-Type": reply.kind, **reply.headers}
            return web.Response(body=reply.whole, status=reply.status, headers=kind)
        if reply.status != 200:
            return web.json_response(reply.body, status=reply.status, headers=reply.headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **reply.headers})
        await response.prepare(request)
        for item in reply.chunks[: reply.cut_after]:
            await response.write(item if isinstance(item, bytes) else _event(body, item))
        if reply.cut_after is not None:
            if request.transport is not None:
                request.transport.close()
            return response
        if reply.done:
            await response.write(b"data: [DONE]\n\n")
        if reply.hang:
            await asyncio.Event().wait()
        await response.write_eof()
        return response


def _event(body: Json, item: Json) -> bytes:
    if item.get("usage") and not (body.get("stream_options") or {}).get("include_usage"):
        return b""
    envelope = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    return b"data: " + json.dumps(envelope | item).encode() + b"\n\n"


def benchmark_script(body: Json) -> Reply:
    """Ask for one write, then close with a word."""
    messages: Sequence[Json] = body["messages"]
    tools: Iterable[Json] = body.get("tools") or ()
    offered = any(tool["function"]["name"] == "note_add" for tool in tools)
    if messages[-1]["role"] == "user" and offered:
        return ask(("note_add", {"text": "hello", "approval_reason": "asked"}))
    return say("All done.")


async def _serve(port: int) -> None:
    async with OpenAIServer(script=benchmark_script, port=port) as server:
        print(server.url, flush=True)  # noqa: T201 - the benchmark waits for this line
        while True:  # a benchmark sends many requests: keep no record of them
            await server.arrived.wait()
            server.arrived.clear()
            server.requests.clear()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
