"""A model behind any OpenAI-compatible server, over streamed Chat Completions.

The library opens the request (retries, Retry-After, errors); the stream is then read here as plain JSON,
because building its typed chunks costs more than all other work of a turn, and because only the raw stream
tells an answer that ended (``[DONE]``) from one that was cut. In ``streams.py`` fragments of calls are put
together and text is cleaned, in ``errors.py`` errors are put into words. Servers that do not stream answer
with one JSON object, which is read as the one chunk it is.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import aiohttp
import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from bot.agent.openai.errors import (
    STRANGE,
    error_in,
    explain,
    refused,
    retry_after,
    silent,
    too_long,
    worth_retrying,
)
from bot.agent.openai.streams import Calls, Deltas, EventTooLongError, data_of, joined
from bot.domain.model import (
    AssistantText,
    Busy,
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
from bot.domain.outcomes import OUTSIDE
from bot.domain.text import storable
from bot.errors import ModelCut, ModelError, ModelTooLong

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
_LONGEST_WAIT = 45.0  # seconds in all that a server may ask for; beyond that people are told
_NOTABLE_WAIT = 2.0  # seconds from which on people are told what is waited for
_BUSY = "The model's server is busy. I'm trying again."
_SILENT_TRIES = 2  # a server that accepts and never answers has taken a full timeout each time
_MOST_BYTES = 8 * 1024 * 1024  # of an answer that is not a stream
_MOST_TEXT = 100_000  # characters of an answer
_MOST_OTHER = 500_000  # characters of its calls' arguments, and as many of its thoughts
_MOST_EVENTS = 200_000
_AGAIN = "Send “continue” to try again."
_TOO_LONG = "The model's answer is too long to read. Ask for less at a time."
_KNOWN = {"role", "content", "tool_calls", "refusal", "function_call", "audio", "annotations"}
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
_WINDOW_SECONDS = 5.0

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
        clock: Callable[[], float] = time.monotonic,
        speechless: float = 300,
        longest: float = 900,
    ) -> None:
        """``speechless``: seconds without a visible word; ``longest``: seconds of one answer in all."""
        self.name = model
        self._key = api_key.strip()
        self._strict = strict
        self._waits = _WAITS[:max_retries]
        self._pause = pause
        self._clock = clock
        self._speechless = speechless
        self._longest = longest
        self._window: int | None = None
        self._asked_window = False
        self._parallel_tool_calls = parallel_tool_calls
        self._always: _Json = {"stream_options": {"include_usage": True}} if stream_options else {}
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
        answer = _Answer(self.name)
        try:
            async for part in self._parts(answer, transcript, tools):
                yield part
        except (ModelCut, ModelTooLong) as error:
            if not answer.spoke:
                error.window = await self._window_size()
            raise

    async def _parts(
        self, answer: "_Answer", transcript: Sequence[Entry], tools: Sequence[ToolSpec]
    ) -> AsyncIterator[Part]:
        loop = asyncio.get_running_loop()
        body = {
            "model": self.name,
            "stream": True,
            "messages": [_message(entry, self.name) for entry in transcript],
            **self._offer(tools),
            **self._always,
        }
        opened: openai.AsyncStream[ChatCompletionChunk]
        async for found in self._open(body):
            if isinstance(found, Busy):
                yield found
            else:
                opened = found
        check = self._watch(answer)
        async with opened:
            try:
                async with (
                    aclosing(_events(opened.response, self._key, check)) as events,
                    asyncio.timeout(None) as end,
                ):
                    async for data in events:
                        check()
                        if data == "[DONE]":
                            # read to the end: only such a connection is used again
                            answer.ended = True
                            end.reschedule(loop.time() + _LINGER_SECONDS)
                        elif not answer.ended:
                            for part in answer.take(json.loads(data)):
                                yield part
                            if answer.is_full:
                                break
            except EventTooLongError:
                raise ModelError(_TOO_LONG) from None
            except _CUT:
                if not answer.complete:
                    raise ModelCut from None
        if not answer.complete:
            raise ModelCut
        for part in answer.rest():
            yield part
        yield answer.finished()

    async def _open(self, body: _Json) -> AsyncIterator[Busy | openai.AsyncStream[ChatCompletionChunk]]:
        """Send the request until it is answered: that comes last."""
        began, tries, paused = self._clock(), 0, 0.0
        while True:
            tries += 1
            try:
                yield await self._post(body)
            except openai.OpenAIError as error:
                wait = self._patience(error, tries, paused)
                if wait is None:
                    waited = self._clock() - began
                    refusal = explain(error, model=self.name, key=self._key, waited=waited)
                    refusal.passing = worth_retrying(error)
                    raise refusal from None
            else:
                return
            if wait >= _NOTABLE_WAIT:
                yield Busy(_BUSY)
            paused += wait
            await self._pause(wait)

    async def _post(self, body: _Json) -> openai.AsyncStream[ChatCompletionChunk]:
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
        except aiohttp.ClientError:  # the library passes on what speaks no HTTP
            raise ModelError(STRANGE) from None
        except UnicodeEncodeError:
            if not self._key.isascii():
                raise ModelError(
                    "The API key holds letters no key can have. Please check OPENAI_API_KEY."
                ) from None
            return await self._post(json.loads(storable(json.dumps(body, ensure_ascii=False))))

    def _watch(self, answer: "_Answer") -> Callable[[], None]:
        """What raises ModelError once an answer has taken too long; called with each piece of it."""
        began = self._clock()

        def check() -> None:
            taken = self._clock() - began
            if taken > self._longest:
                minutes = f"{self._longest / 60:.0f} min"
                raise ModelError(f"The model's answer did not end within {minutes}. {_AGAIN}")
            if taken > self._speechless and not answer.spoke:
                minutes = f"{self._speechless / 60:.0f} min"
                raise ModelError(f"The model said nothing within {minutes}. {_AGAIN}")

        return check

    async def _window_size(self) -> int | None:
        """How many tokens the server says that this model takes, asked once; None where it does not say."""
        if not self._asked_window:
            self._asked_window = True
            try:
                async with asyncio.timeout(_WINDOW_SECONDS):
                    listed = await self._client.get("/models", cast_to=dict[str, Any])
                    self._window = _window(listed, self.name)
            except (openai.OpenAIError, aiohttp.ClientError, TimeoutError, ValueError):
                return None
        return self._window

    def _patience(self, error: openai.OpenAIError, tries: int, paused: float) -> float | None:
        """How many seconds to wait before asking again; None when people should be told instead."""
        tired = silent(error) and tries >= _SILENT_TRIES
        if tired or tries > len(self._waits) or not worth_retrying(error):
            return None
        asked = retry_after(error)
        wait = self._waits[tries - 1] if asked is None else asked
        return wait if paused + wait <= _LONGEST_WAIT else None

    def _offer(self, tools: Sequence[ToolSpec]) -> _Json:
        """The request's fields about tools."""
        if not tools:
            return {}
        offered: _Json = {"tools": [_tool(spec, strict=self._strict) for spec in tools]}
        return offered | ({"parallel_tool_calls": True} if self._parallel_tool_calls else {})

    async def close(self) -> None:
        await self._client.close()


