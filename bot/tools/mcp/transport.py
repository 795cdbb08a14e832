"""The transport to an MCP server: a child process or an HTTP address, opened and closed by its owner.

`open_streams` yields the two streams that an SDK client reads from and writes to. To an address, the SDK's
own HTTP client speaks over `AddressTransport`. A process speaks lines of JSON-RPC over its standard input and
output, as with the SDK's ``stdio_client``. But here the size of each message is checked before it is parsed
(``bot/tools/response_bounds.py``). The process is ended as the protocol says: Nod closes its input, waits,
then ends it and all processes that it started.
https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#shutdown

What the server sends passes through a `WatchedStream`, which fits answers to MCP's form and marks the
connection (``line.py``) as lost or ended.
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
from bot.tools.mcp.address import (
    NO_ANSWER_CODE,
    SESSION_LOST_TEXT,
    SESSION_REFUSED_CODE,
    AddressTransport,
    explain_stream,
    is_about_mcp_session,
    may_be_about_mcp_session,
)
from bot.tools.mcp.answers import fit_answer, fit_message
from bot.tools.mcp.config import ServerConfig, Stdio
from bot.tools.mcp.line import ServerLine
from bot.tools.mcp.signin import Bearer
from bot.tools.response_bounds import Lines, TooLarge, bound_message, bound_response

_CONNECT_SECONDS = 30.0
_SILENCE_SECONDS = 300.0  # how long a stream may be silent, in addition to the time limit of a call
_MAX_STDERR_CHARS = 2000
_EXIT_SECONDS = 2.0  # the time for a process to exit by itself
_FLUSH_SECONDS = 0.5  # the time to write the last messages to the process
_ID_PATTERN = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")')  # the id of a request: "id": 7
_POLL_SECONDS = 0.01
_CLOSED_ERRORS = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)

ReadItem = SessionMessage | Exception
"""A message that the SDK's client reads, or the reason why a line of text is no message."""
OnStderrLine = Callable[[str], None]
"""Gets each line that the server's process writes to its standard error."""


@asynccontextmanager
async def open_streams(
    config: ServerConfig, connection: ServerLine, on_stderr: OnStderrLine, tokens: TokenSource | None
) -> AsyncIterator[tuple["WatchedStream", Any]]:
    """Yield the read and the write stream of a connection.

    ``connection`` is marked as lost when it breaks. ``tokens`` gives the tokens of a sign-in; None if people
    don't sign in there. Raises OSError if the command cannot be started.
    """
    async with AsyncExitStack() as stack:
        transport = config.transport
        address = None
        if isinstance(transport, Stdio):
            read, write = await stack.enter_async_context(_start_server(transport, on_stderr))
        else:
            timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS + config.timeout)
            # the outer client adds headers and the token, the inner one sends
            inner = httpx2.AsyncClient(timeout=timeout, event_hooks={"response": [bound_response]})
            address = AddressTransport(inner, connection.lose_if_up)
            headers = {"Accept-Encoding": "identity", **transport.headers}
            outer = httpx2.AsyncClient(
                headers=headers, auth=Bearer(tokens, transport.url), timeout=timeout, transport=address
            )
            await stack.enter_async_context(outer)
            streams = streamable_http_client(transport.url, http_client=outer)
            read, write = await stack.enter_async_context(streams)
        yield WatchedStream(read, connection, address), write


