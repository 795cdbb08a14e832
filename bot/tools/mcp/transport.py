"""The transport to an MCP server: a child process or an HTTP address, opened and closed by its owner.

A process speaks lines of JSON-RPC over its standard input and output, as with the SDK's ``stdio_client``, but
what comes is bounded before it is parsed (``bot/tools/intake.py``). The end is the protocol's: close its
input, wait, then end the process and all it started.
https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#shutdown
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Self

import anyio
import httpx2
from anyio.abc import Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp.types.version import LATEST_MODERN_VERSION

from bot.domain.connections import TokenSource
from bot.tools.intake import Lines, TooLarge, bound_message, bound_response
from bot.tools.mcp.address import (
    BROKEN,
    FORGOTTEN,
    SESSION_LOST,
    AddressTransport,
    doubts_session,
    explain_stream,
    refuses_session,
)
from bot.tools.mcp.answers import fit_answer, fit_message
from bot.tools.mcp.config import ServerConfig, Stdio
from bot.tools.mcp.line import ServerLine
from bot.tools.mcp.signin import Bearer

_CONNECT_SECONDS = 30.0
_SILENCE_SECONDS = 300.0  # a server may hold a stream open for long; calls have their own, shorter limit
_LONGEST_LINE = 2000
_GRACE_SECONDS = 2.0  # for a process to end by itself
_FLUSH_SECONDS = 0.5  # for what is on its way to it
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")')
_LOOK_SECONDS = 0.01
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)

Read = SessionMessage | Exception
Heard = Callable[[str], None]


@asynccontextmanager
async def open_streams(
    config: ServerConfig, line: ServerLine, heard: Heard, keys: TokenSource | None
) -> AsyncIterator[tuple["Watched", Any]]:
    """Yield the read and the write stream.

    ``line`` is told when it is lost; ``heard`` gets the server's stderr; ``keys`` have the sign-in there.
    Raises OSError when the command cannot be started.
    """
    async with AsyncExitStack() as stack:
        launch = config.launch
        address = None
        if isinstance(launch, Stdio):
            read, write = await stack.enter_async_context(_start_server(launch, heard))
        else:
            timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS + config.timeout)
            inner = httpx2.AsyncClient(timeout=timeout, event_hooks={"response": [bound_response]})
            address = AddressTransport(inner, line.break_off)
            headers = {"Accept-Encoding": "identity", **launch.headers}
            client = httpx2.AsyncClient(
                headers=headers, auth=Bearer(keys, launch.url), timeout=timeout, transport=address
            )
            await stack.enter_async_context(client)
            lines = streamable_http_client(launch.url, http_client=client)
            read, write = await stack.enter_async_context(lines)
        yield Watched(read, line, address), write


class Watched:
    """A read stream (the SDK's ``ReadStream``) that tells when nothing more will come.

    The SDK's client does not say when a line that is not in use goes dead. Answers are fitted to MCP's form
    (``bot/tools/mcp/answers.py``).
    """

    def __init__(self, stream: Any, line: ServerLine, address: AddressTransport | None) -> None:
        self._stream = stream
        self._line = line
        self._address = address
        self._version = LATEST_MODERN_VERSION  # until the handshake of an older one names it

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        try:
            received = await self._stream.receive()
        except _GONE:
            self._line.end()
            raise
        message = getattr(received, "message", None)
        if isinstance(message, types.JSONRPCError) and self._has_session and doubts_session(message.error):
            is_certain = refuses_session(message.error)
            self._line.has_answered = self._line.has_answered or not is_certain
            self._line.break_off(SESSION_LOST)
            if is_certain:
                message.error = types.ErrorData(code=FORGOTTEN, message=SESSION_LOST)
        if isinstance(message, types.JSONRPCError) and self._address is not None:
            message.error = explain_stream(message.error) or message.error
        if isinstance(message, types.JSONRPCResponse):
            self._version = str(message.result.get("protocolVersion", self._version))
            message.result = fit_answer(message.result, self._version)
        return received

    @property
    def _has_session(self) -> bool:
        return self._address is not None and self._address.has_session

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def _start_server(launch: Stdio, heard: Heard) -> AsyncIterator[tuple[Any, Any]]:
    """Start it; the read and the write stream. Raises OSError when it cannot be started."""
    with anyio.CancelScope(shield=True):  # a start cancelled half way leaves a process that no one waits for
        process = await anyio.open_process(
            [launch.command, *launch.args],
            env=get_default_environment() | dict(launch.env),
            cwd=launch.cwd,
            start_new_session=True,
        )
    # from here to the task group nothing is awaited, or a cancelled start would leave the process behind
    to_us, read = anyio.create_memory_object_stream[Read](0)
    write, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    flushed = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, process, to_us)
        tasks.start_soon(_overhear, process, heard)
        tasks.start_soon(_talk, process, from_us, to_us, flushed)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                read.close()
                write.close()
                with anyio.move_on_after(_FLUSH_SECONDS):
                    await flushed.wait()
                await _end(process)
            tasks.cancel_scope.cancel()


async def _listen(process: Process, to_us: MemoryObjectSendStream[Read]) -> None:
    """Hand on each message. What comes after one beyond the bounds is not read: the server is taken for gone.

    Once no one listens its output is still taken, or a full pipe would keep it from ending.
    """
    assert process.stdout is not None  # noqa: S101 - it was started with pipes
    lines = Lines()
    with suppress(*_GONE):
        async with to_us:
            try:
                async for chunk in process.stdout:
                    for line in lines.cut(chunk):
                        await to_us.send(_message(await bound_message(line)))
            except TooLarge as error:
                told = _refusal(error)
                if told:
                    await to_us.send(told)
    with suppress(*_GONE):
        async for _ in process.stdout:
            pass


async def _overhear(process: Process, heard: Heard) -> None:
    """Hand on each line of its stderr, without control characters."""
    assert process.stderr is not None  # noqa: S101 - it was started with pipes
    rest = b""
    with suppress(*_GONE):
        async for chunk in process.stderr:
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[-_LONGEST_LINE:]
            for line in lines:
                _tell(line, heard)
    _tell(rest, heard)


def _tell(line: bytes, heard: Heard) -> None:
    text = "".join(filter(str.isprintable, line.decode(errors="replace"))).strip()
    if text:
        heard(text[:_LONGEST_LINE])


def _message(line: bytes) -> Read:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        fitted = fit_message(line)
        if fitted is None:
            return error
        return SessionMessage(fitted)


def _refusal(error: TooLarge) -> SessionMessage | None:
    """Return the answer to the question that the message says it answers.

    None where it does not begin with that.
    """
    found = _ID.search(error.head)
    if found is None:
        return None
    data = types.ErrorData(code=BROKEN, message=str(error))
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=json.loads(found[1]), error=data))


async def _talk(
    process: Process,
    from_us: MemoryObjectReceiveStream[SessionMessage],
    to_us: MemoryObjectSendStream[Read],
    flushed: anyio.Event,
) -> None:
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    try:
        async with from_us:
            async for each in from_us:
                line = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(line.encode() + b"\n")
    except _GONE:
        await to_us.aclose()  # who waits for an answer is told that none will come
    finally:
        flushed.set()


async def _end(process: Process) -> None:
    """End a process. Every wait in here is bounded."""
    with suppress(*_GONE):
        await process.stdin.aclose()  # type: ignore[union-attr]
    if not await _has_ended(process):
        await terminate_posix_process_tree(process, _GRACE_SECONDS)
        await _has_ended(process)
    with suppress(*_GONE):
        await process.stdout.aclose()  # type: ignore[union-attr]


async def _has_ended(process: Process) -> bool:
    """Wait for the process to end within the grace, and tell if it did. Its pipes may stay open."""
    with anyio.move_on_after(_GRACE_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110 - `wait` would also wait for the pipes
            await anyio.sleep(_LOOK_SECONDS)
    return process.returncode is not None