async def _events(
    response: httpx2.Response, key: str, check: Callable[[], None]
) -> AsyncGenerator[str, None]:
    """The data of each event of an answer, whether it came as a stream or as one JSON object.

    Raises ModelError for anything else, such as a web page.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        content = bytearray()
        async for part in _checked(response, check):
            content += part
            if len(content) > _MOST_BYTES:
                raise ModelError(_TOO_LONG)
        if error := refused(bytes(content), key):
            raise error
        yield content.decode()
        yield "[DONE]"
    elif kind == "text/html":
        raise ModelError("The model's server answered with a web page. Check OPENAI_BASE_URL.")
    else:
        async with aclosing(data_of(_checked(response, check))) as events:
            async for data in events:
                yield data


async def _checked(response: httpx2.Response, check: Callable[[], None]) -> AsyncGenerator[bytes, None]:
    async for part in response.aiter_bytes():
        check()
        yield part


def _window(listed: Any, model: str) -> int | None:
    """Find the window of a model in an answer of ``GET /models``, by the fields that servers use for it."""
    found = listed.get("data") if isinstance(listed, dict) else None
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and each.get("id") == model:
            meta = each.get("meta")
            fields = each | (meta if isinstance(meta, dict) else {})
            sizes = [fields.get(name) for name in _WINDOWS]
            return next((size for size in sizes if isinstance(size, int) and size > 0), None)
    return None


class _Answer:
    """What one stream has brought so far."""

    def __init__(self, model: str) -> None:
        self.ended = False
        self._model = model
        self.spoke = False  # a word or a call
        self._deltas = Deltas()
        self._size = self._thought = self._events = 0
        self._extra: dict[str, Any] = {}
        self._texts: set[str] = set()  # names of those that come in pieces of text
        self._reason: str | None = None
        self._calls = Calls()
        self._usage: _Json = {}

    @property
    def complete(self) -> bool:
        return self.ended or self._reason is not None or self.is_full

    @property
    def is_full(self) -> bool:
        """Whether nothing more of it is read; what is there counts as cut at its length."""
        other = max(self._calls.size, self._thought)
        return self._size > _MOST_TEXT or other > _MOST_OTHER or self._events > _MOST_EVENTS

    def take(self, chunk: Any) -> Sequence[Part]:
        """Take one decoded chunk in; gives what it says. Raises ModelCut; ModelError where no retry helps."""
        self._events += 1
        if (error := error_in(chunk)) is not None:
            if too_long(error.get("code"), error.get("message")):
                raise ModelTooLong
            raise ModelCut
        if not isinstance(chunk, dict):
            return ()
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not choices:
            return ()
        self._reason = choices[0].get("finish_reason") or self._reason
        delta = choices[0].get("delta")
        if delta is None and not self.spoke:  # a complete message instead of a part of one
            delta = choices[0].get("message")
        if not isinstance(delta, dict):
            return ()
        if fragments := delta.get("tool_calls"):
            self._calls.add(fragments)
        said = _text(delta.get("content")) or _text(delta.get("refusal"))
        self._keep(delta)
        self.spoke = self.spoke or bool(said or fragments)
        text, thought = self._deltas.add(said), _thought(delta)
        self._size += len(said)
        self._thought += len(thought)
        return self._parts(text, thought)

    def _keep(self, delta: _Json) -> None:
        """Keep the fields that are the server's own: some want them back with the calls of an answer."""
        for name, value in delta.items():
            before = self._extra.get(name)
            if name in _KNOWN or not value:
                continue
            if isinstance(value, str) and isinstance(before, list):
                before.append(value)
            elif isinstance(value, list) and isinstance(before, list):
                before.extend(value)
            else:
                self._extra[name] = [value] if isinstance(value, str) else value
                if isinstance(value, str):
                    self._texts.add(name)

    def rest(self) -> Sequence[Part]:
        """What was held back because more of it might have come."""
        return self._parts(self._deltas.rest())

    def _parts(self, text: str, thought: str = "") -> Sequence[Part]:
        thought = self._deltas.thought(thought)
        return (*([Thought(thought)] if thought else ()), *([Text(text)] if text else ()))

    def finished(self) -> Finished:
        stop = Stop.LENGTH if self.is_full else _STOPS.get(self._reason or "", Stop.FINISHED)
        return Finished(
            stop=stop,
            calls=self._done() if stop is Stop.FINISHED else (),
            prompt_tokens=self._usage.get("prompt_tokens") or 0,
            completion_tokens=self._usage.get("completion_tokens") or 0,
            cached_tokens=_cached(self._usage),
        )

    def _done(self) -> tuple[ToolCall, ...]:
        """The calls with what their server wants back; what belongs to the answer goes with the first."""
        answer = {name: joined("".join(v)) if name in self._texts else v for name, v in self._extra.items()}
        calls = self._calls.done()
        return tuple(
            replace(call, extra={"model": self._model, "call": call.extra, "answer": {} if at else answer})
            if call.extra or (answer and not at)
            else call
            for at, call in enumerate(calls)
        )


