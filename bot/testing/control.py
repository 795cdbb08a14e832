"""Controls for tests: a clock that a test moves, and points at which work stops until it may continue."""

import asyncio
from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock: calling it returns the time, which only `forward` changes."""

    def __init__(self, now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, by: timedelta) -> None:
        """Move the clock by a length of time."""
        self.now += by


class Hold:
    """A point at which work stops. A test waits for `reached`, and sets `go` to let the work continue."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def wait(self) -> None:
        """Stop here, as the work, until `go` is set."""
        self.reached.set()
        await self.go.wait()
