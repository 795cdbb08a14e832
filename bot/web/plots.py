"""Plots of insights and of usage as SVG: light and dark in one picture, no script, and the same in words.

Each is a text of its own with nothing from outside in it but escaped words. What it shows stands in the
answer as numbers, too.
"""

from collections.abc import Iterator, Sequence
from html import escape
from math import log
from typing import TypeVar

from bot.domain.chat import Used
from bot.domain.insights import DAYS, HOURS, InsightPart, Insights, Tally
from bot.domain.prices import money
from bot.domain.text import make_visible, one_line, shorten, storable

T = TypeVar("T")
_TOLD = 12  # rows of a plot; the table has all
_WIDTH, _NAMES, _ROW = 560, 140, 30  # pixels
_FIELD = _WIDTH - _NAMES - 60  # what bars may fill, before the number behind them
_ENDS = {
    "approved": ("As asked", "#1f6b45", "#83d3a4"),
    "edited": ("Edited first", "#1d5f8a", "#8cc4ec"),
    "declined": ("Declined", "#a5281d", "#ff9d92"),
    "expired": ("Expired", "#9a6a00", "#eec06a"),
    "rest": ("Open", "#8d938f", "#737a78"),
}
"""What a bar is made of: in words, and its colour in the light and in the dark."""
_TICKS = {60: "1 min", 600: "10 min", 3600: "1 h", 6 * 3600: "6 h", 86400: "1 d", 7 * 86400: "7 d"}

_STYLE = (
    "text{font:13px system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){.ground{fill:#1c1f22}.ink{fill:#e8eae8}.soft{fill:#a3aaa7}"
    ".line{stroke:#32373a}.none{fill:#24282b}.mark{fill:#7fc9ad}"
    + "".join(f".{name}{{fill:{dark}}}" for name, (_, _, dark) in _ENDS.items())
    + "}"
)


def plots(found: Insights, parts: Sequence[InsightPart]) -> dict[str, str]:
    """Draw ``asked`` (the outcomes) and ``time`` (of decisions) for the largest parts, and ``week``."""
    shown = [part for part in parts if part.tally.asked][:_TOLD]
    timed = [part for part in shown if part.tally.waits]
    return {"asked": _draw_asked(shown), "time": _time(timed), "week": _week(found.week)}


def usage_plots(parts: Sequence[Used], currency: str) -> dict[str, str]:
    """Draw ``cost`` and ``tokens`` of the first parts."""
    shown = parts[:_TOLD]
    costs = [
        (part, part.cost or 0.0, "" if part.cost is None else money(part.cost, currency)) for part in shown
    ]
    tokens = [(part, float(part.tokens), f"{part.tokens:,}") for part in shown]
    return {"cost": _bars(f"Cost in {currency}", costs), "tokens": _bars("Tokens", tokens)}


def _bars(title: str, amounts: Sequence[tuple[Used, float, str]]) -> str:
    """Return a bar for each part, with its amount in words behind it."""
    most = max((amount for _, amount, _ in amounts), default=0) or 1
    drawn = []
    for at, (part, amount, words) in _rows(amounts):
        width = (_FIELD - 40) * amount / most
        drawn += [_bar("edited", _NAMES, at, width)] if amount else []
        drawn += [_name(part.name or part.key, at), _text(_NAMES + width + 8, at + 16, words)]
    said = "; ".join(f"{part.name or part.key}: {words or 'no price'}" for part, _, words in amounts)
    return _svg(title, said, 26 + len(amounts) * _ROW + 6, drawn)


def _draw_asked(parts: Sequence[InsightPart]) -> str:
    most = max((part.tally.asked for part in parts), default=1)
    drawn = []
    for at, part in _rows(parts):
        left = float(_NAMES)
        for name, many in _pieces(part.tally).items():
            width = _FIELD * many / most
            drawn += [_bar(name, left, at, width)] if many else []
            left += width
        drawn += [_name(part.name, at), _text(left + 8, at + 18, str(part.tally.asked))]
    top = 26 + len(parts) * _ROW + 12
    for number, (name, (words, _, _)) in enumerate(_ENDS.items()):
        left = 8 + number * 110
        drawn += [_bar(name, left, top, 12, 12), _text(left + 18, top + 11, words, "soft")]
    said = "; ".join(f"{part.name}: {part.tally.words}" for part in parts)
    return _svg(
        "How often people were asked, and how that ended",
        said,
        top + 24,
        drawn,
    )


