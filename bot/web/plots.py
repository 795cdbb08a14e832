"""Draws plots of insights and usage as SVG, without scripts, for light and dark pages.

A *part* is what one row of a plot is about, such as a tool, a place or a person; its *tally* counts requests.
Each plot describes itself in words (``desc``), and its numbers are also in the answer that has the plot. All
text from outside is escaped.
"""

from collections.abc import Iterator, Sequence
from html import escape
from math import log
from typing import NamedTuple, TypeVar

from bot.domain.chat import UsageRow
from bot.domain.insights import DAYS, HOURS, InsightPart, Insights, Tally
from bot.domain.prices import format_money
from bot.domain.text import make_visible, one_line, replace_unstorable, shorten

T = TypeVar("T")
_MAX_ROWS = 12  # the most rows of a plot; the table on the same page has all
_MAX_NAME_CHARS = 18

# All lengths are in pixels; in SVG a text's position is the position of its baseline. Lengths without a name
# in the functions below are small adjustments, chosen by eye.
_WIDTH = 560
_NAMES_WIDTH = 140
_COUNTS_WIDTH = 60  # the room for the numbers behind the bars
_BARS_WIDTH = _WIDTH - _NAMES_WIDTH - _COUNTS_WIDTH
_AMOUNTS_WIDTH = 100  # the room for costs and tokens, which are longer
_MARGIN = 8
_GAP = 8
_TITLE_HEIGHT = 26
_ROW_HEIGHT = 30
_BAR_HEIGHT = 22
_TEXT_BASELINE = 16  # the distance of a text's baseline from the top of its bar
_LEGEND_SIDE = 12
_LEGEND_ENTRY_WIDTH = 110
_HOUR_NAMES_BASELINE = 40
_WEEK_TOP = 48
_DAY_HEIGHT = 24
_DAY_NAMES_WIDTH = 100
_HOUR_WIDTH = (_WIDTH - _DAY_NAMES_WIDTH - 10) / HOURS
_MIN_SHADE = 0.25  # the lightest shade of an hour with requests; the busiest hour has 1

_MINUTE = 60  # seconds, as in the next four lines
_HOUR = 3600
_DAY = 86400
_MIN_SECONDS = 10  # the beginning of the scale of times
_MAX_SECONDS = 14 * _DAY  # its end
_PLAIN_COLOUR_OF = "edited"  # the outcome whose colour bars have that stand for no outcome
_TICKS = {
    _MINUTE: "1 min",
    10 * _MINUTE: "10 min",
    _HOUR: "1 h",
    6 * _HOUR: "6 h",
    _DAY: "1 d",
    7 * _DAY: "7 d",
}
"""The marks on the scale of times, by their seconds."""


class _Outcome(NamedTuple):
    """An outcome of requests, which is a segment of a bar."""

    label: str
    light_colour: str  # on light pages
    dark_colour: str  # on dark pages


_OUTCOMES = {
    "approved": _Outcome("As asked", "#1f6b45", "#83d3a4"),
    "edited": _Outcome("Edited first", "#1d5f8a", "#8cc4ec"),
    "declined": _Outcome("Declined", "#a5281d", "#ff9d92"),
    "expired": _Outcome("Expired", "#9a6a00", "#eec06a"),
    "rest": _Outcome("Open", "#8d938f", "#737a78"),
}

_STYLE = (
    "text{font:13px system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){.ground{fill:#1c1f22}.ink{fill:#e8eae8}.soft{fill:#a3aaa7}"
    ".line{stroke:#32373a}.none{fill:#24282b}.mark{fill:#7fc9ad}"
    + "".join(f".{name}{{fill:{outcome.dark_colour}}}" for name, outcome in _OUTCOMES.items())
    + "}"
)


def draw_plots(insights: Insights, parts: Sequence[InsightPart]) -> dict[str, str]:
    """Return the plots of ``asked`` (outcomes), ``time`` (to decide) and ``week``, of the largest parts."""
    shown = [part for part in parts if part.tally.asked][:_MAX_ROWS]
    timed = [part for part in shown if part.tally.waits]  # those with times to decide
    return {"asked": _draw_asked(shown), "time": _draw_times(timed), "week": _draw_week(insights.week)}