def _cached(usage: _Json) -> int:
    """How many tokens of the prompt the server had already, as far as it says."""
    details = usage.get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, dict) else 0
    return found if isinstance(found, int) and found > 0 else 0


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


def _message(entry: Entry, model: str) -> _Json:
    match entry:
        case SystemText(text):
            return {"role": "system", "content": text}
        case UserText(text, name, when):
            # on one line, so that a display name cannot pass for what someone else said;
            # the API's own ``name`` field takes only some letters
            speaker = " ".join(name.split())
            said = f"{speaker}: {text}" if speaker else text
            return {"role": "user", "content": f"[{when}]\n{said}" if when else said}
        case AssistantText(text, ()):
            return {"role": "assistant", "content": text}
        case AssistantText(text, calls):
            return {
                "role": "assistant",
                "content": text if text.strip() else None,
                "tool_calls": [_call(call, model) for call in calls],
                **_extra(calls[0], model, "answer"),
            }
        case ToolResult(call_id, text, outside):
            said = f"{OUTSIDE}\n{text}" if outside else text
            return {"role": "tool", "tool_call_id": call_id, "content": said}


def _extra(call: ToolCall, model: str, part: str) -> _Json:
    """What the same model's server sent with an answer or a call."""
    found = call.extra.get(part)
    return dict(found) if found and call.extra.get("model") == model else {}


def _call(call: ToolCall, model: str) -> _Json:
    return {
        **_extra(call, model, "call"),
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