def _pieces(tally: Tally) -> dict[str, int]:
    """Return the pieces of a bar; together they are all requests."""
    ended = tally.approved + tally.declined + tally.expired
    return {
        "approved": tally.approved - tally.edited,
        "edited": tally.edited,
        "declined": tally.declined,
        "expired": tally.expired,
        "rest": tally.asked - ended,
    }


def _time(parts: Sequence[InsightPart]) -> str:
    """Draw decision times on a logarithmic scale: from the median to the slowest tenth."""
    bottom = 26 + len(parts) * _ROW
    drawn = []
    for seconds, words in _TICKS.items():
        x = _along(seconds)
        line = f'<line class="line" stroke="#deded8" x1="{x:.0f}" x2="{x:.0f}" y1="22" y2="{bottom}"/>'
        drawn += [line, _text(x, bottom + 16, words, "soft", middle=True)]
    for at, part in _rows(parts):
        half, tenth = part.tally.median_seconds or 0, part.tally.slowest_seconds or 0
        begin, end = _along(half), _along(tenth)
        drawn += [_name(part.name, at), _bar("edited", begin, at + 8, max(end - begin, 2), 6)]
        drawn += [f'<circle class="mark" fill="#245c4b" cx="{begin:.0f}" cy="{at + 11}" r="6"/>']
    said = "; ".join(f"{part.name}: {part.tally.words.partition('; ')[2]}" for part in parts)
    return _svg(
        "Time to decide: the dot is the median, the line ends where the slowest tenth begins",
        said,
        bottom + 26,
        drawn,
    )


def _along(seconds: float) -> float:
    share = log(min(max(seconds, 10), 14 * 86400) / 10) / log(14 * 86400 / 10)
    return _NAMES + share * (_FIELD + 30)


def _week(week: Sequence[Sequence[int]]) -> str:
    most = max(map(max, week)) or 1
    size = (_WIDTH - 110) / HOURS
    drawn = [_text(100 + hour * size, 40, f"{hour:02}", "soft") for hour in range(0, HOURS, 3)]
    for day, hours in enumerate(week):
        at = 48 + day * 24
        drawn.append(_text(8, at + 16, DAYS[day]))
        for hour, many in enumerate(hours):
            shade = 0.25 + 0.75 * many / most
            look = (
                f'class="mark" fill="#245c4b" fill-opacity="{shade:.2f}"'
                if many
                else 'class="none" fill="#f0f0ec"'
            )
            drawn.append(
                f'<rect {look} x="{100 + hour * size:.1f}" y="{at}" width="{size - 2:.1f}" height="22"/>'
            )
    busy = sorted(
        ((many, day, hour) for day, hours in enumerate(week) for hour, many in enumerate(hours) if many),
        reverse=True,
    )
    said = "; ".join(f"{DAYS[day]} {hour:02}:00: {many}" for many, day, hour in busy[:5])
    return _svg(
        "When people are asked, by weekday and hour",
        f"Most often: {said}" if said else "",
        48 + 7 * 24 + 8,
        drawn,
    )


def _rows(parts: Sequence[T]) -> Iterator[tuple[int, T]]:
    return ((26 + number * _ROW, part) for number, part in enumerate(parts))


def _bar(name: str, x: float, y: float, width: float, height: int = 22) -> str:
    light = _ENDS[name][1]
    return f'<rect class="{name}" fill="{light}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"/>'


def _name(name: str, at: int) -> str:
    return _text(8, at + 16, shorten(name, 18))


def _text(x: float, y: float, words: str, look: str = "ink", *, middle: bool = False) -> str:
    colour = "#1c1f1e" if look == "ink" else "#5b625f"
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{look}" fill="{colour}" x="{x:.1f}" y="{y:.1f}"{anchor}>{_safe(words)}</text>'


def _svg(title: str, said: str, height: float, drawn: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-labelledby="t d"><title id="t">{_safe(title)}</title><desc id="d">{_safe(said)}</desc>'
        f"<style>{_STYLE}</style>"
        f'<rect class="ground" fill="#ffffff" width="{_WIDTH}" height="{height:.0f}" rx="8"/>'
        f"{_text(8, 16, title, 'soft')}{''.join(drawn)}</svg>"
    )


def _safe(words: str) -> str:
    return escape(make_visible(one_line(storable(words)), lambda point: f"U+{point:04X}"))
