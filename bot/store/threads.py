"""A few threads for what would hold up the event loop; what a person waits for begins before the rest."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from bot.store.waiting_line import WaitingLine

T = TypeVar("T")


class Threads:
    def __init__(self, many: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(many, name)
        self._line: WaitingLine[tuple[Callable[[], Any], Future[Any]]] = WaitingLine()
        self._in_line = threading.Lock()

    def run(self, work: Callable[[], T], *, first: bool = False) -> asyncio.Future[T]:
        """What it gives, or raises. Work that has not begun when its caller goes away never does."""
        ended: Future[T] = Future()
        with self._in_line:
            self._line.add((work, ended), first=first)
        self._pool.submit(self._do_next)
        return asyncio.wrap_future(ended)

    def close(self) -> None:
        """Return when all is done."""
        self._pool.shutdown()

    def _do_next(self) -> None:
        with self._in_line:
            work, ended = self._line.take()
        if not ended.set_running_or_notify_cancel():
            return
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            ended.set_exception(error)
        else:
            ended.set_result(value)
