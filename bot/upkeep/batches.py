"""Statements that wait for each other: what several want at the same moment goes with one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Given = TypeVar("Given")


class Batches(Generic[Given]):
    """What is added while a statement is on its way goes with the next one."""

    def __init__(self, do: Callable[[Sequence[Given]], Awaitable[None]]) -> None:
        self._do = do
        self._waiting: list[Given] = []
        self._next: asyncio.Task[None] | None = None
        self._last: asyncio.Task[None] | None = None

    def add(self, given: Given) -> asyncio.Task[None]:
        """The task that does it; who waits for it shields it, since it does the same for others."""
        self._waiting.append(given)
        if self._next is None:
            self._next = self._last = asyncio.create_task(self._run(self._last))
        return self._next

    async def idle(self) -> None:
        """Return when nothing is on its way."""
        while self._last and not self._last.done():
            await asyncio.wait({self._last})

    async def _run(self, before: asyncio.Task[None] | None) -> None:
        if before:
            await asyncio.wait({before})
        given, self._waiting, self._next = self._waiting, [], None
        await self._do(given)
