"""Bounds on the responses of MCP servers and sign-in providers, applied before anything parses them.

A message is one JSON text: a line of a server's output, an event of a stream, or a full body. The event loop
parses it, which takes as long as it has bytes and values. So a message beyond `MAX_MESSAGE_BYTES` or
`MAX_MESSAGE_VALUES` is refused (`TooLarge`).

Two faults are repaired instead, because the SDK's parser (jiter) would refuse the full message for them, and
with it each harmless tool of a list. A value nested more than `MAX_VALUE_DEPTH` levels deep (jiter: 200)
becomes the text `_TOO_DEEP`. A tool whose schema had such a value is later left out, but no other tool is.
Half a surrogate pair becomes the replacement character.

`bound_response` is a hook of the HTTP clients. The transport to a process uses `Lines` and `bound_message`.
"""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2

MAX_MESSAGE_BYTES = 8 << 20
MAX_MESSAGE_VALUES = 100_000
MAX_VALUE_DEPTH = 100  # the levels of values in values
_TOO_DEEP = b'"nested too deeply"'
_TOO_LARGE_TEXT = (
    f"it sent a message larger than {MAX_MESSAGE_BYTES >> 20} MiB or with over {MAX_MESSAGE_VALUES:,} values"
)
_HEAD_BYTES = 200  # the beginning of a refused message that its error keeps
_MAX_PIECE_BYTES = 64 << 10  # the bytes that are unpacked at a time
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""The content codings that are unpacked, each with the value of zlib's ``wbits`` for it.

By zlib's documentation 16 + 15 is for gzip. 32 + 15 is for zlib or gzip, by the header of the data.
"""

# A string, also one that does not end, or a mark outside strings. The possessive quantifiers (``*+``) never
# try again, so a search takes linear time in any text.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)
_HIGH_HALF = rb"u[dD][89abAB][0-9a-fA-F]{2}"  # one half of a surrogate pair, as in "\ud83d\ude00"
_LOW_HALF = rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
# one escape: a surrogate pair, half of one (group 1), or any other
_ESCAPE = re.compile(
    rb"\\(?:" + _HIGH_HALF + rb"\\" + _LOW_HALF + rb"|(" + _HIGH_HALF + rb"|" + _LOW_HALF + rb")|.)",
    re.DOTALL,
)
_REPLACEMENT = rb"\ufffd"


class TooLarge(httpx2.StreamError):
    """A message beyond the bounds; ``head`` is its beginning."""

    def __init__(self, message: bytes | bytearray = b"", text: str = _TOO_LARGE_TEXT) -> None:
        self.head = bytes(message[:_HEAD_BYTES])
        super().__init__(text)


class UnknownPacking(TooLarge):
    """A body that can't be unpacked. Callers treat it as they treat a message beyond the bounds."""


