"""Bounds on the responses of MCP servers and sign-in providers, applied before anything parses them.

A message is parsed in the event loop, and that takes as long as it has values; so there are bounds on its
length and its values, and one beyond them is refused. What is nested too deeply is replaced by a few words,
since the SDK's parser would refuse the full message for it (jiter: 200 levels), and with it each harmless
tool of a list. A tool whose schema had such a part is then left out alone: words are no schema. It refuses a
message for half a surrogate pair, too, so that is replaced as well.
"""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2

MOST_BYTES = 8 << 20
MOST_VALUES = 100_000
DEEPEST = 100
_PARTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)  # linear in any text
_HIGH, _LOW = rb"u[dD][89abAB][0-9a-fA-F]{2}", rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rb"\\(?:" + _HIGH + rb"\\" + _LOW + rb"|(" + _HIGH + rb"|" + _LOW + rb")|.)", re.DOTALL)
_REPLACEMENT = rb"\ufffd"
_HEAD = 200
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 47}  # the values of zlib's ``wbits`` for these formats
_MAX_PIECE_BYTES = 64 << 10  # the bytes that are unpacked at a time
_TOO_DEEP = b'"nested too deeply"'


class TooLarge(httpx2.StreamError):
    """A message beyond the bounds; ``head`` is how it begins."""

    def __init__(self, message: bytes | bytearray = b"") -> None:
        self.head = bytes(message[:_HEAD])
        super().__init__(
            f"it sent a message larger than {MOST_BYTES >> 20} MiB or with over {MOST_VALUES:,} values"
        )


class UnknownPacking(TooLarge):
    """A body that can't be unpacked."""

    def __init__(self, words: str) -> None:
        self.head = b""
        httpx2.StreamError.__init__(self, words)


async def bound_message(message: bytes) -> bytes:
    """Return the message without too deeply nested values and lone surrogates. Raises TooLarge."""
    if len(message) > MOST_BYTES:
        raise TooLarge(message)
    if b"\\u" in message:
        message = _ESCAPE.sub(_pair_surrogates, message)
    opening = message.count(b"[") + message.count(b"{")
    if opening <= DEEPEST and opening + message.count(b",") <= MOST_VALUES:
        return message
    return await asyncio.to_thread(_shallow, message)


def _pair_surrogates(escape: re.Match[bytes]) -> bytes:
    if escape[1]:
        return _REPLACEMENT
    return escape[0]


def _shallow(message: bytes) -> bytes:
    kept: list[bytes] = []
    begin = depth = values = 0
    for part in _PARTS.finditer(message):
        sign = part[0][:1]
        if sign == b'"':
            continue
        if sign in b"]}":
            if depth == DEEPEST + 1:
                kept.append(_TOO_DEEP)
                begin = part.end()
            depth -= 1
            continue
        values += depth <= DEEPEST
        if values > MOST_VALUES:
            raise TooLarge(message)
        if sign in b"[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(message[begin : part.start()])
    return b"".join([*kept, message[begin:]])


async def bound_response(response: httpx2.Response) -> None:
    """Bound the body before it is read: in full, or each line of server-sent events.

    A hook of the HTTP client. The SDK bounds the length of one event itself. Some servers pack the
    body although they were asked not to: gzip and deflate are unpacked here, piece by piece within the bound.
    """
    packing = response.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
    events = response.headers.get("Content-Type", "").startswith("text/event-stream")
    if packing in _WINDOWS:
        del response.headers["Content-Encoding"]
        response.headers.pop("Content-Length", None)
    response.stream = _Body(response.stream, events=events, packing=packing)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, *, events: bool, packing: str) -> None:
        self._stream = stream
        self._events = events
        self._packing = packing

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._parts():
                yield part
        except TooLarge as error:
            raise (httpx2.SSEError(str(error)) if self._events else error) from None

    async def _parts(self) -> AsyncIterator[bytes]:
        lines = Lines()
        async for chunk in self._unpack():
            for line in lines.cut(chunk, whole=not self._events):
                yield await bound_message(line) + b"\n"
        yield await bound_message(bytes(lines.rest))

    async def _unpack(self) -> AsyncIterator[bytes]:
        if self._packing not in _WINDOWS:
            if self._packing != "identity":
                raise UnknownPacking(
                    f"it packs its answer in a way that was not asked for ({self._packing[:20]})"
                )
            async for chunk in self._stream:
                yield chunk
            return
        unpack = zlib.decompressobj(_WINDOWS[self._packing])
        try:
            async for chunk in self._stream:
                rest = chunk
                while rest:
                    yield unpack.decompress(rest, _MAX_PIECE_BYTES)
                    rest = unpack.unconsumed_tail
        except zlib.error:
            raise UnknownPacking(f"its answer is not the {self._packing} that it says it is") from None

    async def aclose(self) -> None:
        await self._stream.aclose()


class Lines:
    """A splitter of a byte stream into lines that reads nothing twice. `cut` raises TooLarge.

    ``rest`` is the line that has not ended yet.
    """

    def __init__(self) -> None:
        self.rest = bytearray()

    def cut(self, chunk: bytes, *, whole: bool = False) -> list[bytes]:
        """Return the lines that ended, without their newline; ``whole``: all of it is one line."""
        first, *more = [chunk] if whole else chunk.split(b"\n")
        self.rest += first
        if len(self.rest) > MOST_BYTES:
            raise TooLarge(self.rest)
        if not more:
            return []
        ended = [bytes(self.rest), *more[:-1]]
        self.rest = bytearray(more[-1])
        return ended
