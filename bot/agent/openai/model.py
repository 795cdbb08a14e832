"""A model behind any OpenAI-compatible server, over streamed Chat Completions.

The library opens the request (retries, Retry-After, errors); the stream is then read here as plain JSON,
because building its typed chunks costs more than all other work of a turn, and because only the raw stream
tells an answer that ended (``[DONE]``) from one that was cut. Fragments of calls are put together in
``accumulator.py``, text is cleaned in ``deltas.py``, errors put into words in ``openai_errors.py``. Servers
that do not stream answer with one JSON object, which is read as the one chunk it is.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import aiohttp
import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from bot.agent.model import (
    AssistantText,
    Entry,
    Finished,
    Part,
    Stop,
    SystemText,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.agent.openai.calls import Calls
from bot.agent.openai.deltas import Deltas
from bot.agent.openai.errors import (
    STRANGE,
    TOO_LONG,
    explain,
    refused,
    retry_after,
    silent,
    too_long,
    worth_retrying,
)
from bot.agent.openai.sse import data_of
from bot.agent.prompt import OUTSIDE
from bot.domain.text import storable
from bot.errors import ModelCut, ModelError

_CUT = (
    httpx2.HTTPError,
    httpx2.StreamError,
    aiohttp.ClientError,
    OSError,
    ValueError,  # half an event: not JSON, not UTF-8
)
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")  # models call what does not exist, and servers check the history
_STOPS = {"length": Stop.LENGTH, "content_filter": Stop.FILTERED}
_CONNECT_SECONDS = 5.0
_LINGER_SECONDS = 0.1  # for a server that keeps the stream open after its end
_WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds before each further try: half a minute of an outage
_LONGEST_WAIT = 60.0  # seconds that a server may ask for; beyond that people are told
_SILENT_TRIES = 2  # a server that accepts and never answers has taken a full timeout each time
_MOST_BYTES = 8 * 1024 * 1024  # of an answer that is not a stream

_Json = dict[str, Any]


class OpenAIModel:
    """Implements `Model`. ``timeout`` is in seconds, per read: a complete stream may take longer.

    ``strict``, ``stream_options`` and ``parallel_tool_calls`` say whether the server takes those fields.
    An outage is waited out for at most ``max_retries`` tries, with ``pause`` (seconds) between them.
    """

    def __init__(
        self,
        *,
        model: str,
        api_key: str,
        base_url: str | None,
        strict: bool,
        stream_options: bool,
        parallel_tool_calls: bool,
        timeout: float = 60,
        max_retries: int = len(_WAITS),
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = model
        self._key = api_key.strip()
        self._strict = strict
        self._waits = _WAITS[:max_retries]
        self._pause = pause
        self._parallel_tool_calls = parallel_tool_calls
        self._always: _Json = {"stream_options": {"include_usage": True}} if stream_options else {}
        self._specs: tuple[ToolSpec, ...] = ()
        self._tools: _Json = {}
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=base_url,
            max_retries=0,
            # the library's other transport; its usual one looks at all idle connections for each request
            http_client=openai.DefaultAioHttpClient(
                timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS))
            ),
        )

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        """Yield text and thoughts as they come, then one `Finished`. Raises ModelError and ModelCut."""
        answer = _Answer()
        loop = asyncio.get_running_loop()
        async with await self._open(transcript, tools) as opened:
            try:
                async with (
                    aclosing(_events(opened.response, self._key)) as events,
                    asyncio.timeout(None) as end,
                ):
                    async for data in events:
                        if data == "[DONE]":
                            # read to the end: only such a connection is used again
                            answer.ended = True
                            end.reschedule(loop.time() + _LINGER_SECONDS)
                        elif not answer.ended:
                            for part in answer.take(json.loads(data)):
                                yield part
            except _CUT:
                if not answer.complete:
                    raise ModelCut from None
        if not answer.complete:
            raise ModelCut
        for part in answer.rest():
            yield part
        yield answer.finished()

    async def _open(
        self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        body = {
            "model": self.name,
            "stream": True,
            "messages": [_message(entry) for entry in transcript],
            **self._offer(tools),
            **self._always,
        }
        loop = asyncio.get_running_loop()
        began, tries = loop.time(), 0
        while True:
            tries += 1
            try:
                # not `chat.completions.create`: that would walk through every message and schema first
                # (13 ms against 0.6 ms for 20 tools and 60 messages)
                return await self._client.post(
                    "/chat/completions",
                    cast_to=ChatCompletionChunk,
                    body=body,
                    stream=True,
                    stream_cls=openai.AsyncStream[ChatCompletionChunk],
                )
            except openai.OpenAIError as error:
                wait = self._patience(error, tries)
                if wait is None:
                    waited = loop.time() - began
                    raise explain(error, model=self.name, key=self._key, waited=waited) from None
            except aiohttp.ClientError:  # the library passes on what speaks no HTTP
                raise ModelError(STRANGE) from None
            except UnicodeEncodeError:
                if not self._key.isascii():
                    raise ModelError(
                        "The API key holds letters no key can have. Please check OPENAI_API_KEY."
                    ) from None
                body = json.loads(storable(json.dumps(body, ensure_ascii=False)))
                continue
            await self._pause(wait)

    def _patience(self, error: openai.OpenAIError, tries: int) -> float | None:
        """How many seconds to wait before asking again; None when people should be told instead."""
        tired = silent(error) and tries >= _SILENT_TRIES
        if tired or tries > len(self._waits) or not worth_retrying(error):
            return None
        asked = retry_after(error)
        wait = self._waits[tries - 1] if asked is None else asked
        return wait if wait <= _LONGEST_WAIT else None

    def _offer(self, tools: Sequence[ToolSpec]) -> _Json:
        """The request's fields about tools, made again only when the tools changed."""
        specs = tuple(tools)
        if specs != self._specs:
            offered = [_tool(spec, strict=self._strict) for spec in specs]
            self._tools = {"tools": offered}
            if self._parallel_tool_calls:
                self._tools["parallel_tool_calls"] = True
            self._specs = specs
        return self._tools if specs else {}

    async def close(self) -> None:
        await self._client.close()


