"""A subscription to changes of a server's list, which ends and is made again."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

from mcp import Client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from bot.tools.mcp.catalogue import LONGEST_PAUSE, Catalogue
from bot.tools.mcp.config import ServerConfig, Stdio
from tests.kit import FakeClock

MOMENT = timedelta(seconds=2)


class EndingServer:
    """A client of a server whose subscriptions end: each lasts for its time, and after the last come none."""

    def __init__(self, clock: FakeClock, *lengths: timedelta) -> None:
        self._clock = clock
        self._lengths: Iterator[timedelta] = iter(lengths)

    @asynccontextmanager
    async def listen(self, **_: Any) -> AsyncIterator[AsyncIterator[object]]:
        length = next(self._lengths, None)
        if length is None:
            raise ListenNotSupportedError(None)
        yield self._hear(length)

    async def _hear(self, length: timedelta) -> AsyncIterator[object]:
        yield object()
        self._clock.forward(length)
        raise SubscriptionLost


async def list_pauses(clock: FakeClock, *lengths: timedelta) -> list[float]:
    """The pauses after subscriptions that last for these times."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    catalogue = Catalogue(ServerConfig("lamps", Stdio("lamps")), sleep, clock)
    await catalogue.subscribe(cast("Client", EndingServer(clock, *lengths)))
    return pauses


async def test_the_pause_grows_while_subscriptions_end_soon(clock: FakeClock) -> None:
    assert await list_pauses(clock, *[MOMENT] * 6) == [1, 2, 4, 8, 10, 10]


async def test_a_subscription_that_lasted_ends_the_growth(clock: FakeClock) -> None:
    lengths = [*[MOMENT] * 5, timedelta(days=3), MOMENT]
    assert await list_pauses(clock, *lengths) == [1, 2, 4, 8, 10, 1, 2]


async def test_a_server_may_end_its_subscriptions_for_hours(clock: FakeClock) -> None:
    assert max(await list_pauses(clock, *[MOMENT] * 1_100)) == LONGEST_PAUSE
