"""A clock that moves only when told."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Call it for the time; it changes only by ``forward``."""

    def __init__(self, now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, by: timedelta) -> None:
        self.now += by
