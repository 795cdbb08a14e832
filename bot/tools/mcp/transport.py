"""The line to one MCP server: a process of ours or an HTTP address, opened and closed by the server's owner.

The SDK's client does not say when a line that is not in use goes dead; `opened` sets an event for that.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Self, TextIO

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from bot.tools.mcp.config import ServerConfig, Stdio
from bot.tools.mcp.process import started
from bot.tools.mcp.signin import Bearer, Keys
from bot.tools.net.intake import bound

_CONNECT_SECONDS = 30.0
_SILENCE_SECONDS = 300.0  # a server may hold a stream open for long; calls have their own, shorter limit
_LONGEST_LINE = 2000
_GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)


@asynccontextmanager
async def opened(
    config: ServerConfig, ended: asyncio.Event, heard: Callable[[str], None], keys: Keys | None
) -> AsyncIterator[tuple["Watched", Any]]:
    """The read and the write stream.

    ``ended`` is set when the server is gone; ``heard`` gets its stderr; ``keys`` have the sign-in there.
    Raises OSError when the command cannot be started.
    """
    async with AsyncExitStack() as stack:
        launch = config.launch
        if isinstance(launch, Stdio):
            errlog = await stack.enter_async_context(_stderr(heard))
            read, write = await stack.enter_async_context(started(launch, errlog))
        else:
            limits = httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS + config.timeout)
            client = await stack.enter_async_context(
                httpx2.AsyncClient(
                    headers={"Accept-Encoding": "identity", **launch.headers},
                    auth=Bearer(keys),
                    timeout=limits,
                    event_hooks={"response": [bound]},
                )
            )
            read, write = await stack.enter_async_context(
                streamable_http_client(launch.url, http_client=client)
            )
        yield Watched(read, ended), write


class Watched:
    """A read stream (the SDK's ``ReadStream``) that tells when nothing more will come."""

    def __init__(self, stream: Any, ended: asyncio.Event) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        with self._watching():
            return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        with self._watching():
            return await self._stream.__anext__()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        done: bool | None = await self._stream.__aexit__(kind, error, traceback)
        return done

    @contextmanager
    def _watching(self) -> Iterator[None]:
        try:
            yield
        except (StopAsyncIteration, *_GONE):
            self._ended.set()
            raise


class _Lines(asyncio.Protocol):
    """Cuts what comes into lines of text, without control characters."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        self._heard = heard
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_LONGEST_LINE:]
        for line in lines:
            self._tell(line)

    def connection_lost(self, _: Exception | None) -> None:
        self._tell(self._rest)

    def _tell(self, line: bytes) -> None:
        text = "".join(filter(str.isprintable, line.decode(errors="replace"))).strip()
        if text:
            self._heard(text[:_LONGEST_LINE])


@asynccontextmanager
async def _stderr(heard: Callable[[str], None]) -> AsyncIterator[TextIO]:
    """A file for a process to write its stderr to."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as errlog:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Lines(heard), os.fdopen(reading, "rb", 0)
        )
        try:
            yield errlog
        finally:
            transport.close()