class WatchedStream:
    """A read stream (the SDK's ``ReadStream``) that marks its connection when it closes or loses its session.

    The SDK's client does not report that while no call is in progress. Answers are fitted to MCP's form on
    the way (``bot/tools/mcp/answers.py``).
    """

    def __init__(self, stream: Any, connection: ServerLine, address: AddressTransport | None) -> None:
        """``address``: the HTTP transport below; None for a process."""
        self._stream = stream
        self._connection = connection
        self._address = address
        self._protocol_version = LATEST_MODERN_VERSION  # until the handshake names an older one

    @property
    def last_context(self) -> Any:
        """The context variables of the last message's sender, which the SDK's client looks for; or None."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        try:
            received = await self._stream.receive()
        except _CLOSED_ERRORS:
            self._connection.end()
            raise
        message = getattr(received, "message", None)
        if isinstance(message, types.JSONRPCError) and self._address is not None:
            # only a guess from the error's words; `is_about_mcp_session` is sure
            if self._address.has_session and may_be_about_mcp_session(message.error):
                self._lose_session(message)
            message.error = explain_stream(message.error) or message.error
        if isinstance(message, types.JSONRPCResponse):
            version = message.result.get("protocolVersion", self._protocol_version)
            self._protocol_version = str(version)
            message.result = fit_answer(message.result, self._protocol_version)
        return received

    def _lose_session(self, message: types.JSONRPCError) -> None:
        """Mark the connection as lost, so that the session is renewed.

        If the server surely refused the session, the error gets the code `SESSION_REFUSED_CODE`: the call did
        nothing, and can be made again.
        """
        if is_about_mcp_session(message.error):
            message.error = types.ErrorData(code=SESSION_REFUSED_CODE, message=SESSION_LOST_TEXT)
        else:
            # `Server` renews the session without a pause if the connection has answered a request
            self._connection.has_answered = True
        self._connection.lose_if_up(SESSION_LOST_TEXT)

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
async def _start_server(launch: Stdio, on_stderr: OnStderrLine) -> AsyncIterator[tuple[Any, Any]]:
    """Start a process, and yield its read and write streams. Raises OSError if it cannot be started."""
    with anyio.CancelScope(shield=True):  # a cancelled start would leave a process that no one waits for
        process = await anyio.open_process(
            [launch.command, *launch.args],
            env=get_default_environment() | dict(launch.env),
            cwd=launch.cwd,
            start_new_session=True,
        )
    # nothing is awaited before the task group, or a cancelled start would leave the process behind
    read_sender, read = anyio.create_memory_object_stream[ReadItem](0)
    write, write_receiver = anyio.create_memory_object_stream[SessionMessage](0)
    flushed = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_stdout, process, read_sender)
        tasks.start_soon(_read_stderr, process, on_stderr)
        tasks.start_soon(_write_stdin, process, write_receiver, read_sender, flushed)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                read.close()
                write.close()
                with anyio.move_on_after(_FLUSH_SECONDS):
                    await flushed.wait()
                await _end_process(process)
            tasks.cancel_scope.cancel()


async def _read_stdout(process: Process, read_sender: MemoryObjectSendStream[ReadItem]) -> None:
    """Pass on each message. A message that is too large ends the connection.

    The output is read to its end even then, since a full pipe would keep the process from exiting.
    """
    assert process.stdout is not None  # noqa: S101 - it was started with pipes
    lines = Lines()
    with suppress(*_CLOSED_ERRORS):
        async with read_sender:
            try:
                async for chunk in process.stdout:
                    for line in lines.split(chunk):
                        await read_sender.send(_parse_message(await bound_message(line)))
            except TooLarge as error:
                too_large_error = _make_too_large_error(error)
                if too_large_error:
                    await read_sender.send(too_large_error)
    with suppress(*_CLOSED_ERRORS):
        async for _ in process.stdout:
            pass


async def _read_stderr(process: Process, on_stderr: OnStderrLine) -> None:
    """Pass on each line of a process's stderr, without control characters."""
    assert process.stderr is not None  # noqa: S101 - it was started with pipes
    incomplete = b""
    with suppress(*_CLOSED_ERRORS):
        async for chunk in process.stderr:
            *lines, incomplete = (incomplete + chunk).split(b"\n")
            incomplete = incomplete[-_MAX_STDERR_CHARS:]
            for line in lines:
                _report_line(line, on_stderr)
    _report_line(incomplete, on_stderr)


def _report_line(line: bytes, on_stderr: OnStderrLine) -> None:
    text = "".join(filter(str.isprintable, line.decode(errors="replace"))).strip()
    if text:
        on_stderr(text[:_MAX_STDERR_CHARS])


def _parse_message(line: bytes) -> ReadItem:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        fitted = fit_message(line)
        if fitted is None:
            return error
        return SessionMessage(fitted)


def _make_too_large_error(error: TooLarge) -> SessionMessage | None:
    """Return an error in place of an answer that is too large.

    None if the beginning of the message does not name the request that it answers.
    """
    match = _ID_PATTERN.search(error.head)
    if match is None:
        return None
    data = types.ErrorData(code=NO_ANSWER_CODE, message=str(error))
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=json.loads(match[1]), error=data))


async def _write_stdin(
    process: Process,
    write_receiver: MemoryObjectReceiveStream[SessionMessage],
    read_sender: MemoryObjectSendStream[ReadItem],
    flushed: anyio.Event,
) -> None:
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    try:
        async with write_receiver:
            async for message in write_receiver:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(line.encode() + b"\n")
    except _CLOSED_ERRORS:
        await read_sender.aclose()  # calls that wait for an answer fail
    finally:
        flushed.set()


async def _end_process(process: Process) -> None:
    """End a process. Every wait in here is bounded."""
    with suppress(*_CLOSED_ERRORS):
        await process.stdin.aclose()  # type: ignore[union-attr]
    if not await _has_ended(process):
        await terminate_posix_process_tree(process, _EXIT_SECONDS)
        await _has_ended(process)
    with suppress(*_CLOSED_ERRORS):
        await process.stdout.aclose()  # type: ignore[union-attr]


async def _has_ended(process: Process) -> bool:
    """Wait `_EXIT_SECONDS` for the process to exit, and tell if it did. Its pipes may stay open."""
    with anyio.move_on_after(_EXIT_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110 - `wait` would also wait for the pipes
            await anyio.sleep(_POLL_SECONDS)
    return process.returncode is not None