def draw_usage_plots(parts: Sequence[UsageRow], currency: str) -> dict[str, str]:
    """Return the plots ``cost`` and ``tokens`` of the first `_MAX_ROWS` parts."""
    shown = parts[:_MAX_ROWS]
    costs = []
    for part in shown:
        price = "" if part.cost is None else format_money(part.cost, currency)
        costs.append((part, part.cost or 0.0, price))
    tokens = [(part, float(part.tokens), f"{part.tokens:,}") for part in shown]
    return {"cost": _draw_usage(f"Cost in {currency}", costs), "tokens": _draw_usage("Tokens", tokens)}


def _draw_usage(title: str, amounts: Sequence[tuple[UsageRow, float, str]]) -> str:
    """Draw a bar for each part, with its amount in words behind it."""
    largest = max((amount for _, amount, _ in amounts), default=0) or 1
    shapes = []
    for top, (part, amount, words) in _place_rows(amounts):
        width = (_WIDTH - _NAMES_WIDTH - _AMOUNTS_WIDTH) * amount / largest
        if amount:
            shapes.append(_draw_bar(_PLAIN_COLOUR_OF, _NAMES_WIDTH, top, width))
        shapes.append(_draw_name(part.name or part.key, top))
        shapes.append(_draw_text(_NAMES_WIDTH + width + _GAP, top + _TEXT_BASELINE, words))
    description = "; ".join(f"{part.name or part.key}: {words or 'no price'}" for part, _, words in amounts)
    return _make_svg(title, description, _find_bottom(len(amounts)) + 6, shapes)


def _draw_asked(parts: Sequence[InsightPart]) -> str:
    """Draw a bar for each part, with a segment for each outcome of its requests, and a legend below."""
    largest = max((part.tally.asked for part in parts), default=1)
    shapes = []
    for top, part in _place_rows(parts):
        x = float(_NAMES_WIDTH)
        for name, count in _split_tally(part.tally).items():
            width = _BARS_WIDTH * count / largest
            if count:
                shapes.append(_draw_bar(name, x, top, width))
            x += width
        shapes.append(_draw_name(part.name, top))
        shapes.append(_draw_text(x + _GAP, top + 18, str(part.tally.asked)))

    legend_top = _find_bottom(len(parts)) + 12
    for number, (name, outcome) in enumerate(_OUTCOMES.items()):
        x = _MARGIN + number * _LEGEND_ENTRY_WIDTH
        shapes.append(_draw_bar(name, x, legend_top, _LEGEND_SIDE, _LEGEND_SIDE))
        shapes.append(_draw_text(x + _LEGEND_SIDE + 6, legend_top + 11, outcome.label, "soft"))

    description = "; ".join(f"{part.name}: {part.tally.description}" for part in parts)
    height = legend_top + 2 * _LEGEND_SIDE
    return _make_svg("How often people were asked, and how that ended", description, height, shapes)


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
    """Draw a line for each part on a logarithmic scale: from the median time to that of the slowest tenth."""
    bottom = _find_bottom(len(parts))
    shapes = []
    for seconds, words in _TICKS.items():
        x = _place_on_scale(seconds)
        line = f'<line class="line" stroke="#deded8" x1="{x:.0f}" x2="{x:.0f}" y1="22" y2="{bottom}"/>'
        shapes += [line, _draw_text(x, bottom + _TEXT_BASELINE, words, "soft", middle=True)]
    for top, part in _place_rows(parts):
        begin = _place_on_scale(part.tally.median_seconds or 0)
        end = _place_on_scale(part.tally.slowest_seconds or 0)
        shapes.append(_draw_name(part.name, top))
        shapes.append(_draw_bar(_PLAIN_COLOUR_OF, begin, top + 8, max(end - begin, 2), 6))
        shapes.append(f'<circle class="mark" fill="#245c4b" cx="{begin:.0f}" cy="{top + 11}" r="6"/>')
    descriptions = []
    for part in parts:
        _, _, words_on_times = part.tally.description.partition("; ")  # the words before are on outcomes
        descriptions.append(f"{part.name}: {words_on_times}")
    description = "; ".join(descriptions)
    title = "Time to decide: the dot is the median, the line ends where the slowest tenth begins"
    return _make_svg(title, description, bottom + 26, shapes)


