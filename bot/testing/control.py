"""Controls for tests: a clock, and points where work stops."""

import asyncio
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Call it for the time; it changes only by ``forward``."""

    def __init__(self, now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, by: timedelta) -> None:
        self.now += by


class Hold:
    """A place where work stops: `reached` says that it did, `go` lets it on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.go.wait()
