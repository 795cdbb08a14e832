"""Server-sent events (SSE): their format, and the parts of which routes build streams.

A stream is an async iterator of blocks, each the text of one event or comment. `make_event_stream` makes a
response of it. A route reads its events from a listener (``broadcaster.py``) by `read_listener`, and writes
each with `format_event`. In silence it sends `KEEP_ALIVE`. `ConcurrencyLimit` bounds the requests that one
person has open.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import BaseModel
from starlette.responses import StreamingResponse

from bot.web.answers import TooManyRequests
from bot.web.broadcaster import Broadcast, Listener

LISTENING = ": listening\n\n"
"""A comment line, so that a client knows that the stream is open."""
KEEP_ALIVE = ": still there\n\n"
"""A comment line. No client reads it as an event, and it keeps proxies from closing a silent stream."""

# the number of requests of each sort that one person may have open at the same time
MAX_STREAMS = 50
MAX_LONG_POLLS = 200
MAX_EXPORTS = 2  # of conversations and of the audit log together
_TOO_MANY_TEXT = "You have {} open at the same time, which is the most. Close one first."


class ConcurrencyLimit:
    """A limit on requests that stay open: at most ``max_open`` of each person at a time."""

    def __init__(self, max_open: int) -> None:
        self._max_open = max_open
        self.open_requests: Counter[str] = Counter()  # by person

    @contextmanager
    def hold(self, person: str) -> Iterator[None]:
        """Count a request as open while the context lasts.

        Raises TooManyRequests if the person has too many open.
        """
        if self.open_requests[person] >= self._max_open:
            raise TooManyRequests(_TOO_MANY_TEXT.format(self._max_open))
        self.open_requests[person] += 1
        try:
            yield
        finally:
            self.open_requests[person] -= 1
            if not self.open_requests[person]:
                del self.open_requests[person]


@dataclass(frozen=True, slots=True)
class Pace:
    """Times of streams and request bodies, in seconds."""

    poll_seconds: float = 2.0  # between two reads of the database for changes by other processes
    keep_alive_seconds: float = 15.0  # until a silent stream gets a comment line, so that no proxy closes it
    body_seconds: float = 30.0  # in which a request body must arrive
    file_body_seconds: float = 120.0  # in which a body with files must arrive


class EventStream(StreamingResponse):
    """A response of server-sent events."""

    media_type = "text/event-stream"


def format_event(event: BaseModel) -> str:
    """Return one event: a single ``data:`` line of JSON."""
    return f"data: {event.model_dump_json(by_alias=True)}\n\n"


def make_event_stream(events: AsyncIterator[str]) -> EventStream:
    """Return a response that sends each block as it comes, and tells proxies not to keep or gather them."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventStream(_with_pauses(events), headers=headers)


async def _with_pauses(events: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the events, and let the loop notice a closed connection after each."""
    async for block in events:
        yield block
        await asyncio.sleep(0)


async def merge(*sources: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the blocks of all sources in the order they come, until any of the sources ends."""
    # a task for each source waits for its next block
    source_by_task = {asyncio.ensure_future(_take_next(source)): source for source in sources}
    try:
        while True:
            ready, _ = await asyncio.wait(source_by_task, return_when=asyncio.FIRST_COMPLETED)
            for task in ready:
                source = source_by_task.pop(task)
                block = task.result()
                if block is None:
                    return
                yield block
                source_by_task[asyncio.ensure_future(_take_next(source))] = source
    finally:
        for task in source_by_task:
            task.cancel()
        await asyncio.gather(*source_by_task, return_exceptions=True)


async def _take_next(source: AsyncIterator[str]) -> str | None:
    """Return the next block, or None at the end of the source."""
    return await anext(source, None)


async def read_listener(listener: Listener, quiet_seconds: float) -> AsyncIterator[Broadcast | None]:
    """Yield the broadcasts until the listener ends; None after each ``quiet_seconds`` of silence."""
    while True:
        try:
            async with asyncio.timeout(quiet_seconds):
                item = await listener.get()
        except TimeoutError:
            yield None
            continue
        if item is None:
            return
        yield item