def _place_on_scale(seconds: float) -> float:
    """Return the x of a time on the logarithmic scale; a time beyond its ends is at the end."""
    on_scale = min(max(seconds, _MIN_SECONDS), _MAX_SECONDS)
    share = log(on_scale / _MIN_SECONDS) / log(_MAX_SECONDS / _MIN_SECONDS)
    return _NAMES_WIDTH + share * (_BARS_WIDTH + 30)


def _draw_week(week: Sequence[Sequence[int]]) -> str:
    """Draw a square for each hour of the week; the darker, the more requests."""
    largest = max(max(hours) for hours in week) or 1
    shapes = []
    for hour in range(0, HOURS, 3):
        x = _DAY_NAMES_WIDTH + hour * _HOUR_WIDTH
        shapes.append(_draw_text(x, _HOUR_NAMES_BASELINE, f"{hour:02}", "soft"))

    busiest: list[tuple[int, int, int]] = []  # count, day, hour
    for day, hours in enumerate(week):
        top = _WEEK_TOP + day * _DAY_HEIGHT
        shapes.append(_draw_text(_MARGIN, top + _TEXT_BASELINE, DAYS[day]))
        for hour, count in enumerate(hours):
            x = _DAY_NAMES_WIDTH + hour * _HOUR_WIDTH
            shapes.append(_draw_hour(x, top, count / largest))
            if count:
                busiest.append((count, day, hour))

    busiest.sort(reverse=True)
    description = "; ".join(f"{DAYS[day]} {hour:02}:00: {count}" for count, day, hour in busiest[:5])
    if description:
        description = f"Most often: {description}"
    bottom = _WEEK_TOP + len(DAYS) * _DAY_HEIGHT
    return _make_svg("When people are asked, by weekday and hour", description, bottom + _MARGIN, shapes)


def _draw_hour(x: float, top: int, share: float) -> str:
    """Draw the square of an hour; ``share``: its requests, as a share of the busiest hour's."""
    shade = _MIN_SHADE + (1 - _MIN_SHADE) * share
    if share:
        attributes = f'class="mark" fill="#245c4b" fill-opacity="{shade:.2f}"'
    else:
        attributes = 'class="none" fill="#f0f0ec"'
    width = _HOUR_WIDTH - 2
    return f'<rect {attributes} x="{x:.1f}" y="{top}" width="{width:.1f}" height="{_BAR_HEIGHT}"/>'


def _place_rows(parts: Sequence[T]) -> Iterator[tuple[int, T]]:
    """Yield the top of each row with its part."""
    for number, part in enumerate(parts):
        yield _find_bottom(number), part


def _find_bottom(row_count: int) -> int:
    """Return the y below the first ``row_count`` rows."""
    return _TITLE_HEIGHT + row_count * _ROW_HEIGHT


def _draw_bar(name: str, x: float, y: float, width: float, height: int = _BAR_HEIGHT) -> str:
    """Draw a bar in the colour of an outcome, by its name."""
    colour = _OUTCOMES[name].light_colour
    return f'<rect class="{name}" fill="{colour}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"/>'


def _draw_name(name: str, top: int) -> str:
    return _draw_text(_MARGIN, top + _TEXT_BASELINE, shorten(name, _MAX_NAME_CHARS))


def _draw_text(x: float, y: float, text: str, css_class: str = "ink", *, middle: bool = False) -> str:
    colour = "#1c1f1e" if css_class == "ink" else "#5b625f"
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{css_class}" fill="{colour}" x="{x:.1f}" y="{y:.1f}"{anchor}>{_escape(text)}</text>'


def _make_svg(title: str, description: str, height: float, shapes: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-labelledby="t d"><title id="t">{_escape(title)}</title>'
        f'<desc id="d">{_escape(description)}</desc>'
        f"<style>{_STYLE}</style>"
        f'<rect class="ground" fill="#ffffff" width="{_WIDTH}" height="{height:.0f}" rx="8"/>'
        f"{_draw_text(_MARGIN, _TEXT_BASELINE, title, 'soft')}{''.join(shapes)}</svg>"
    )


def _escape(text: str) -> str:
    return escape(make_visible(one_line(replace_unstorable(text)), lambda point: f"U+{point:04X}"))
