"""A process that dies at a chosen write, and a dispatcher that can be held."""

import asyncio
from collections.abc import Callable
from typing import Any

from bot.domain.jobs import Job
from bot.jobs.dispatcher import EmbeddedDispatcher
from bot.store.database import Database


class Valve:
    """Implements `Dispatcher` before the real one: while shut, what is woken only waits to be looked at."""

    def __init__(self, real: EmbeddedDispatcher) -> None:
        self.real = real
        self.shut = False
        self.held: list[Job] = []

    @property
    def takes_work(self) -> bool:
        return self.real.takes_work

    async def wake(self, *jobs: Job) -> None:
        if self.shut:
            self.held.extend(jobs)
        else:
            await self.real.wake(*jobs)

    async def find(self, *jobs: Job) -> None:
        if self.shut:
            self.held.extend(jobs)
        else:
            await self.real.find(*jobs)

    async def stop_turn(self, conversation_id: str) -> None:
        await self.real.stop_turn(conversation_id)

    def interrupt(self, conversation_id: str) -> bool:
        return self.real.interrupt(conversation_id)


class FusedDatabase(Database):
    """The real one, in a process that dies at a chosen write: before its commit, or right after it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.writes = 0
        self.reads = 0
        self.fuse: int | None = None  # die at this write, counted from 1
        self.dies_after_commit = False
        self.dead = asyncio.Event()

    async def read(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.reads += 1
        return await super().read(function, *args, **kwargs)

    async def write(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.writes += 1
        dying = self.writes == self.fuse
        if dying and not self.dies_after_commit:
            self.dead.set()
        if self.dead.is_set():
            await asyncio.Event().wait()
        value = await super().write(function, *args, **kwargs)
        if dying:
            self.dead.set()
            await asyncio.Event().wait()  # the caller is never told
        return value


async def kill(*tasks: asyncio.Task[Any]) -> None:
    """Cancel, and once more for each thing that would still be written on the way out."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.sleep(0)
