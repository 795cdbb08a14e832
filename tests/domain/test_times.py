"""Moments as people say them."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.times import format_relative, parse_duration, parse_moment

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
    assert format_relative(NOW + away, NOW) == said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("18:00", "2026-11-25 18:00"),
        ("9:30", "2026-11-26 09:30"),
        ("12:00", "2026-11-26 12:00"),
        ("tomorrow 9:00", "2026-11-26 09:00"),
        ("friday", "2026-11-27 00:00"),
        ("wednesday 18:00", "2026-11-25 18:00"),
        ("wednesday 9:00", "2026-12-02 09:00"),
        ("2026-12-01", "2026-12-01 00:00"),
        ("2026-12-01 18:00", "2026-12-01 18:00"),
    ],
)
def test_a_moment_is_the_first_such_after_now(text: str, found: str):
    now = datetime(2026, 11, 25, 12, tzinfo=UTC)  # a Wednesday
    assert parse_moment(text, now).strftime("%Y-%m-%d %H:%M") == found


@pytest.mark.parametrize("text", ["", "soon", "noon 9:00", "2026-11-25", "today 12:00", "25:00"])
def test_what_is_no_moment_or_over_is_refused(text: str):
    with pytest.raises(ValueError, match=r"write a moment|time has passed"):
        parse_moment(text, datetime(2026, 11, 25, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("30m", 30),
        ("30 min", 30),
        ("45 minutes", 45),
        ("1h", 60),
        ("2 Hours", 120),
        ("1 day", 1440),
        ("1w", 10080),
    ],
)
def test_a_length_is_read_as_nod_and_people_write_it(text: str, minutes: int) -> None:
    assert parse_duration(text) == timedelta(minutes=minutes)
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    assert parse_moment(f"in {text}", now) == now + timedelta(minutes=minutes)


@pytest.mark.parametrize(
    "text", ["", "30", "min", "1.5h", "2 months", "3 fortnights", "1  h", "0m", "1hourly"]
)
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write a duration"):
        parse_duration(text)
