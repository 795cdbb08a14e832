"""Times and durations, parsed and formatted in one place, for people in their time zone.

``36h`` is how an admin writes a length, in settings and rules; `span` gives it as people say it: "36 h".

Python adds to and compares two moments of one time zone by the clock on the wall, also where the clocks
change between them. So a length of time is added to an instant, and moments are compared as instants (UTC).
"""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"([0-9]{1,7})([smhdw])")
_LONGEST = timedelta(days=3660)

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_SETS: Mapping[str, Collection[int]] = {
    "day": range(7),
    "weekday": range(5),
    "weekend": (5, 6),
    **{day: (at,) for at, day in enumerate(DAYS)},
}
_APART = re.compile(r"\s*(?:,|\band\b|\s)\s*")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?:([+-])([01][0-9]):([0-5][0-9]))?")
_SAY = "write a moment such as 18:00, friday 18:00, 2026-12-01 or in 2h"

_HOUR = timedelta(hours=1)
_DAYS_FROM = timedelta(hours=48)  # "36 h" says more than "2 d"


def when(at: datetime, now: datetime) -> str:
    """Say when something was or will be, as seen from ``now``."""
    left = at.astimezone(UTC) - now.astimezone(UTC)
    ahead, away = left > timedelta(), abs(left)
    if away < timedelta(minutes=1):
        if ahead:
            return "in less than a minute"
        return "just now"
    # what is ahead is rounded to the nearest, so that 24 h given a moment ago still are 24 h
    half = 0.5 if ahead else 0.0
    if away < _HOUR:
        far = f"{int(away / timedelta(minutes=1) + half)} min"
    elif away < _DAYS_FROM:
        far = f"{int(away / _HOUR + half)} h"
    else:
        far = f"{int(away / timedelta(days=1) + half)} d"
    if ahead:
        return f"in {far}"
    return f"{far} ago"


def expires(at: datetime, now: datetime) -> str:
    """Format a time of expiry, also one that is over: a pause makes proposals wait longer."""
    return f"{'expires' if at.astimezone(UTC) > now.astimezone(UTC) else 'was due to expire'} {when(at, now)}"


def stamp(at: datetime, zone: tzinfo) -> str:
    """Return a moment as people in a time zone read it: ``22 Nov, 21:46 CET``."""
    return local(at.astimezone(zone))


def local(at: datetime) -> str:
    """Format a moment that is already in the reader's time zone."""
    return f"{at.day} {at:%b, %H:%M %Z}"


def now() -> datetime:
    """Return the real time. ``bot/app.py`` and the command line hand this clock to everything else."""
    return datetime.now(UTC)


