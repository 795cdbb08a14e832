"""A model behind any OpenAI-compatible server, over one of two interfaces: Chat Completions or Responses.

`OpenAIModel.stream` sends a history and the tools until the server answers, and yields the parts of the
answer. Before the answer it waits after temporary failures, and leaves out parts of the request that the
server refuses. The ``openai`` library sends each request. The stream is then read here as plain JSON, for two
reasons. Building the library's typed chunks costs more than all other work of a turn. And only the raw stream
shows whether an answer ended or was cut. An answer that is no stream is read as a stream of one
event.

Requests are made in ``requests.py``, ``chat.py`` and ``responses.py``. Answers are read in ``answers/``.
Errors are put into words in ``errors.py``.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import Enum, auto
from typing import Any, NamedTuple

import aiohttp
import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from bot.agent.openai.answers.answer import RefusedError, StreamedAnswer
from bot.agent.openai.answers.calls import resolve_tool_names
from bot.agent.openai.answers.chat import ChatAnswer
from bot.agent.openai.answers.events import MAX_OBJECT_BYTES, Event, EventTooLongError, split_events
from bot.agent.openai.answers.refusals import RefusalCause, find_error, read_refusal
from bot.agent.openai.answers.responses import ResponsesAnswer
from bot.agent.openai.chat import chat_body
from bot.agent.openai.earlier_calls import Json
from bot.agent.openai.errors import (
    BAD_ANSWER_TEXT,
    PAGE_TEXT,
    explain,
    explain_plain_text,
    explain_refusal,
    find_refusal,
    find_wait,
    is_timeout,
    is_worth_retrying,
    may_use_stand_in,
)
from bot.agent.openai.refused_parts import REFUSAL_STATUSES
from bot.agent.openai.requests import BodyWriter, RequestWriter, WrittenRequest
from bot.agent.openai.responses import responses_body
from bot.domain.model import Busy, Entry, Part, ReducedRequest, ToolSpec
from bot.domain.named_models import Api, NamedModel
from bot.domain.text import replace_unstorable
from bot.errors import ModelCut, ModelError, ModelTooLong
from bot.telemetry.logs import logger

log = logger(__name__)

_CUT_ERRORS = (
    httpx2.HTTPError,
    httpx2.StreamError,
    aiohttp.ClientError,
    OSError,
    ValueError,  # half an event: not JSON, not UTF-8
    RecursionError,
)
_SHAPE_ERRORS = (AttributeError, LookupError, TypeError)  # the JSON does not have the shape of an answer

# one request, and its further tries
_CONNECT_SECONDS = 5.0
_WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds before each further try: half a minute of an outage
_MAX_TOTAL_WAIT_SECONDS = 45.0  # for one request; if a server asks for more, people are told
_NOTABLE_WAIT_SECONDS = 2.0  # people are told the reason for a wait of this length or more
_RETRIES_BEFORE_STAND_IN = 2  # the further tries if another model may answer instead
_MAX_TIMED_OUT_TRIES = 2  # the most tries that time out, since each takes a full timeout
_MAX_BAD_CALL_TRIES = 3  # the tries if the server does not accept a call that its own model wrote
_MAX_OMISSIONS = 24  # the most times that one request is sent again with a part left out
_MAX_SEARCHES = 4  # the most searches for a refused tool that the server does not name

# the context window, as servers report it
_WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
_WINDOW_SECONDS = 5.0

# the bytes of an answer
_LINGER_SECONDS = 0.1  # the wait for the end of a stream that the server keeps open after the answer
_DONE = ("[DONE]", '"[DONE]"')  # the data of the last event in a stream of Chat Completions
_STREAM_STARTS = (b"data", b"event", b"id", b"retry", b":")  # the beginnings of a stream of events
_OBJECT_STARTS = (b"{", b"[")
_BOM = b"\xef\xbb\xbf"  # UTF-8's byte-order mark

# texts for people
_BUSY_TEXT = "The model's server is busy. I'm trying again."
_AGAIN_TEXT = "Send “continue” to try again."
_TOO_LONG_TEXT = "The model's answer is too long to read. Ask for less at a time."


class _Interface(NamedTuple):
    """One of the two interfaces of a server."""

    path: str
    write_body: BodyWriter  # writes the fields of a request
    make_parser: Callable[[str], StreamedAnswer]  # makes a parser for an answer of the model with this name
    field: str  # the field by which an answer that is not a stream is recognised


class _Reply(Enum):
    """The server's reply to a request that was sent to find a refused tool."""

    ACCEPTED = auto()
    REFUSED = auto()
    UNCLEAR = auto()  # it failed for another reason


