"""Times and durations, parsed and formatted in one place, for people in their time zone.

A length is ``36h`` where admins write it, in settings and rules (`parse_duration`, `format_length`), and
"36 h" for other people (`format_span`).

Python adds to and compares two moments of one time zone by the clock on the wall, also where the clocks
change between them. So a length of time is added to an instant, and moments are compared as instants (UTC).
Where the clocks go back, they show the same time twice; ``fold`` 1 of a datetime is the second one (PEP 495).
"""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

UNIT_SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
"""The seconds of each unit in which a length is written, from weeks to seconds."""
_DURATION = re.compile(
    r"([0-9]{1,7}) ?(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)", re.IGNORECASE
)
_LONGEST = timedelta(days=3660)

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_SETS: Mapping[str, Collection[int]] = {
    "day": range(7),
    "weekday": range(5),
    "weekend": (5, 6),
    **{day: (at,) for at, day in enumerate(DAYS)},
}
_DAY_SEPARATOR = re.compile(r"\s*(?:,|\band\b|\s)\s*")
# a time of day, perhaps with an offset from UTC: "9:05", "02:30+02:00"
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?:([+-])([01][0-9]):([0-5][0-9]))?")
_EXPECTED_MOMENT = "write a moment such as 18:00, friday 18:00, 2026-12-01 or in 2h"

_HOUR = timedelta(hours=1)
_SHOWN_AS_DAYS_FROM = timedelta(hours=48)  # "36 h" says more than "2 d"


def format_relative(at: datetime, now: datetime) -> str:
    """Format when something was or will be, as seen from ``now``: ``in 2 h``, ``5 min ago``."""
    difference = at.astimezone(UTC) - now.astimezone(UTC)
    is_ahead = difference > timedelta()
    size = abs(difference)
    if size < timedelta(minutes=1):
        if is_ahead:
            return "in less than a minute"
        return "just now"
    # what is past is rounded down, what is ahead to the nearest: so a limit of 24 h that was set a moment ago
    # reads 24 h, not 23 h
    half = 0.5 if is_ahead else 0.0
    if size < _HOUR:
        distance = f"{int(size / timedelta(minutes=1) + half)} min"
    elif size < _SHOWN_AS_DAYS_FROM:
        distance = f"{int(size / _HOUR + half)} h"
    else:
        distance = f"{int(size / timedelta(days=1) + half)} d"
    if is_ahead:
        return f"in {distance}"
    return f"{distance} ago"


def format_expiry(at: datetime, now: datetime) -> str:
    """Format a time of expiry. It may be over: proposals stay open past it while Nod is paused."""
    is_ahead = at.astimezone(UTC) > now.astimezone(UTC)
    return f"{'expires' if is_ahead else 'was due to expire'} {format_relative(at, now)}"


def format_in_zone(at: datetime, zone: tzinfo) -> str:
    """Format a moment as people in a time zone read it: ``22 Nov, 21:46 CET``."""
    return format_local(at.astimezone(zone))


def format_local(at: datetime) -> str:
    """Format a moment that is already in the reader's time zone."""
    return f"{at.day} {at:%b, %H:%M %Z}"


def now() -> datetime:
    """Return the real time: the clock that ``bot/app`` and the command line hand to everything else."""
    return datetime.now(UTC)


