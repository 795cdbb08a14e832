"""Server-sent events as Chat Completions uses them: bytes in, the text of each ``data`` field out.

Split at the byte, not with ``str.splitlines``: JSON may hold U+2028 and its like unescaped.
"""

from collections.abc import AsyncGenerator, AsyncIterator

MOST_BYTES = 4 * 1024 * 1024  # of one event


class EventTooLongError(Exception):
    """An event without an end."""


async def data_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Yield one event's data at a time. An event the server did not close with an empty line counts too.

    Raises UnicodeDecodeError when an event is not UTF-8, EventTooLongError for one of more than `MOST_BYTES`,
    and whatever ``chunks`` raises.
    """
    begun: list[bytes] = []  # a line that has not ended
    fields: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MOST_BYTES:
            raise EventTooLongError
        first, *others = chunk.split(b"\n")
        begun.append(first)
        if not others:
            continue
        lines, begun = [b"".join(begun), *others[:-1]], [others[-1]]
        for line in lines:
            text = line.rstrip(b"\r")
            if text:
                if text.startswith(b"data:"):
                    fields.append(text[5:].removeprefix(b" "))
            elif fields:
                yield b"\n".join(fields).decode()
                fields.clear()
                size = len(begun[0])
    rest = b"".join(begun)
    if rest.startswith(b"data:"):
        fields.append(rest[5:].strip())
    if fields:
        yield b"\n".join(fields).decode()