def duration(text: str) -> timedelta:
    """Read ``90s``, ``15m``, ``24h``, ``7d`` or ``2w``; raises ValueError for any other text."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError("write a duration such as 90s, 15m, 24h, 7d or 2w")
    length = timedelta(seconds=int(found[1]) * _UNITS[found[2]])
    if not timedelta(seconds=1) <= length <= _LONGEST:
        raise ValueError("write a duration from 1s to 520w")
    return length


def later(now: datetime, length: timedelta) -> datetime:
    """Return the moment that long after ``now``, in its time zone, whatever the clocks do in between."""
    return (now.astimezone(UTC) + length).astimezone(now.tzinfo)


def moment(text: str, now: datetime, *, last: bool = False) -> datetime:
    """Read ``18:00``, ``friday``, ``friday 18:00``, ``tomorrow 9:00``, ``2026-12-01 18:00`` or ``in 2h``.

    It is the first such moment after ``now``, in its time zone; a day alone is its beginning. Of a time that
    the clocks repeat it is the first, or the ``last`` one; ``02:30+02:00`` names one of the two. Raises
    ValueError for any other text, for a date that is over, and for a time that the clocks skip.
    """
    said = text.strip().lower()
    length = _DURATION.fullmatch(said.removeprefix("in ").strip())
    if length:
        return later(now, duration(length[0]))
    day, _, clock = said.rpartition(" ")
    alone = bool(clock) and not day and not _CLOCK.fullmatch(clock)
    if alone:
        day, clock = clock, "00:00"
    found = _CLOCK.fullmatch(clock)
    if found is None:
        raise ValueError(_SAY)
    first, step = _day_called(day, now.date())
    for at in (first, first + timedelta(days=step)):
        every = _moments(at, found, now.tzinfo or UTC, alone=alone)
        after = [each for each in every if each.astimezone(UTC) > now.astimezone(UTC)]
        if after:
            return after[-1] if last else after[0]
    raise ValueError("that is over already")


def _day_called(day: str, today: date) -> tuple[date, int]:
    """Return the day that is named, and in how many days it comes again; 0 where it does not."""
    if day in DAYS:
        return today + timedelta(days=(DAYS.index(day) - today.weekday()) % 7), 7
    if day in ("", "today", "tomorrow"):
        return today + timedelta(days=day == "tomorrow"), int(not day)
    try:
        return date.fromisoformat(day.strip()), 0
    except ValueError:
        raise ValueError(_SAY) from None


def _moments(day: date, clock: re.Match[str], zone: tzinfo, *, alone: bool) -> list[datetime]:
    """Return the moments of a day at which the clocks show that time: one, or two where they repeat it."""
    at = datetime.combine(day, time(int(clock[1]), int(clock[2])), zone)
    if clock[3]:
        ahead = timedelta(hours=int(clock[4]), minutes=int(clock[5])) * (-1 if clock[3] == "-" else 1)
        return [at.replace(tzinfo=timezone(ahead)).astimezone(zone)]
    if is_skipped(at):
        real = at.astimezone(UTC).astimezone(zone)
        if not alone:
            raise ValueError(
                f"{at:%H:%M} does not exist on {at.day} {at:%B %Y}: the clocks go forward then, "
                f"to {real:%H:%M} {real:%Z}. Write another time"
            )
        return [real]  # the day begins with it
    if is_repeated(at):
        return [at, at.replace(fold=1)]
    return [at]


def is_skipped(at: datetime) -> bool:
    """Return whether the clocks of its time zone go forward over that time, so that it is never shown."""
    before, after = _offsets(at)
    return before < after


def is_repeated(at: datetime) -> bool:
    """Return whether the clocks of its time zone go back over that time, so that it is shown twice."""
    before, after = _offsets(at)
    return before > after


def _offsets(at: datetime) -> tuple[timedelta, timedelta]:
    before, after = (at.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return before, after


def clock_change(at: datetime) -> str:
    """Say which of two it is, of a time that the clocks repeat; empty for any other."""
    if not is_repeated(at):
        return ""
    which = "last" if at.fold else "first"
    return f"The clocks show {at:%H:%M} twice on {at.day} {at:%B %Y}. This is the {which}, {at:%Z}."


def format_moment(at: datetime) -> str:
    """Return a moment as `moment` reads it: ``2026-12-01 18:00``, with its offset where it comes twice."""
    offset = at.isoformat()[-6:] if is_repeated(at) else ""
    return f"{at:%Y-%m-%d %H:%M}{offset}"


def read_dated(text: str, zone: tzinfo) -> datetime:
    """Parse a date and time in a time zone. Raises ValueError."""
    read = datetime.fromisoformat(text.strip())
    if read.tzinfo:
        return read.astimezone(zone)
    return read.replace(tzinfo=zone)


def weekdays(text: str) -> frozenset[int]:
    """Return the days of the week that ``weekdays`` or ``monday and thursday`` names.

    None for other words.
    """
    parts = filter(None, _APART.split(text.strip().lower()))
    names = [each if each in _DAY_SETS else each.removesuffix("s") for each in parts]
    named = all(each in _DAY_SETS for each in names)
    if named:
        return frozenset(day for each in names for day in _DAY_SETS[each])
    return frozenset()


def days_said(days: Collection[int]) -> str:
    """Format weekdays as an admin types them, in the shortest way."""
    some = next((name for name in ("weekday", "weekend") if set(days) == set(_DAY_SETS[name])), None)
    if some:
        return f"{some}s"
    return " and ".join(DAYS[day] for day in sorted(days))


def format_length(seconds: float) -> str:
    """Return a length of time as an admin would write it, such as ``36h``; an odd one in several units."""
    left = round(seconds)
    units = [(unit, size) for unit, size in _UNITS.items() if unit != "w"]
    for unit, size in units:
        if left and left % size == 0 and unit != "s":
            return f"{left // size}{unit}"
    parts = []
    for unit, size in units:
        count, left = divmod(left, size)
        parts += [f"{count}{unit}"] if count else []
    return " ".join(parts) or "0s"


def span(length: timedelta) -> str:
    """Return a length of time as people say it: ``30 min``, ``24 h``, ``3 d``."""
    if length < timedelta(minutes=1):
        return "less than a minute"
    minutes = round(length / timedelta(minutes=1))
    if minutes % 1440 == 0 and minutes > 1440:  # noqa: PLR2004 - a day is 24 h
        return f"{minutes // 1440} d"
    if minutes % 60 == 0:
        return f"{minutes // 60} h"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"  # noqa: PLR2004


def find_zone(name: str) -> ZoneInfo:
    """Return the time zone of that name, such as Europe/Berlin. Raises ValueError, in words."""
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise ValueError(f"there is no time zone {name[:60]!r}; write one such as Europe/Berlin") from None