async def bound_message(message: bytes) -> bytes:
    """Return the message without too deeply nested values and lone surrogates. Raises TooLarge."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise TooLarge(message)
    if b"\\u" in message:
        message = _ESCAPE.sub(_replace_lone_half, message)
    # upper bounds, since brackets and commas in strings are counted, too
    max_depth = message.count(b"[") + message.count(b"{")
    max_values = max_depth + message.count(b",")
    if max_depth <= MAX_VALUE_DEPTH and max_values <= MAX_MESSAGE_VALUES:
        return message
    return await asyncio.to_thread(_replace_deep_values, message)


async def bound_response(response: httpx2.Response) -> None:
    """Bound the body of a response as it is read: all of it, or each line of server-sent events.

    This is a hook of the HTTP client. The SDK bounds the length of one event itself. Some servers compress
    the body although they were asked not to. gzip and deflate are unpacked here, piece by piece.
    """
    packing = response.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
    is_event_stream = response.headers.get("Content-Type", "").startswith("text/event-stream")
    if packing in _WINDOW_BITS:
        del response.headers["Content-Encoding"]
        response.headers.pop("Content-Length", None)
    response.stream = _BoundedBody(response.stream, is_event_stream=is_event_stream, packing=packing)


class Lines:
    """A splitter of a byte stream into lines. Its methods raise TooLarge.

    ``incomplete`` is the line that has not ended yet.
    """

    def __init__(self) -> None:
        self.incomplete = bytearray()

    def split(self, chunk: bytes) -> list[bytes]:
        """Add a chunk, and return the lines that end in it, without their newlines."""
        first, *others = chunk.split(b"\n")
        self.extend(first)
        if not others:
            return []
        ended = [bytes(self.incomplete), *others[:-1]]
        self.incomplete = bytearray(others[-1])
        return ended

    def extend(self, piece: bytes) -> None:
        """Add bytes to the incomplete line, without a search for newlines in them."""
        self.incomplete += piece
        if len(self.incomplete) > MAX_MESSAGE_BYTES:
            raise TooLarge(self.incomplete)


def _replace_lone_half(escape: re.Match[bytes]) -> bytes:
    return _REPLACEMENT if escape[1] else escape[0]


def _replace_deep_values(message: bytes) -> bytes:
    """Return the message with `_TOO_DEEP` in place of each value deeper than `MAX_VALUE_DEPTH` levels.

    A value is counted by the mark before it: an opening bracket or a comma. Raises TooLarge if there are more
    than `MAX_MESSAGE_VALUES`.
    """
    parts: list[bytes] = []
    begin = 0  # the end of the last value that was replaced
    depth = 0
    value_count = 0
    for token in _TOKEN.finditer(message):
        mark = token[0][:1]
        if mark == b'"':
            continue
        if mark in b"]}":
            if depth == MAX_VALUE_DEPTH + 1:
                parts.append(_TOO_DEEP)
                begin = token.end()
            depth -= 1
            continue
        if depth <= MAX_VALUE_DEPTH:
            value_count += 1
        if value_count > MAX_MESSAGE_VALUES:
            raise TooLarge(message)
        if mark in b"[{":
            depth += 1
            if depth == MAX_VALUE_DEPTH + 1:
                parts.append(message[begin : token.start()])
    return b"".join([*parts, message[begin:]])


class _BoundedBody(httpx2.AsyncByteStream):
    """The stream of a response's body, unpacked and bounded as it is read; see `bound_response`."""

    def __init__(self, stream: Any, *, is_event_stream: bool, packing: str) -> None:
        self._stream = stream
        self._is_event_stream = is_event_stream
        self._packing = packing

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for message in self._iterate_messages():
                yield message
        except TooLarge as error:
            if self._is_event_stream:  # the SDK answers the request of the stream with this error
                raise httpx2.SSEError(str(error)) from None
            raise

    async def _iterate_messages(self) -> AsyncIterator[bytes]:
        """Yield the full body, or each line of server-sent events, within the bounds."""
        lines = Lines()
        async for chunk in self._unpack():
            if not self._is_event_stream:
                lines.extend(chunk)
                continue
            for line in lines.split(chunk):
                yield await bound_message(line) + b"\n"
        yield await bound_message(bytes(lines.incomplete))

    async def _unpack(self) -> AsyncIterator[bytes]:
        if self._packing not in _WINDOW_BITS:
            if self._packing != "identity":
                raise UnknownPacking(
                    text=f"it packs its answer in a way that was not asked for ({self._packing[:20]})"
                )
            async for chunk in self._stream:
                yield chunk
            return
        unpacker = zlib.decompressobj(_WINDOW_BITS[self._packing])
        try:
            async for chunk in self._stream:
                packed = chunk
                while packed:
                    yield unpacker.decompress(packed, _MAX_PIECE_BYTES)
                    packed = unpacker.unconsumed_tail
        except zlib.error:
            raise UnknownPacking(text=f"its answer is not the {self._packing} that it says it is") from None

    async def aclose(self) -> None:
        await self._stream.aclose()
