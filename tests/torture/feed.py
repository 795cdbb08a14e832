"""Someone who follows the feed of changes through every process, and misses none of them."""

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from itertools import cycle
from typing import Any, Self

import httpx

from tests.torture.nods import PATIENCE, PAUSE, TOKENS, Nods

_LONGEST = 3.0  # seconds at one process, then at the next


class Feed:
    """Resumes where the last stream ended, and notes the newest version of each proposal that it saw."""

    def __init__(self, nods: Nods) -> None:
        self._nods = nods
        self._client = httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKENS['ana']}"}, timeout=30)
        self._seen = 0  # the id of the last event
        self._versions: dict[str, int] = {}
        self._faults: list[str] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._client.aclose()

    async def faults(self, versions: Mapping[str, int]) -> list[str]:
        """What the feed did not tell, after it had time to; ``versions`` are those of the rows."""
        end = time.monotonic() + PATIENCE
        while versions != self._versions and time.monotonic() < end:
            await asyncio.sleep(PAUSE)
            if self._task is not None and self._task.done():
                self._task.result()  # raises what went wrong
        missed = [each for each, version in versions.items() if self._versions.get(each) != version]
        return [*self._faults, *(f"the feed did not tell the end of {each}" for each in missed)]

    async def _follow(self) -> None:
        for port in cycle(self._nods.ports):
            with contextlib.suppress(httpx.HTTPError, TimeoutError):
                async with asyncio.timeout(_LONGEST):
                    await self._listen(f"http://127.0.0.1:{port}/api/events")
            await asyncio.sleep(PAUSE)

    async def _listen(self, url: str) -> None:
        async with self._client.stream("GET", url, headers={"Last-Event-ID": str(self._seen)}) as answer:
            ident = self._seen
            async for line in answer.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "id":
                    ident = int(value)
                elif field == "data":
                    self._take(ident, json.loads(value)["proposal"])

    def _take(self, ident: int, shown: Mapping[str, Any]) -> None:
        if ident < self._seen:
            self._faults.append(f"the feed went back from {self._seen} to {ident}")
        self._seen = ident
        known, version = self._versions.get(shown["id"], 0), shown["version"]
        if version < known:
            self._faults.append(f"the feed showed {shown['id']} as it was before")
        self._versions[shown["id"]] = version
