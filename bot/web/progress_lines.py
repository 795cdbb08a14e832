"""A response whose lines tell how far a long piece of work is, and end with its result."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, TypeVar

from bot.domain.progress import Abandoned, Progress

T = TypeVar("T")


async def write_progress_lines(
    work: Callable[[Progress], Awaitable[T]], format_result: Callable[[T], str]
) -> AsyncIterator[str]:
    """Do the work, which is given a function to report its progress, and yield lines of JSON.

    Each line but the last has the newest report, such as ``{"done": 2000, "total": 9000}``; the last is
    ``format_result`` of the result. If the reader of the lines leaves, the work's next report ends it.
    """
    reports = _Reports()
    task = asyncio.ensure_future(work(reports.add))
    task.add_done_callback(lambda _: reports.has_news.set())
    try:
        while not task.done():
            await reports.has_news.wait()
            reports.has_news.clear()
            yield f"{json.dumps(reports.newest._asdict())}\n"
        yield f"{format_result(task.result())}\n"
    finally:
        reports.is_closed = True
        task.cancel()


class _Report(NamedTuple):
    done: int
    total: int


class _Reports:
    """The reports of work that runs in a thread; they are read in the event loop that makes this object."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.newest = _Report(done=0, total=0)
        self.has_news = asyncio.Event()  # also set at the end of the work
        self.is_closed = False  # no one reads further lines

    def add(self, done: int, total: int) -> None:
        """Take a report; it is called in the thread. Raises Abandoned if no one reads the lines."""
        if self.is_closed:
            raise Abandoned
        self.newest = _Report(done, total)
        self._loop.call_soon_threadsafe(self.has_news.set)
