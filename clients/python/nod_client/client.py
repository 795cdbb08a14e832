"""The two clients, `Nod` and `AsyncNod`, and the functions `ask` and `ask_async`, which need no client.

A client puts two sorts of requests to people: a question in words (`Nod.ask`), and the use of a tool of your
own with its input (`Nod.permit`). It also calls Nod's own tools (`Nod.call_tool`).

Each method runs a generator of ``exchange.py``, which decides what to send and when to pause. The clients
differ only in how they send and pause: in a thread, or in an event loop.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

import httpx

from nod_client.errors import NodError, approved
from nod_client.exchange import Answer, Call, Exchange, Reading, Reply, Steps
from nod_client.request import Json, Request
from nod_client.tool_call import ToolCall

PATIENCE = 300.0  # seconds that Nod may be unreachable, such as during an upgrade
HERE = "http://127.0.0.1:8080"  # without NOD_URL

Scalar = str | int | float | bool | None
T = TypeVar("T")
H = TypeVar("H", httpx.Client, httpx.AsyncClient)


class Question(TypedDict, total=False):
    """The options of a question.

    ``details``: a longer text. ``fields``: single facts, shown line by line. ``ttl``: seconds after which the
    question expires, if the rules do not say sooner. ``key``: the same key is the same question, also after
    your script was started again. ``callback_url``: Nod posts the end of the question there, signed.
    """

    details: str
    fields: Mapping[str, Scalar]
    ttl: int
    key: str
    callback_url: str


class Permission(TypedDict, total=False):
    """The options of a tool's use. ``summary``: the heading that people see. Others as in `Question`."""

    summary: str
    ttl: int
    key: str


@dataclass(frozen=True)
class _Post:
    """The path, the body and the idempotency key of a new request."""

    path: str
    body: Json
    key: str | None


def _post_question(summary: str, options: Question) -> _Post:
    body: Json = {"summary": summary, "ttl_seconds": options.get("ttl")}
    body |= {name: value for name, value in options.items() if name not in {"ttl", "key"}}
    return _Post("/api/approvals", body, options.get("key"))


def _post_permission(tool_name: str, tool_input: Mapping[str, Any], options: Permission) -> _Post:
    body: Json = {"tool_name": tool_name, "input": dict(tool_input)}
    body |= {"summary": options.get("summary"), "ttl_seconds": options.get("ttl")}
    return _Post("/api/permissions", body, options.get("key"))


class _Settings:
    """The address, the headers and the exchange of a client, by its arguments and the environment.

    ``url`` and ``token`` are by default NOD_URL and NOD_TOKEN.
    """

    def __init__(
        self, url: str | None, token: str | None, patience: float, clock: Callable[[], float]
    ) -> None:
        self.url = (url or os.environ.get("NOD_URL") or HERE).strip().rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise NodError(f"NOD_URL must begin with http:// or https://, not {self.url!r}.")
        if token is None:
            token = os.environ.get("NOD_TOKEN", "")
        token = token.strip()
        if not (token.isascii() and token.isprintable()):
            raise NodError("NOD_TOKEN holds a character that no token has. Copy it again.")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.exchange = Exchange(self.url, patience, clock)

    def open_http(self, kind: Callable[..., H]) -> H:
        """Return httpx's client. Raises NodError for an address, a proxy or certificates it can't use."""
        try:
            if not httpx.URL(self.url).host:
                raise ValueError("it names no host")
            return kind(base_url=self.url, headers=self.headers)
        except (httpx.InvalidURL, ImportError, OSError, ValueError) as error:
            raise NodError(
                f"Nod can't be asked at {self.url!r}: {error}. Check NOD_URL, the proxy and SSL_CERT_FILE."
            ) from None


def _make_httpx_arguments(call: Call) -> Json:
    return {
        "headers": call.headers,
        "params": call.params,
        "timeout": call.timeout,
        "content": call.content,
    }


