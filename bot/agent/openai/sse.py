"""Server-sent events as Chat Completions uses them: bytes in, the text of each ``data`` field out.

Split at the byte, not with ``str.splitlines``: JSON may hold U+2028 and its like unescaped.
"""

from collections.abc import AsyncGenerator, AsyncIterator


async def data_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Yield one event's data at a time. An event the server did not close with an empty line counts too.

    Raises UnicodeDecodeError when an event is not UTF-8, and whatever ``chunks`` raises.
    """
    rest = b""
    fields: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r")
            if text:
                if text.startswith(b"data:"):
                    fields.append(text[5:].removeprefix(b" "))
            elif fields:
                yield b"\n".join(fields).decode()
                fields.clear()
    if rest.startswith(b"data:"):
        fields.append(rest[5:].strip())
    if fields:
        yield b"\n".join(fields).decode()
