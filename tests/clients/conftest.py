"""A real Nod on loopback, asked by the Python client as its users ask."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

import pytest

from nod_client import AsyncNod, Nod, Request
from tests.features.requests.test_routes import SETTINGS, press
from tests.web.conftest import ANA, Json, Serve, Served, _log, serve  # noqa: F401 - fixtures

Asks = Callable[..., Awaitable[Request]]


@dataclass
class Ticks:
    """The client's clock: pausing moves it, and lets the others work for a moment."""

    time: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.time

    def _pass(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    async def sleep(self, seconds: float) -> None:
        self._pass(seconds)
        await asyncio.sleep(0.005)


class Threaded:
    """The synchronous client in a thread of its own, awaited as the other one is."""

    def __init__(self, *given: Any, clock: Ticks, **more: Any) -> None:
        loop = asyncio.get_running_loop()

        def sleep(seconds: float) -> None:
            asyncio.run_coroutine_threadsafe(clock.sleep(seconds), loop).result()

        self.inner = Nod(*given, clock=clock, sleep=sleep, **more)

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **more: Any) -> Any:
            return await asyncio.to_thread(getattr(self.inner, name), *given, **more)

        return call

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.inner.close()


def awaited(*given: Any, clock: Ticks, **more: Any) -> AsyncNod:
    return AsyncNod(*given, clock=clock, sleep=clock.sleep, **more)


BOTH = pytest.mark.parametrize("client", [Threaded, awaited], ids=["sync", "async"])


@dataclass
class House:
    """A Nod that may be stopped and started again at one address, and a person who decides there."""

    serve: Serve
    settings: Json
    port: int = 0
    up: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)
    nod: Served = field(init=False)
    asks: asyncio.Task[Any] | None = None  # the process that a card is waited for from

    async def start(self) -> None:
        self.nod = await self.up.enter_async_context(self.serve(**self.settings, NOD_PORT=self.port))
        self.port = self.nod.app.web.port

    async def stop(self) -> None:
        await self.up.aclose()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def card(self, *seen: str) -> Json:
        """The open request whose id was not seen before, as soon as there is one."""
        while True:
            for proposal in await self.pending():
                if proposal["id"] not in seen:
                    return proposal
            if self.asks is not None and self.asks.done():
                raise AssertionError(f"it ended without asking: {self.asks.result()}")
            await asyncio.sleep(0.01)

    async def pending(self) -> list[Json]:
        answer = await self.nod.client.get("/api/proposals", params={"state": "proposed"})
        found: list[Json] = answer.json()["proposals"]
        return found

    async def all(self) -> list[Json]:
        found: list[Json] = (await self.nod.client.get("/api/proposals")).json()["proposals"]
        return found

    async def press(self, verb: str, proposal: Json | None = None, **body: Any) -> Json:
        """Ben presses; of the one card that is open, unless a test says which."""
        proposal = proposal or await self.card()
        assert await press(self.nod, proposal, verb, **body) == 200
        return proposal

    async def edit(self, **changed: Any) -> Json:
        """Ben approves a tool's use with other input."""
        proposal = await self.card()
        arguments = proposal["tool_arguments"]
        arguments = arguments | {"input": arguments["input"] | changed}
        return await self.press("approve", proposal, arguments=arguments)

    async def expire(self) -> None:
        await self.card()
        self.nod.clock.forward(timedelta(days=8))
        await self.nod.app.core.recovery.expire_due(self.nod.clock())


@pytest.fixture
async def house(serve: Serve) -> AsyncIterator[House]:  # noqa: F811 - a fixture
    made = House(serve, SETTINGS | {"patience": 140})  # examples load large libraries first
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def asking(house: House) -> AsyncIterator[AsyncNod]:
    """Ana's client."""
    async with AsyncNod(house.url, ANA, sleep=Ticks().sleep) as nod:
        yield nod