class _Opened(NamedTuple):
    """A stream that has begun to answer a request."""

    stream: openai.AsyncStream[ChatCompletionChunk]
    request: WrittenRequest


_INTERFACES = {
    Api.CHAT: _Interface("/chat/completions", chat_body, ChatAnswer, "choices"),
    Api.RESPONSES: _Interface("/responses", responses_body, ResponsesAnswer, "output"),
}


class OpenAIModel:
    """The implementation of `Model` for a server. The setting ``timeout`` limits each read of a stream."""

    def __init__(
        self,
        settings: NamedModel,
        *,
        max_retries: int = len(_WAITS),
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        max_silent_seconds: float = 300,
        max_answer_seconds: float = 900,
    ) -> None:
        """Take the settings of the model.

        ``max_retries``: how often a request is sent again after temporary failures; at most twice if another
        model may answer instead. ``pause``: waits for some seconds before that. ``max_silent_seconds``: the
        most without a visible word. ``max_answer_seconds``: the most for one answer.
        """
        self.name = settings.name
        self._settings = settings
        self._interface = _INTERFACES[settings.api]
        self._writer = RequestWriter(settings, self._interface.write_body)
        self._key = settings.secret.strip() or "none"  # the library demands a key
        if settings.fallback:
            max_retries = min(max_retries, _RETRIES_BEFORE_STAND_IN)
        self._waits = _WAITS[:max_retries]
        self._pause = pause
        self._clock = clock
        self._max_silent_seconds = max_silent_seconds
        self._max_answer_seconds = max_answer_seconds
        self._window: int | None = None  # the model's context window in tokens, if the server tells it
        self._asked_window = False  # the server was asked for the window
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=settings.base_url,
            max_retries=0,
            # the library's other transport; its usual one looks at all idle connections for each request
            http_client=openai.DefaultAioHttpClient(
                timeout=httpx2.Timeout(settings.timeout, connect=min(settings.timeout, _CONNECT_SECONDS))
            ),
        )

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        """Yield text and thoughts as they come, then one `Finished`. Raises ModelError and ModelCut."""
        answer = self._interface.make_parser(self.name)
        try:
            async for part in self._stream_parts(answer, transcript, tools):
                yield part
        except ModelError as error:
            log.warning("the model's server gave no answer", model=self.name, why=error.message)
            if isinstance(error, ModelCut | ModelTooLong) and not answer.has_output:
                error.window = await self._fetch_window_size()
            raise

    async def _stream_parts(
        self, answer: StreamedAnswer, transcript: Sequence[Entry], tools: Sequence[ToolSpec]
    ) -> AsyncIterator[Part]:
        """Yield the parts of one answer, which ``answer`` parses."""
        loop = asyncio.get_running_loop()
        async for step in self._open_stream(transcript, tools):
            if isinstance(step, _Opened):  # the last step
                stream = step.stream
                offers = step.request.offers
            else:
                yield step
        check = self._make_time_check(answer)
        async with stream:
            try:
                async with (
                    aclosing(_read_events(stream.response, self._interface.field, check)) as events,
                    asyncio.timeout(None) as timeout,
                ):
                    async for event in events:
                        check()
                        for part in self._read_event(event, answer):
                            yield part
                        if answer.is_full:
                            break
                        if answer.ended:  # the rest is read, too, so that the connection can be reused
                            timeout.reschedule(loop.time() + _LINGER_SECONDS)
            except EventTooLongError:
                raise ModelError(_TOO_LONG_TEXT) from None
            except _CUT_ERRORS:
                if not answer.is_usable:
                    raise ModelCut from None
            except _SHAPE_ERRORS as error:
                log.error("the model's server answered in another shape", exc_info=error)
                raise ModelError(BAD_ANSWER_TEXT) from None
        if not answer.is_usable:
            raise ModelCut
        for part in answer.flush():
            yield part
        finished = answer.make_finished()
        calls = resolve_tool_names(finished.calls, {offer.name for offer in offers.all})
        yield replace(finished, calls=tuple(map(offers.restore_call, calls)))

    def _read_event(self, event: Event, answer: StreamedAnswer) -> Sequence[Part]:
        """Return the parts of an event of an answer; none after its end. Raises ModelError for an error.

        A stray text, outside of events, is read as an error, unless the answer has a word already.
        """
        data = event.data.strip()
        if data in _DONE:
            answer.mark_done()
            return ()
        if event.is_stray:
            is_ignored = answer.has_output
        else:
            is_ignored = answer.ended
        if not data or is_ignored:
            return ()
        try:
            if event.name == "error" or not data.startswith(("{", "[", '"')):
                raise RefusedError(data)
            return answer.take(json.loads(data))
        except RefusedError as refused:
            refusal = read_refusal(refused.error, secret=self._settings.secret)
            if event.is_stray and refusal.cause is RefusalCause.UNKNOWN:
                raise explain_plain_text(refusal) from None
            raise explain_refusal(refusal, has_output=answer.has_output) from None

    async def _open_stream(
        self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]
    ) -> AsyncIterator[Busy | ReducedRequest | _Opened]:
        """Send the request until it is answered. Yield what people should know of it, and the stream last.

        A part that the server refuses is left out of the next request. After a temporary failure the same
        request is sent again. Raises ModelError if there is no further try.
        """
        began = self._clock()
        tries = 0  # how often a request was sent, without those from which a part was left out afterwards
        paused = 0.0  # the seconds waited between tries
        omissions = 0  # how often a part was left out
        searches = 0  # how often a refused tool was searched for
        request = self._writer.write(transcript, tools)
        while True:
            tries += 1
            try:
                yield _Opened(await self._post(self._make_body(request)), request)
            except openai.OpenAIError as error:
                if self._drop_refused_system_role(error):
                    request = self._writer.write(transcript, tools)
                    continue
                left_out = self._writer.learn(error, request) if omissions < _MAX_OMISSIONS else None
                if (
                    left_out is None
                    and searches < _MAX_SEARCHES
                    and self._writer.blames_unnamed_tool(error, request)
                ):
                    searches += 1
                    left_out = await self._find_refused_tool(transcript, request, error)
                if left_out is not None:
                    omissions += 1
                    tries -= 1
                    request = self._writer.write(transcript, tools)
                    yield left_out
                    continue
                wait = self._choose_wait(error, tries, paused)
                if wait is None:
                    model_error = explain(error, self._settings, self._clock() - began)
                    model_error.is_transient = is_worth_retrying(error)
                    model_error.other_model_may_answer = may_use_stand_in(error)
                    raise model_error from None
            else:
                return
            if wait >= _NOTABLE_WAIT_SECONDS:
                yield Busy(_BUSY_TEXT)
            paused += wait
            await self._pause(wait)

    def _drop_refused_system_role(self, error: openai.OpenAIError) -> bool:
        """If the server refused the system role, write later requests without it, and return True."""
        if not self._writer.takes_system or find_refusal(error).cause is not RefusalCause.NO_SYSTEM_ROLE:
            return False
        log.info("the model has no system role, so people's first message begins with it", model=self.name)
        self._writer.takes_system = False
        return True

    async def _find_refused_tool(
        self, transcript: Sequence[Entry], request: WrittenRequest, error: openai.OpenAIError
    ) -> ReducedRequest | None:
        """Leave out the one tool without which the server accepts the request, and return it.

        Returns None, and leaves out nothing, if it is not certain which tool that is. The tool is found by a
        binary search: each request offers half of the suspects, and its answer is closed as soon as it
        begins. To be certain, some request must have been accepted, and the last suspect alone refused.
        """
        suspects = [offer.spec for offer in request.offers.all]
        some_half_was_accepted = False
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            reply = await self._try_tools(transcript, half)
            if reply is _Reply.UNCLEAR:
                return None
            if reply is _Reply.ACCEPTED:
                some_half_was_accepted = True
                suspects = suspects[len(half) :]
            else:
                suspects = half
        if not some_half_was_accepted and await self._try_tools(transcript, ()) is not _Reply.ACCEPTED:
            return None
        if await self._try_tools(transcript, suspects) is not _Reply.REFUSED:
            return None
        name = self._writer.write(transcript, suspects).offers.all[0].name
        return self._writer.leave_out([name], request, error)

    async def _try_tools(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> _Reply:
        """Send a request with these tools, and close its answer as soon as it begins."""
        try:
            opened = await self._post(self._make_body(self._writer.write(transcript, tools)))
        except openai.APIStatusError as error:
            if error.status_code in REFUSAL_STATUSES:
                return _Reply.REFUSED
            return _Reply.UNCLEAR
        except (openai.OpenAIError, ModelError):
            return _Reply.UNCLEAR
        await opened.close()
        return _Reply.ACCEPTED

    def _make_body(self, request: WrittenRequest) -> Json:
        """Return a request with the fields that the settings add for this model."""
        body = {"model": self._settings.model, "stream": True, **request.body}
        if request.offers.all and self._settings.parallel_tool_calls:
            body["parallel_tool_calls"] = True
        return {**body, **self._settings.options}

    async def _post(self, body: Json) -> openai.AsyncStream[ChatCompletionChunk]:
        """Send a request, and return the stream that answers it. Raises OpenAIError and ModelError."""
        try:
            # not `chat.completions.create`: that would walk through every message and schema first
            # (13 ms against 0.6 ms for 20 tools and 60 messages)
            return await self._client.post(
                self._interface.path,
                cast_to=ChatCompletionChunk,
                body=body,
                stream=True,
                stream_cls=openai.AsyncStream[ChatCompletionChunk],
            )
        except aiohttp.ClientError:  # the server speaks no HTTP, which the library does not turn into its own
            raise ModelError(BAD_ANSWER_TEXT) from None
        except UnicodeEncodeError:  # of a lone surrogate in the history, or a letter in the key
            if not self._key.isascii():
                raise ModelError(
                    f"The API key holds letters no key can have. Please check {self._settings.key}."
                ) from None
            return await self._post(json.loads(replace_unstorable(json.dumps(body, ensure_ascii=False))))

    def _make_time_check(self, answer: StreamedAnswer) -> Callable[[], None]:
        """Return a check to call for each piece of an answer. The check raises ModelError after too long."""
        began = self._clock()

        def check() -> None:
            seconds = self._clock() - began
            if seconds > self._max_answer_seconds:
                minutes = f"{self._max_answer_seconds / 60:.0f} min"
                raise ModelError(f"The model's answer did not end within {minutes}. {_AGAIN_TEXT}")
            if seconds > self._max_silent_seconds and not answer.has_output:
                minutes = f"{self._max_silent_seconds / 60:.0f} min"
                raise ModelError(f"The model said nothing within {minutes}. {_AGAIN_TEXT}")

        return check

    async def _fetch_window_size(self) -> int | None:
        """Return the context window in tokens that the server reports, or None. Asks once."""
        if not self._asked_window:
            self._asked_window = True
            try:
                async with asyncio.timeout(_WINDOW_SECONDS):
                    listing = await self._client.get("/models", cast_to=dict[str, Any])
                    self._window = _find_window(listing, self._settings.model)
            except (openai.OpenAIError, aiohttp.ClientError, TimeoutError, ValueError):
                return None
        return self._window

    def _choose_wait(self, error: openai.OpenAIError, tries: int, paused: float) -> float | None:
        """Return the seconds to wait before the next try; None when people should be told instead.

        ``tries``: how often the request was sent. ``paused``: the seconds that were waited before.
        """
        if tries > len(self._waits) or not is_worth_retrying(error):
            return None
        if tries >= _MAX_TIMED_OUT_TRIES and is_timeout(error):
            return None
        if tries >= _MAX_BAD_CALL_TRIES and find_refusal(error).cause is RefusalCause.BAD_CALL:
            return None
        wait = find_wait(error)
        if wait is None:
            wait = self._waits[tries - 1]
        if paused + wait > _MAX_TOTAL_WAIT_SECONDS:
            return None
        return wait

    async def close(self) -> None:
        await self._client.close()


async def _read_events(
    response: httpx2.Response, field: str, check: Callable[[], None]
) -> AsyncGenerator[Event, None]:
    """Yield the events of an answer, which is a stream, one JSON object, or one JSON object on each line.

    The content type says little, so the first bytes decide. Raises ModelError for a web page, and for an
    object that is neither an answer, which has a ``field``, nor an error.
    """
    chunks = _check_chunks(response, check)
    beginning = b""
    async for chunk in chunks:
        beginning += chunk
        if beginning.removeprefix(_BOM).strip():
            break
    first = beginning.removeprefix(_BOM).lstrip()
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_page = content_type == "text/html" and not first.startswith((*_STREAM_STARTS, *_OBJECT_STARTS))
    if first.startswith(b"<") or is_page:
        raise ModelError(PAGE_TEXT)
    if first.startswith(_OBJECT_STARTS):
        for event in _split_objects(await _read_all(beginning, chunks), field):
            yield event
    else:
        async with aclosing(split_events(_chain_chunks(beginning, chunks))) as events:
            async for event in events:
                yield event


async def _chain_chunks(beginning: bytes, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield beginning
    async for chunk in chunks:
        yield chunk


async def _read_all(beginning: bytes, chunks: AsyncGenerator[bytes, None]) -> str:
    content = bytearray(beginning)
    async for chunk in chunks:
        content += chunk
        if len(content) > MAX_OBJECT_BYTES:
            raise ModelError(_TOO_LONG_TEXT)
    return content.decode("utf-8-sig").strip()


def _split_objects(content: str, field: str) -> Iterator[Event]:
    """Yield one JSON object as an event, or several objects on lines of their own as an event each.

    A single object must be an answer or an error.
    """
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        lines = [line for line in content.splitlines() if line.strip()]
        if len(lines) > 1:
            yield from map(Event, lines)
            return
        raise ModelError(BAD_ANSWER_TEXT) from None
    inner = answer.get("data") if isinstance(answer, dict) else None
    is_answer = isinstance(answer, dict) and (answer.get(field) or isinstance(inner, dict))
    if not is_answer and find_error(answer) is None:
        raise ModelError(BAD_ANSWER_TEXT)
    yield Event(content)
    yield Event("[DONE]")  # so that the parser takes the answer as complete


async def _check_chunks(response: httpx2.Response, check: Callable[[], None]) -> AsyncGenerator[bytes, None]:
    async for part in response.aiter_bytes():
        check()
        yield part


def _find_window(listing: Any, model: str) -> int | None:
    """Find the window of a model in an answer of ``GET /models``, by the fields that servers use for it."""
    entries = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(entries, list):
        return None
    for entry in entries:
        if isinstance(entry, dict) and entry.get("id") == model:
            meta = entry.get("meta")  # llama.cpp has the fields in ``meta``
            fields = entry | meta if isinstance(meta, dict) else entry
            sizes = [fields.get(name) for name in _WINDOW_FIELDS]
            stated_sizes = [size for size in sizes if isinstance(size, int) and size > 0]
            return stated_sizes[0] if stated_sizes else None
    return None