class Nod:
    """A client that asks a running Nod, and waits in its thread.

    Every method may raise `CouldNotAsk`. ``patience``: seconds that Nod may be unreachable before
    `Unreachable` is raised. ``clock`` and ``sleep`` are for tests. Close the client, or use it in a ``with``
    statement. Threads may share it.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        settings = _Settings(url, token, patience, clock)
        self._exchange, self._sleep = settings.exchange, sleep
        self._http = settings.open_http(httpx.Client)

    def ask(self, summary: str, *, wait: float | None = None, **more: Unpack[Question]) -> Request:
        """Ask a question, and return the approved request. Raises the `NotApproved` of any other end.

        ``wait``: the seconds to wait for people; None: until the question ends. When they are over, a
        question without a ``key`` is withdrawn (`Cancelled`), and a question with a key stays open
        (`StillWaiting`).
        """
        post = _post_question(summary, more)
        return approved(self._run(self._exchange.ask(post.path, post.body, post.key, wait)))

    def permit(
        self,
        tool_name: str,
        given: Mapping[str, Any],
        *,
        wait: float | None = None,
        **more: Unpack[Permission],
    ) -> Request:
        """Ask if a tool may be used with ``given`` as its input (JSON). Return the request, whatever its end.

        Use the tool only if ``end`` is APPROVED, and with the ``input`` of the request, which people may have
        edited. ``wait`` as in `ask`.
        """
        post = _post_permission(tool_name, given, more)
        return self._run(self._exchange.ask(post.path, post.body, post.key, wait))

    def open(self, summary: str, **more: Unpack[Question]) -> Request:
        """Ask a question, and return the request without waiting.

        With the ``key`` of an earlier question, that question's request is returned.
        """
        post = _post_question(summary, more)
        return self._run(self._exchange.open_request(post.path, post.body, post.key))

    def look(self, request_id: str, wait: float = 0) -> Request:
        """Return a request as it is now, or as soon as it ends within ``wait`` seconds."""
        now = self._run(self._exchange.look_up(request_id))
        return self._run(self._exchange.await_end(now, wait))

    def cancel(self, request_id: str) -> Request:
        """Withdraw a request, and return it. A decision that came first stays as it is."""
        return self._run(self._exchange.withdraw(request_id))

    def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        wait: float | None = None,
        key: str | None = None,
        reason: str = "",
    ) -> ToolCall:
        """Call one of Nod's tools with the token of an agent, and return the call, whatever its end.

        ``wait``: the seconds to wait for people and the tool; None: until the call ends. ``key``: the same
        key is the same call. ``reason``: why you want it; people see it quoted.
        """
        return self._run(self._exchange.call_tool(tool, arguments or {}, key, reason, wait))

    def look_call(self, call_id: str, wait: float = 0) -> ToolCall:
        """Return a call as it is now, or as soon as it ends within ``wait`` seconds."""
        now = self._run(self._exchange.look_up_call(call_id))
        return self._run(self._exchange.await_call_end(now, wait))

    def cancel_call(self, call_id: str) -> ToolCall:
        """Withdraw a call, and return it. A decision that came first stays as it is."""
        return self._run(self._exchange.withdraw_call(call_id))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        """Run an exchange: send each call that it yields, pause when it yields seconds, return its result."""
        answer: Answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                ended: T = done.value
                return ended
            if isinstance(step, Call):
                try:
                    answer = self._fetch(step)
                except httpx.RequestError as error:
                    answer = error
            else:
                self._sleep(step)
                answer = None

    def _fetch(self, call: Call) -> Reply:
        reading = Reading(call.timeout, self._exchange.clock)
        with self._http.stream(call.method, call.path, **_make_httpx_arguments(call)) as response:
            for chunk in response.iter_bytes():
                reading.add(chunk)
            return reading.finish(response)


class AsyncNod:
    """The same client as `Nod` for asyncio: its methods are awaited."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        settings = _Settings(url, token, patience, clock)
        self._exchange, self._sleep = settings.exchange, sleep
        self._http = settings.open_http(httpx.AsyncClient)

    async def ask(self, summary: str, *, wait: float | None = None, **more: Unpack[Question]) -> Request:
        """As `Nod.ask`."""
        post = _post_question(summary, more)
        return approved(await self._run(self._exchange.ask(post.path, post.body, post.key, wait)))

    async def permit(
        self,
        tool_name: str,
        given: Mapping[str, Any],
        *,
        wait: float | None = None,
        **more: Unpack[Permission],
    ) -> Request:
        """As `Nod.permit`."""
        post = _post_permission(tool_name, given, more)
        return await self._run(self._exchange.ask(post.path, post.body, post.key, wait))

    async def open(self, summary: str, **more: Unpack[Question]) -> Request:
        """As `Nod.open`."""
        post = _post_question(summary, more)
        return await self._run(self._exchange.open_request(post.path, post.body, post.key))

    async def look(self, request_id: str, wait: float = 0) -> Request:
        """As `Nod.look`."""
        now = await self._run(self._exchange.look_up(request_id))
        return await self._run(self._exchange.await_end(now, wait))

    async def cancel(self, request_id: str) -> Request:
        """As `Nod.cancel`."""
        return await self._run(self._exchange.withdraw(request_id))

    async def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        wait: float | None = None,
        key: str | None = None,
        reason: str = "",
    ) -> ToolCall:
        """As `Nod.call_tool`."""
        return await self._run(self._exchange.call_tool(tool, arguments or {}, key, reason, wait))

    async def look_call(self, call_id: str, wait: float = 0) -> ToolCall:
        """As `Nod.look_call`."""
        now = await self._run(self._exchange.look_up_call(call_id))
        return await self._run(self._exchange.await_call_end(now, wait))

    async def cancel_call(self, call_id: str) -> ToolCall:
        """As `Nod.cancel_call`."""
        return await self._run(self._exchange.withdraw_call(call_id))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        """Run an exchange, as `Nod._run`."""
        answer: Answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                ended: T = done.value
                return ended
            if isinstance(step, Call):
                try:
                    answer = await self._fetch(step)
                except httpx.RequestError as error:
                    answer = error
            else:
                await self._sleep(step)
                answer = None

    async def _fetch(self, call: Call) -> Reply:
        reading = Reading(call.timeout, self._exchange.clock)
        async with self._http.stream(call.method, call.path, **_make_httpx_arguments(call)) as response:
            async for chunk in response.aiter_bytes():
                reading.add(chunk)
            return reading.finish(response)


def ask(summary: str, *, wait: float | None = None, **more: Unpack[Question]) -> Request:
    """Ask a question as `Nod.ask` does, with a client for the Nod that NOD_URL and NOD_TOKEN name."""
    with Nod() as nod:
        return nod.ask(summary, wait=wait, **more)


async def ask_async(summary: str, *, wait: float | None = None, **more: Unpack[Question]) -> Request:
    """Ask a question as `ask` does, for asyncio."""
    async with AsyncNod() as nod:
        return await nod.ask(summary, wait=wait, **more)