async def _events(response: httpx2.Response, key: str) -> AsyncGenerator[str, None]:
    """The data of each event of an answer, whether it came as a stream or as one JSON object.

    Raises ModelError for anything else, such as a web page.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        content = b""
        async for part in response.aiter_bytes():
            content += part
            if len(content) > _MOST_BYTES:
                raise ModelError("The model's server gave an answer that is too long to read.")
        if words := refused(content, key):
            raise ModelError(words)
        yield content.decode()
        yield "[DONE]"
    elif kind == "text/html":
        raise ModelError("The model's server answered with a web page. Check OPENAI_BASE_URL.")
    else:
        async with aclosing(data_of(response.aiter_bytes())) as events:
            async for data in events:
                yield data


class _Answer:
    """What one stream has brought so far."""

    def __init__(self) -> None:
        self.ended = False
        self._deltas = Deltas()
        self._spoke = False
        self._reason: str | None = None
        self._calls = Calls()
        self._usage: _Json = {}

    @property
    def complete(self) -> bool:
        return self.ended or self._reason is not None

    def take(self, chunk: Any) -> Sequence[Part]:
        """Take one decoded chunk in; gives what it says. Raises ModelCut; ModelError where no retry helps."""
        if not isinstance(chunk, dict):
            return ()
        if error := chunk.get("error"):
            given = error if isinstance(error, dict) else {"message": error}
            if too_long(given.get("code"), given.get("message")):
                raise ModelError(TOO_LONG)
            raise ModelCut
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not choices:
            return ()
        self._reason = choices[0].get("finish_reason") or self._reason
        delta = choices[0].get("delta")
        if delta is None and not self._spoke:  # a complete message instead of a part of one
            delta = choices[0].get("message")
        if not isinstance(delta, dict):
            return ()
        if fragments := delta.get("tool_calls"):
            self._calls.add(fragments)
        said = _text(delta.get("content")) or _text(delta.get("refusal"))
        self._spoke = self._spoke or bool(said or fragments)
        text = self._deltas.add(said)
        return self._parts(text, _thought(delta))

    def rest(self) -> Sequence[Part]:
        """What was held back because more of it might have come."""
        return self._parts(self._deltas.rest())

    def _parts(self, text: str, thought: str = "") -> Sequence[Part]:
        thought = self._deltas.thought(thought)
        return (*([Thought(thought)] if thought else ()), *([Text(text)] if text else ()))

    def finished(self) -> Finished:
        stop = _STOPS.get(self._reason or "", Stop.FINISHED)
        return Finished(
            stop=stop,
            calls=self._calls.done() if stop is Stop.FINISHED else (),
            prompt_tokens=self._usage.get("prompt_tokens") or 0,
            completion_tokens=self._usage.get("completion_tokens") or 0,
        )


def _text(content: Any) -> str:
    """Read a delta's text; some servers send a list of parts, thoughts among them."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if part.get("type") == "text")
    return content or ""


def _thought(delta: _Json) -> str:
    """What the model thinks, by the fields that servers use for it; not one of them is OpenAI's own."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(said := delta.get(name), str) and said:
            return said
    parts = delta.get("content")
    thinking = [part.get("thinking") for part in parts] if isinstance(parts, list) else []
    return "".join(_text(part) for part in thinking)


def _message(entry: Entry) -> _Json:
    match entry:
        case SystemText(text):
            return {"role": "system", "content": text}
        case UserText(text, name):
            # on one line, so that a display name cannot pass for what someone else said;
            # the API's own ``name`` field takes only some letters
            speaker = " ".join(name.split())
            return {"role": "user", "content": f"{speaker}: {text}" if speaker else text}
        case AssistantText(text, ()):
            return {"role": "assistant", "content": text}
        case AssistantText(text, calls):
            return {
                "role": "assistant",
                "content": text if text.strip() else None,
                "tool_calls": [_call(call) for call in calls],
            }
        case ToolResult(call_id, text, outside):
            return {"role": "tool", "tool_call_id": call_id, "content": OUTSIDE + text if outside else text}


def _call(call: ToolCall) -> _Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": _NO_NAME.sub("_", call.name)[:64], "arguments": _object(call.arguments)},
    }


def _object(arguments: str) -> str:
    """Repair arguments that are sent back: some servers refuse every history that holds broken JSON."""
    try:
        whole = isinstance(json.loads(arguments), dict)
    except ValueError:
        whole = False
    return arguments if whole else json.dumps({"not_json": arguments})


def _tool(spec: ToolSpec, *, strict: bool) -> _Json:
    function: _Json = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    if strict and spec.strict:
        function["strict"] = True
    return {"type": "function", "function": function}
