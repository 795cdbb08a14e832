"""Moments as people say them."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.times import when

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("away", "said"),
    [
        (timedelta(hours=24), "in 24 h"),
        (timedelta(hours=24) - timedelta(seconds=5), "in 24 h"),
        (timedelta(days=3), "in 3 d"),
        (timedelta(minutes=30), "in 30 min"),
        (timedelta(seconds=20), "in less than a minute"),
        (timedelta(0), "just now"),
        (-timedelta(minutes=2, seconds=50), "2 min ago"),
        (-timedelta(hours=5, minutes=59), "5 h ago"),
        (-timedelta(days=9), "9 d ago"),
    ],
)
def test_a_moment_is_told_by_how_far_away_it_is(away: timedelta, said: str):
    assert when(NOW + away, NOW) == said
