"""Draws plots of insights and usage as SVG, without scripts, for light and dark pages.

Each plot describes itself in words (``desc``), and its numbers are also in the answer that has the plot. All
text from outside is escaped.
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
_MAX_ROWS = 12  # of a plot; the table has all
_WIDTH, _NAMES_WIDTH, _ROW_HEIGHT = 560, 140, 30  # pixels
_BARS_WIDTH = _WIDTH - _NAMES_WIDTH - 60  # the rest is for the numbers behind the bars
_OUTCOMES = {
    "approved": ("As asked", "#1f6b45", "#83d3a4"),
    "edited": ("Edited first", "#1d5f8a", "#8cc4ec"),
    "declined": ("Declined", "#a5281d", "#ff9d92"),
    "expired": ("Expired", "#9a6a00", "#eec06a"),
    "rest": ("Open", "#8d938f", "#737a78"),
}
"""The parts of a bar: each with its label, and its colours on light and dark pages."""
_TICKS = {60: "1 min", 600: "10 min", 3600: "1 h", 6 * 3600: "6 h", 86400: "1 d", 7 * 86400: "7 d"}

_STYLE = (
    "text{font:13px system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){.ground{fill:#1c1f22}.ink{fill:#e8eae8}.soft{fill:#a3aaa7}"
    ".line{stroke:#32373a}.none{fill:#24282b}.mark{fill:#7fc9ad}"
    + "".join(f".{name}{{fill:{dark}}}" for name, (_, _, dark) in _OUTCOMES.items())
    + "}"
)


def plots(insights: Insights, parts: Sequence[InsightPart]) -> dict[str, str]:
    """Return the plots of ``asked`` (outcomes), ``time`` (to decide) and ``week``, of the largest parts."""
    shown = [part for part in parts if part.tally.asked][:_MAX_ROWS]
    timed = [part for part in shown if part.tally.waits]
    return {"asked": _draw_asked(shown), "time": _draw_times(timed), "week": _draw_week(insights.week)}


def usage_plots(parts: Sequence[Used], currency: str) -> dict[str, str]:
    """Return the plots ``cost`` and ``tokens`` of the first parts."""
    shown = parts[:_MAX_ROWS]
    costs = []
    for part in shown:
        price = "" if part.cost is None else money(part.cost, currency)
        costs.append((part, part.cost or 0.0, price))
    tokens = [(part, float(part.tokens), f"{part.tokens:,}") for part in shown]
    return {"cost": _draw_usage(f"Cost in {currency}", costs), "tokens": _draw_usage("Tokens", tokens)}


def _draw_usage(title: str, amounts: Sequence[tuple[Used, float, str]]) -> str:
    """Draw a bar for each part, with its amount in words behind it."""
    largest = max((amount for _, amount, _ in amounts), default=0) or 1
    shapes = []
    for top, (part, amount, words) in _place_rows(amounts):
        width = (_BARS_WIDTH - 40) * amount / largest
        if amount:
            shapes.append(_draw_bar("edited", _NAMES_WIDTH, top, width))
        shapes += [
            _draw_name(part.name or part.key, top),
            _draw_text(_NAMES_WIDTH + width + 8, top + 16, words),
        ]
    description = "; ".join(f"{part.name or part.key}: {words or 'no price'}" for part, _, words in amounts)
    return _make_svg(title, description, 26 + len(amounts) * _ROW_HEIGHT + 6, shapes)


def _draw_asked(parts: Sequence[InsightPart]) -> str:
    largest = max((part.tally.asked for part in parts), default=1)
    shapes = []
    for top, part in _place_rows(parts):
        x = float(_NAMES_WIDTH)
        for name, count in _split_tally(part.tally).items():
            width = _BARS_WIDTH * count / largest
            if count:
                shapes.append(_draw_bar(name, x, top, width))
            x += width
        shapes += [_draw_name(part.name, top), _draw_text(x + 8, top + 18, str(part.tally.asked))]
    legend_top = 26 + len(parts) * _ROW_HEIGHT + 12
    for number, (name, (words, _, _)) in enumerate(_OUTCOMES.items()):
        x = 8 + number * 110
        shapes += [_draw_bar(name, x, legend_top, 12, 12), _draw_text(x + 18, legend_top + 11, words, "soft")]
    description = "; ".join(f"{part.name}: {part.tally.words}" for part in parts)
    return _make_svg("How often people were asked, and how that ended", description, legend_top + 24, shapes)


def _split_tally(tally: Tally) -> dict[str, int]:
    """Return the number of requests by outcome; together they are all requests."""
    ended = tally.approved + tally.declined + tally.expired
    return {
        "approved": tally.approved - tally.edited,
        "edited": tally.edited,
        "declined": tally.declined,
        "expired": tally.expired,
        "rest": tally.asked - ended,
    }


def _draw_times(parts: Sequence[InsightPart]) -> str:
    """Draw decision times on a logarithmic scale: from the median to the slowest tenth."""
    bottom = 26 + len(parts) * _ROW_HEIGHT
    shapes = []
    for seconds, words in _TICKS.items():
        x = _place_on_scale(seconds)
        line = f'<line class="line" stroke="#deded8" x1="{x:.0f}" x2="{x:.0f}" y1="22" y2="{bottom}"/>'
        shapes += [line, _draw_text(x, bottom + 16, words, "soft", middle=True)]
    for top, part in _place_rows(parts):
        median, slowest = part.tally.median_seconds or 0, part.tally.slowest_seconds or 0
        begin, end = _place_on_scale(median), _place_on_scale(slowest)
        shapes += [_draw_name(part.name, top), _draw_bar("edited", begin, top + 8, max(end - begin, 2), 6)]
        shapes += [f'<circle class="mark" fill="#245c4b" cx="{begin:.0f}" cy="{top + 11}" r="6"/>']
    description = "; ".join(f"{part.name}: {part.tally.words.partition('; ')[2]}" for part in parts)
    title = "Time to decide: the dot is the median, the line ends where the slowest tenth begins"
    return _make_svg(title, description, bottom + 26, shapes)


def _place_on_scale(seconds: float) -> float:
    """Return the x of a time on the logarithmic scale, which goes from ten seconds to two weeks."""
    share = log(min(max(seconds, 10), 14 * 86400) / 10) / log(14 * 86400 / 10)
    return _NAMES_WIDTH + share * (_BARS_WIDTH + 30)


def _draw_week(week: Sequence[Sequence[int]]) -> str:
    """Draw a square for each hour of the week; the darker, the more requests."""
    largest = max(map(max, week)) or 1
    size = (_WIDTH - 110) / HOURS
    shapes = [_draw_text(100 + hour * size, 40, f"{hour:02}", "soft") for hour in range(0, HOURS, 3)]
    for day, hours in enumerate(week):
        top = 48 + day * 24
        shapes.append(_draw_text(8, top + 16, DAYS[day]))
        for hour, count in enumerate(hours):
            shade = 0.25 + 0.75 * count / largest
            if count:
                attributes = f'class="mark" fill="#245c4b" fill-opacity="{shade:.2f}"'
            else:
                attributes = 'class="none" fill="#f0f0ec"'
            x = 100 + hour * size
            shapes.append(f'<rect {attributes} x="{x:.1f}" y="{top}" width="{size - 2:.1f}" height="22"/>')
    busiest = [
        (count, day, hour) for day, hours in enumerate(week) for hour, count in enumerate(hours) if count
    ]
    busiest.sort(reverse=True)
    description = "; ".join(f"{DAYS[day]} {hour:02}:00: {count}" for count, day, hour in busiest[:5])
    if description:
        description = f"Most often: {description}"
    return _make_svg("When people are asked, by weekday and hour", description, 48 + 7 * 24 + 8, shapes)


def _place_rows(parts: Sequence[T]) -> Iterator[tuple[int, T]]:
    """Yield the top of each row with its part."""
    for number, part in enumerate(parts):
        yield 26 + number * _ROW_HEIGHT, part


def _draw_bar(name: str, x: float, y: float, width: float, height: int = 22) -> str:
    light = _OUTCOMES[name][1]
    return f'<rect class="{name}" fill="{light}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"/>'


def _draw_name(name: str, top: int) -> str:
    return _draw_text(8, top + 16, shorten(name, 18))


def _draw_text(x: float, y: float, words: str, look: str = "ink", *, middle: bool = False) -> str:
    colour = "#1c1f1e" if look == "ink" else "#5b625f"
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{look}" fill="{colour}" x="{x:.1f}" y="{y:.1f}"{anchor}>{_escape(words)}</text>'


def _make_svg(title: str, description: str, height: float, shapes: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-labelledby="t d"><title id="t">{_escape(title)}</title>'
        f'<desc id="d">{_escape(description)}</desc>'
        f"<style>{_STYLE}</style>"
        f'<rect class="ground" fill="#ffffff" width="{_WIDTH}" height="{height:.0f}" rx="8"/>'
        f"{_draw_text(8, 16, title, 'soft')}{''.join(shapes)}</svg>"
    )


def _escape(words: str) -> str:
    return escape(make_visible(one_line(storable(words)), lambda point: f"U+{point:04X}"))