def parse_duration(text: str) -> timedelta:
    """Parse ``90s``, ``15m``, ``30 min``, ``24 hours``, ``7d`` or ``2w``; or raise ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError("write a duration such as 90s, 15m, 24h, 7d or 2w")
    length = timedelta(seconds=int(found[1]) * UNIT_SECONDS[found[2][0].lower()])
    if not timedelta(seconds=1) <= length <= _LONGEST:
        raise ValueError("write a duration from 1s to 520w")
    return length


def add_length(now: datetime, length: timedelta) -> datetime:
    """Return the moment ``length`` after ``now``, in its time zone, even if the clocks change in between."""
    return (now.astimezone(UTC) + length).astimezone(now.tzinfo)


def parse_moment(text: str, now: datetime, *, last: bool = False) -> datetime:
    """Parse ``18:00``, ``friday``, ``friday 18:00``, ``tomorrow 9:00``, ``2026-12-01 18:00`` or ``in 2h``.

    Returns the first such moment after ``now``, in its time zone; a day alone means its beginning. Where the
    clocks show that time twice, the first is meant, or the second with ``last``; ``02:30+02:00`` names one.
    Raises ValueError for any other text, for a date that is over, and for a time that the clocks skip.
    """
    words = text.strip().lower()
    length = _DURATION.fullmatch(words.removeprefix("in ").strip())
    if length:
        return add_length(now, parse_duration(length[0]))
    day, _, clock = words.rpartition(" ")
    is_single_word = bool(clock) and not day
    is_day_alone = is_single_word and not _CLOCK.fullmatch(clock)
    if is_day_alone:
        day, clock = clock, "00:00"
    found = _CLOCK.fullmatch(clock)
    if found is None:
        raise ValueError(_EXPECTED_MOMENT)
    first_day, step_days = _parse_day(day, now.date())
    for candidate_day in (first_day, first_day + timedelta(days=step_days)):  # of a date, twice the same day
        candidates = _list_moments(candidate_day, found, now.tzinfo or UTC, is_day_alone=is_day_alone)
        still_ahead = [moment for moment in candidates if moment.astimezone(UTC) > now.astimezone(UTC)]
        if still_ahead:
            return still_ahead[-1] if last else still_ahead[0]
    raise ValueError("that time has passed")


def _parse_day(day: str, today: date) -> tuple[date, int]:
    """Return the named day, and the days until the next day of that name: 7 for a weekday, 0 for a date.

    An empty name means any day: it returns today, and 1, since the next day follows after 1 day.
    """
    if day in DAYS:
        return today + timedelta(days=(DAYS.index(day) - today.weekday()) % 7), 7
    if day == "tomorrow":
        return today + timedelta(days=1), 0
    if day == "today":
        return today, 0
    if not day:
        return today, 1
    try:
        return date.fromisoformat(day.strip()), 0
    except ValueError:
        raise ValueError(_EXPECTED_MOMENT) from None


def _list_moments(day: date, clock: re.Match[str], zone: tzinfo, *, is_day_alone: bool) -> list[datetime]:
    """Return the moments of a day at which the clocks show a time: one, or two where they repeat it.

    ``clock``: the match of `_CLOCK`. Raises ValueError for a time that the clocks skip on that day, unless
    only the day was named.
    """
    at = datetime.combine(day, time(int(clock[1]), int(clock[2])), zone)
    if clock[3]:
        offset = timedelta(hours=int(clock[4]), minutes=int(clock[5]))
        if clock[3] == "-":
            offset = -offset
        return [at.replace(tzinfo=timezone(offset)).astimezone(zone)]
    if is_skipped(at):
        real = at.astimezone(UTC).astimezone(zone)
        if not is_day_alone:
            raise ValueError(
                f"{at:%H:%M} does not exist on {at.day} {at:%B %Y}: the clocks go forward then, "
                f"to {real:%H:%M} {real:%Z}. Write another time"
            )
        return [real]  # midnight is skipped: the day begins at this time
    if is_repeated(at):
        return [at, at.replace(fold=1)]
    return [at]


def is_skipped(at: datetime) -> bool:
    """Return whether the clocks of its time zone go forward over a time, so that they never show it."""
    before, after = _offsets(at)
    return before < after


def is_repeated(at: datetime) -> bool:
    """Return whether the clocks of its time zone go back over a time, so that they show it twice."""
    before, after = _offsets(at)
    return before > after


def _offsets(at: datetime) -> tuple[timedelta, timedelta]:
    """Return the offsets from UTC before and after a change of the clocks; equal at other times (PEP 495)."""
    before, after = (at.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return before, after


def explain_repeated(at: datetime) -> str:
    """Return a sentence on which of two equal times of the clocks a time is; empty if it is not repeated."""
    if not is_repeated(at):
        return ""
    which = "last" if at.fold else "first"
    return f"The clocks show {at:%H:%M} twice on {at.day} {at:%B %Y}. This is the {which}, {at:%Z}."


def format_moment(at: datetime) -> str:
    """Format a moment as `parse_moment` reads it: ``2026-12-01 18:00``, with its offset if it comes twice."""
    offset = at.isoformat()[-6:] if is_repeated(at) else ""
    return f"{at:%Y-%m-%d %H:%M}{offset}"


def parse_datetime(text: str, zone: tzinfo) -> datetime:
    """Parse a date and time in a time zone. Raises ValueError."""
    read = datetime.fromisoformat(text.strip())
    if read.tzinfo:
        return read.astimezone(zone)
    return read.replace(tzinfo=zone)


def parse_weekdays(text: str) -> frozenset[int]:
    """Return the days of the week that ``weekdays`` or ``monday and thursday`` names, Monday being 0.

    Returns an empty set for any other words.
    """
    words = filter(None, _DAY_SEPARATOR.split(text.strip().lower()))
    names = [word if word in _DAY_SETS else word.removesuffix("s") for word in words]
    if not all(name in _DAY_SETS for name in names):
        return frozenset()
    return frozenset(day for name in names for day in _DAY_SETS[name])


def format_weekdays(days: Collection[int]) -> str:
    """Format weekdays as an admin types them: ``weekdays``, ``weekends``, ``monday and thursday``."""
    name_of_set = next((name for name in ("weekday", "weekend") if set(days) == set(_DAY_SETS[name])), None)
    if name_of_set:
        return f"{name_of_set}s"
    return " and ".join(DAYS[day] for day in sorted(days))


def format_length(seconds: float) -> str:
    """Format a length of time as an admin would write it: ``36h``, ``1d 2h 3s``."""
    left = round(seconds)
    units = [(unit, size) for unit, size in UNIT_SECONDS.items() if unit != "w"]

    # a whole number of one unit, such as 36h
    for unit, size in units:
        if left and left % size == 0 and unit != "s":
            return f"{left // size}{unit}"

    # otherwise several units
    parts = []
    for unit, size in units:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"


def format_span(length: timedelta) -> str:
    """Format a length of time as people say it: ``30 min``, ``24 h``, ``3 d``."""
    if length < timedelta(minutes=1):
        return "less than a minute"
    hours, minutes = divmod(round(length / timedelta(minutes=1)), 60)
    days = hours // 24
    if days > 1 and timedelta(hours=hours) == timedelta(days=days) and not minutes:
        return f"{days} d"
    if not minutes:
        return f"{hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def find_zone(name: str) -> ZoneInfo:
    """Return the time zone of that name, such as Europe/Berlin. Raises ValueError, in words."""
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise ValueError(f"there is no time zone {name[:60]!r}; write one such as Europe/Berlin") from None
