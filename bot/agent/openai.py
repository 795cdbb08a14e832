"""A model behind any OpenAI-compatible server, over streamed Chat Completions.

The library opens the request (retries, Retry-After, errors); the stream is then read here as plain JSON,
because building its typed chunks costs more than all other work of a turn, and because only the raw stream
tells an answer that ended (``[DONE]``) from one that was cut. Fragments of calls are put together in
``accumulator.py``, errors put into words in ``openai_errors.py``.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import httpcore2
import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from bot.agent.accumulator import Calls
from bot.agent.model import (
    AssistantText,
    Entry,
    Finished,
    Part,
    Stop,
    SystemText,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.agent.openai_errors import TOO_LONG, explain, too_long
from bot.agent.prompt import OUTSIDE
from bot.agent.sse import data_of
from bot.errors import ModelCut, ModelError

_CUT = (
    httpx2.HTTPError,
    httpx2.StreamError,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    OSError,
    ValueError,  # half an event: not JSON, not UTF-8
)
_STOPS = {"length": Stop.LENGTH, "content_filter": Stop.FILTERED}
_CONNECT_SECONDS = 5.0
_LINGER_SECONDS = 0.1  # for a server that keeps the stream open after its end

_Json = dict[str, Any]


class OpenAIModel:
    """Implements `Model`. ``timeout`` is in seconds, per read: a stream may take longer as a whole.

    ``strict``, ``stream_options`` and ``parallel_tool_calls`` say whether the server takes those fields.
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
        max_retries: int = 2,
    ) -> None:
        self.name = model
        self._key = api_key.strip()
        self._strict = strict
        self._timeout = timeout
        self._parallel_tool_calls = parallel_tool_calls
        self._always: _Json = {"stream_options": {"include_usage": True}} if stream_options else {}
        self._specs: tuple[ToolSpec, ...] = ()
        self._tools: _Json = {}
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=base_url,
            max_retries=max_retries,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
        )

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        """Yield the answer's text as it comes, then one `Finished`. Raises ModelError and ModelCut."""
        answer = _Answer()
        loop = asyncio.get_running_loop()
        async with await self._open(transcript, tools) as opened:
            try:
                async with (
                    aclosing(data_of(opened.response.aiter_bytes())) as events,
                    asyncio.timeout(None) as end,
                ):
                    async for data in events:
                        if data == "[DONE]":
                            # read on: only a connection read to its end is used again
                            answer.ended = True
                            end.reschedule(loop.time() + _LINGER_SECONDS)
                        elif not answer.ended and (text := answer.take(json.loads(data))):
                            yield Text(text)
            except _CUT:
                if not answer.complete:
                    raise ModelCut from None
        if not answer.complete:
            raise ModelCut
        yield answer.finished()

    async def _open(
        self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        # ``extra_body`` goes out as it is; as named parameters the library would walk through every
        # message and schema first (13 ms against 0.6 ms for 20 tools and 60 messages)
        body = {"messages": [_message(entry) for entry in transcript], **self._offer(tools), **self._always}
        try:
            return await self._client.chat.completions.create(
                model=self.name, messages=(), stream=True, extra_body=body
            )
        except openai.OpenAIError as error:
            raise explain(error, model=self.name, key=self._key, timeout=self._timeout) from None
        except UnicodeEncodeError:
            raise ModelError(
                "The API key holds letters no key can have. Please check OPENAI_API_KEY."
            ) from None

    def _offer(self, tools: Sequence[ToolSpec]) -> _Json:
        """Give the request's fields about tools, made anew only when the tools changed."""
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


class _Answer:
    """What one stream has brought so far."""

    def __init__(self) -> None:
        self.ended = False
        self._reason: str | None = None
        self._calls = Calls()
        self._usage: _Json = {}

    @property
    def complete(self) -> bool:
        return self.ended or self._reason is not None

    def take(self, chunk: Any) -> str:
        """Take one decoded chunk in and return its text. Raises ModelCut; ModelError where no retry helps."""
        if not isinstance(chunk, dict):
            return ""
        if error := chunk.get("error"):
            given = error if isinstance(error, dict) else {"message": error}
            if too_long(given.get("code"), given.get("message")):
                raise ModelError(TOO_LONG)
            raise ModelCut
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not choices:
            return ""
        self._reason = choices[0].get("finish_reason") or self._reason
        delta = choices[0].get("delta") or {}
        if fragments := delta.get("tool_calls"):
            self._calls.add(fragments)
        return _text(delta.get("content")) or _text(delta.get("refusal"))

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


def _message(entry: Entry) -> _Json:
    match entry:
        case SystemText(text):
            return {"role": "system", "content": text}
        case UserText(text, name):
            # on one line, so that a display name cannot pass for what somebody else said;
            # the API's own ``name`` field takes only some letters
            speaker = " ".join(name.split())
            return {"role": "user", "content": f"{speaker}: {text}" if speaker else text}
        case AssistantText(text, ()):
            return {"role": "assistant", "content": text}
        case AssistantText(text, calls):
            return {
                "role": "assistant",
                "content": text or None,
                "tool_calls": [_call(call) for call in calls],
            }
        case ToolResult(call_id, text, outside):
            return {"role": "tool", "tool_call_id": call_id, "content": OUTSIDE + text if outside else text}


def _call(call: ToolCall) -> _Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": _object(call.arguments)},
    }


def _object(arguments: str) -> str:
    """Mend arguments that are sent back: some servers refuse a history that holds broken JSON, for ever."""
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
