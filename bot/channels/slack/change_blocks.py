"""The change of a proposal as lines of rich text: its fields, the rows of a batch, the steps of a plan. Pure.

Each function keeps to a number of Slack's units (`text.width`), and says if it cut something of the change.
A row's fault does not count for that.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bot.channels.card_text import row_sign
from bot.channels.slack import text
from bot.channels.slack.blocks import BLANK, RichLine, TextRun, cut_for_display
from bot.domain.cards import BatchRow, Card
from bot.domain.diffs import diff
from bot.domain.plans import PlanLine
from bot.domain.preview import REMOVED, PreviewField

INLINE_UNITS = 120  # a longer value has lines of its own
_REMARK_UNITS = 120  # the fault, or a note, at the end of a row's line
_MAX_FIELDS = 20
_ALL_VALUES_UNITS = 4000  # room for all values of the change together
_MAX_VALUE_UNITS = 1500
_MIN_VALUE_UNITS = 100
_FIELD_NAME_UNITS = 60
_SUBJECT_UNITS = 300  # the subject of a row
_BATCH_UNITS = 6000  # room for all rows of a batch together
_ROW_VALUE_DIVISOR = 4  # a value of a row takes at most 1/4 of the room for all rows


class Excerpt(NamedTuple):
    """Lines of a text, and True if some of it was cut."""

    lines: list[RichLine]
    is_cut: bool


def render_change(card: Card) -> Excerpt:
    """Return the change as lines: those of a plan, otherwise the fields.

    The lines of a batch are made by `render_batch_rows`.
    """
    plan_lines = card.outline
    if plan_lines:
        return _render_plan(plan_lines)
    fields = card.shown_fields[:_MAX_FIELDS]
    room = _find_room_per_value(2 * len(fields))  # an old and a new value each
    lines: list[RichLine] = []
    is_cut = False
    for field in fields:
        excerpt = render_field(field, room)
        lines += excerpt.lines
        is_cut = is_cut or excerpt.is_cut
    missing = len(card.shown_fields) - len(fields)
    if missing:
        lines.append(RichLine((TextRun(f"… [{missing} more fields]", "italic"),)))
    return Excerpt(lines, is_cut or missing > 0)


def _find_room_per_value(value_count: int) -> int:
    """Return the room for each of a number of values, in units."""
    share = _ALL_VALUES_UNITS // max(1, value_count)
    return min(_MAX_VALUE_UNITS, max(_MIN_VALUE_UNITS, share))


def _render_plan(plan_lines: Sequence[PlanLine]) -> Excerpt:
    """Return a plan: its numbered steps, each with its tools, and its other lines, such as the risks."""
    room = _find_room_per_value(len(plan_lines))
    lines: list[RichLine] = []
    is_cut = False
    for plan_line in plan_lines:
        words, are_words_cut = text.cut(plan_line.text, room)
        mark, is_mark_cut = text.cut(plan_line.mark, room)
        is_cut = is_cut or are_words_cut or is_mark_cut
        runs = [TextRun(words or BLANK)]
        if plan_line.label:
            runs.insert(0, TextRun(f"{plan_line.label}: ", "bold"))
        for name in plan_line.tools:
            runs += [TextRun("  "), TextRun(name, "code")]
        if mark:
            runs.append(TextRun(f"  ({mark})", "italic"))
        lines.append(RichLine(tuple(runs), numbered=bool(plan_line.number)))
    return Excerpt(lines, is_cut)


def render_batch_rows(rows: Sequence[BatchRow], room: int = _BATCH_UNITS, first: int = 1) -> Excerpt:
    """Return the rows of a batch within ``room`` units, numbered from ``first``.

    A row has its subject, and its differences or its outcome.
    """
    lines: list[RichLine] = []
    used_units = 0
    is_cut = False
    for position, row in enumerate(rows):
        excerpt = _render_row(first + position, row, room)
        used_units += sum(line.width for line in excerpt.lines)
        if used_units > room:
            missing = len(rows) - position
            lines.append(RichLine((TextRun(f"… [{missing} more rows]", "italic"),)))
            return Excerpt(lines, is_cut=True)
        lines += excerpt.lines
        is_cut = is_cut or excerpt.is_cut
    return Excerpt(lines, is_cut)


def _render_row(number: int, row: BatchRow, room: int) -> Excerpt:
    subject, is_cut = text.cut(text.one_line(row.about) or BLANK, _SUBJECT_UNITS)
    head = [TextRun(f"{number}. {row_sign(row)}"), TextRun(subject, "bold" if row.card.pending else "")]
    if not row.card.pending:
        fault = text.cut(f": {row.fault}", _REMARK_UNITS)[0] if row.fault else ""
        return Excerpt([RichLine((*head, TextRun(fault)))], is_cut)
    below: list[RichLine] = []
    for field in row.fields:
        excerpt = render_field(field, min(_MAX_VALUE_UNITS, room // _ROW_VALUE_DIVISOR))
        is_cut = is_cut or excerpt.is_cut
        if len(excerpt.lines) == 1:
            head += [TextRun(" · "), *excerpt.lines[0].runs]
        else:
            below += excerpt.lines
    for note in row.notes:
        shown_note, is_note_cut = text.cut(note, _REMARK_UNITS)
        is_cut = is_cut or is_note_cut
        head.append(TextRun(f" · {shown_note}", "italic"))
    return Excerpt([RichLine(tuple(head)), *below], is_cut)


def render_field(field: PreviewField, room: int) -> Excerpt:
    """Return one field of the change, with at most ``room`` units for each of its values.

    Short values are in one line. Of long texts that can be compared, the difference is shown; all other
    values have lines of their own.
    """
    name, is_name_cut = text.cut(field.field or BLANK, _FIELD_NAME_UNITS)
    old, is_old_cut = _cut_value(field.old_value, room)
    new, is_new_cut = _cut_value(field.new_value, room)
    label = TextRun(f"{name}: ", "bold")
    is_cut = is_name_cut or is_old_cut or is_new_cut
    if _fits_inline(old) and _fits_inline(new):
        return Excerpt([RichLine((label, *_make_inline_runs(old, new)))], is_cut)
    difference = diff(field.old_value, field.new_value)
    if difference is not None:  # it is made of the full values, so the cuts of the values don't count
        shown, is_difference_cut = cut_for_display(difference, 2 * room)
        lines = [RichLine((label,)), RichLine((TextRun(shown),), preformatted=True)]
        return Excerpt(lines, is_name_cut or is_difference_cut)
    if old is None:
        return Excerpt(_make_block_lines(label, "", new), is_cut)
    if field.old_value == field.new_value:
        return Excerpt(_make_block_lines(label, "(unchanged)", new), is_cut)
    if new is None:
        return Excerpt(_make_block_lines(label, f"({REMOVED})", old), is_cut)
    return Excerpt([*_make_block_lines(label, "now", old), *_make_block_lines(label, "will be", new)], is_cut)


def _cut_value(value: str | None, room: int) -> tuple[str | None, bool]:
    """Cut a value as `text.cut` does; None stays None, and is not cut."""
    if value is None:
        return None, False
    return text.cut(value, room)


def _fits_inline(value: str | None) -> bool:
    return value is None or (text.width(value) <= INLINE_UNITS and "\n" not in value)


def _make_block_lines(label: TextRun, remark: str, value: str | None) -> list[RichLine]:
    return [
        RichLine((label, TextRun(remark, "italic"))),
        RichLine((TextRun(value or BLANK),), preformatted=True),
    ]


def _make_inline_runs(old: str | None, new: str | None) -> tuple[TextRun, ...]:
    if new is not None:
        after = TextRun(new or BLANK)
    elif old is None:
        after = TextRun("(nothing)", "italic")
    else:
        after = TextRun(f"({REMOVED})", "italic")
    if old is None:
        return (after,)
    if old == new:
        return (after, TextRun(" (unchanged)", "italic"))
    return (TextRun(old or BLANK, "strike"), TextRun(" → "), after)
