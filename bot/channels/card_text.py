"""A card as one text message: its content, its order, and what is cut. Pure.

For platforms whose cards are text with a few styles, as Telegram's and Discord's are; how a platform writes a
style is its `TextBuilder`. A card whose change does not fit is cut with a mark, and View all shows the rest
before it can be approved. A long reason is only shortened.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Generic, Protocol, TypeVar

from bot.domain.annotations import Annotation
from bot.domain.cards import BatchRow, Card
from bot.domain.diffs import diff
from bot.domain.files import RESULT_SHOWN
from bot.domain.people import Actor
from bot.domain.plans import PlanLine
from bot.domain.proposals import REMOVED, PreviewField, Tone
from bot.domain.redaction import redact_text
from bot.domain.teams import Standing, Teammate, TeamStatus
from bot.domain.text import escape_point, make_visible, whole_until
from bot.domain.times import format_local

_CUT = "… cut here: View all shows the rest, then it can be approved."
_VALUE_UNITS = 700  # of one value of the change; longer ones are cut
_VALUE_LINES = 20
_LINE_UNITS = 200  # of a name, a link
_REASON_UNITS = 300
_NOTE_UNITS = 120  # of one vote or note, of what a teammate says
_NOTES = 4  # of each, the newest
_TITLE_UNITS = 400
_BETWEEN = 100  # kept for the mark of a cut and the empty lines
_SHORT = 60  # a value that stands in the line of its own field
_TEAMMATES = 10  # the newest

_SIGNS = {Tone.WAITING: "🟡", Tone.GOOD: "✅", Tone.BAD: "🔴", Tone.WARNED: "🟠", Tone.QUIET: "⚪️"}
_STANDINGS = {Standing.WORKING: "⏳", Standing.DONE: "✅", Standing.FAILED: "🔴", Standing.STOPPED: "⏹"}

T = TypeVar("T")


def row_sign(row: BatchRow) -> str:
    """Return the symbol of a batch's row: destructive, running, or its end; empty for a waiting one."""
    if row.card.pending:
        return "⚠️ " if row.harms else ""
    if row.runs:
        return "⏳ "
    return f"{_SIGNS[row.card.tone]} "


def is_short(field: PreviewField) -> bool:
    """Return whether its values stand in one line."""
    values = [v for v in (field.old_value, field.new_value) if v is not None]
    return all(len(v) <= _SHORT and "\n" not in v for v in values)


class TextBuilder(Protocol[T]):
    """Writes text so that nothing in it is markup, except the styles asked for.

    ``folds``: it has a style ``fold`` for what is long, of which people see the beginning and open the rest.
    """

    folds: bool = False

    def write(self, text: str, *styles: str) -> T:
        """Put the text in these styles: ``bold``, ``italic``, ``code`` in a line, ``pre`` in a block."""

    def moment(self, at: datetime, *, relative: bool = False) -> T:
        """Return a time as each reader's own app shows it."""

    def mention(self, actor: Actor) -> T:
        """Return a person's name, which notifies them where the platform knows them."""

    def joined(self, parts: Iterable[T], between: str = "\n") -> T: ...

    def size(self, made: T) -> tuple[int, ...]:
        """Return the size: units first, then the platform's other counts."""

    def cut(self, text: str, units: int) -> str:
        """Return the longest beginning of a text that takes at most ``units`` when written."""


@dataclass(frozen=True, slots=True)
class CardTextParts(Generic[T]):
    """A card as text. ``cut``: something of what would run is not in it; ``left_out``: something else."""

    made: T
    cut: bool
    left_out: bool


@dataclass(frozen=True, slots=True)
class CardTextRenderer(Generic[T]):
    """Lays out cards and teams as text; ``room`` is the size of one message."""

    builder: TextBuilder[T]
    room: tuple[int, ...]

    def card(self, card: Card) -> CardTextParts[T]:
        """Lay out the pending or the resolved twin; fits one message whatever the card holds."""
        title, title_cut = self._write_title(_SIGNS[card.tone], card.headline, _TITLE_UNITS)
        about, about_cut = self._lines(self._about(card))
        foot, foot_cut = self._lines(self._foot(card))
        around = zip(*map(self.builder.size, (title, about, foot)), strict=True)
        taken = (sum(sizes) for sizes in around)
        left = tuple(room - used for room, used in zip(self.room, taken, strict=True))
        body, body_cut = self._body(card, (left[0] - _BETWEEN, *(each - 1 for each in left[1:])))
        head = self.builder.joined([title, about]) if self._units(about) else title
        cut = title_cut or body_cut
        marked = [self.builder.write(_CUT, "italic")] if cut else []
        shown = (
            card.pending or card.carried_out or card.batch is not None
        )  # the card of a decided proposal is folded
        parts = [head, body, *marked, foot] if shown else [head, foot]
        made = self.builder.joined((part for part in parts if self._units(part)), "\n\n")
        return CardTextParts(made, cut, about_cut or foot_cut)

    def team(self, board: TeamStatus, command: str) -> T:
        """Return a team, a line or two for each teammate; ``command`` lists those that are left out."""
        lines = [self._write_title("👥", board.title)[0]]
        lines += map(self._teammate, board.teammates[-_TEAMMATES:])
        more = len(board.teammates) - _TEAMMATES
        if more > 0:
            lines.append(self.builder.write(f"and {more} more: {command}"))
        return self.builder.joined(lines)

    def _teammate(self, each: Teammate) -> T:
        name, _ = self._write_title(_STANDINGS[each.standing], each.name, _SHORT)
        if each.plan_state:
            stands = f": {each.state}; {each.plan_state}"
        else:
            stands = f": {each.state}"
        head = self.builder.joined([name, self._short(stands, units=_NOTE_UNITS)[0]], "")
        said = redact_text(each.about)
        if said:
            return self.builder.joined([head, self._short(f"    {said}", units=_NOTE_UNITS)[0]])
        return head

    def _write_title(self, sign: str, title: str, units: int = _LINE_UNITS) -> tuple[T, bool]:
        said, cut = self._short(title, "bold", units=units)
        return self.builder.joined([self.builder.write(f"{sign} "), said], ""), cut

    def _about(self, card: Card) -> Iterator[tuple[T, bool]]:
        if not card.pending:
            return
        if card.kind.is_answer and card.risk_reason:
            yield self._short(card.risk_reason, "italic", units=_LINE_UNITS)
        elif card.warning:
            yield self._short(f"⚠️ {card.warning}", units=_LINE_UNITS)
        if card.why:
            yield self._write_labelled("Why", card.why, _REASON_UNITS)

    def _foot(self, card: Card) -> Iterator[tuple[T, bool]]:
        if card.pending:
            yield self._write_date(
                card.asked, " · expires ", self.builder.moment(card.expires, relative=True)
            )
            if not card.asker_decides:
                yield self._deciders(card)
            if card.undo_note:
                yield self._short(card.undo_note, units=_LINE_UNITS)
        else:
            runs = card.running_since is not None
            if card.ended_at:
                ended = self.builder.moment(card.ended_at, relative=runs)
            else:
                ended = None
            yield self._write_date(card.end, " · ", ended, units=_TITLE_UNITS)
        if card.acts_as:  # as code, in which no platform makes a link of an address
            yield self._short(card.acts_as, "code", units=_LINE_UNITS)
        for line in card.annotations:
            yield self._write_annotation(line)
        for point in (*card.notes[-_NOTES:], *card.tally[-_NOTES:]):
            short, cut = self._short(point, units=_NOTE_UNITS)
            yield self.builder.joined([self.builder.write("• "), short], ""), cut
        if card.result:
            # in a block of its own, so that no line of it looks like one of the card's
            yield self._short(card.result, "pre", units=RESULT_SHOWN)

    def _write_annotation(self, line: Annotation) -> tuple[T, bool]:
        """Return a line of a feature. Its text is code, in which no platform makes a link of an address."""
        text, cut = self._short(line.text, "code", units=_LINE_UNITS)
        return (self._after(line.name, text) if line.name else text), cut

    def _write_date(
        self, text: str, between: str, at: T | None, *, units: int = _LINE_UNITS
    ) -> tuple[T, bool]:
        said, cut = self._short(text, units=units)
        return said if at is None else self.builder.joined([said, self.builder.write(between), at], ""), cut

    def _deciders(self, card: Card) -> tuple[T, bool]:
        """Write the people who may decide, those of the platform as mentions."""
        each = (
            self.builder.mention(p) if isinstance(p, Actor) else self.builder.write(p)
            for p in card.circle.parts
        )
        words = self.builder.joined(each, "")
        if self._units(words) > _LINE_UNITS:
            return self._write_labelled("Can decide", card.deciders)
        return self._after("Can decide", words), False

    def _body(self, card: Card, room: tuple[int, ...]) -> tuple[T, bool]:
        """Return the change field by field as far as it fits, and whether some of it was left out."""
        made, any_cut = self.builder.write(""), False
        draws: list[Callable[[int], tuple[T, bool]]] = [partial(self._step, each) for each in card.outline]
        draws = draws or [partial(self._field, each) for each in card.shown_fields]
        rows = enumerate(card.batch.rows, card.batch.first) if card.batch else ()
        draws += [partial(self._row, number, row) for number, row in rows]
        for draw in draws:
            for most in (room[0], _VALUE_UNITS) if self.builder.folds else (_VALUE_UNITS,):
                part, cut = draw(most)
                longer = self.builder.joined([made, part]) if self._units(made) else part
                fits = all(size <= left for size, left in zip(self.builder.size(longer), room, strict=True))
                if fits:
                    break
            if not fits:
                return made, True
            made, any_cut = longer, any_cut or cut
        return made, any_cut

    def _step(self, each: PlanLine, _: int) -> tuple[T, bool]:
        """Return a line of a plan: a numbered step with its tools, or what stands around the steps."""
        said, cut = self._short(each.text, units=_VALUE_UNITS)
        if each.label:
            said = self._after(each.label, said)
        number = [self.builder.write(f"{each.number}. ")] if each.number else []
        tools = (
            part
            for name in each.tools
            for part in (self.builder.write(" "), self.builder.write(name, "code"))
        )
        mark, mark_cut = self._short(f" ({each.mark})", "italic", units=_VALUE_UNITS)
        parts = [*number, said, *tools, *([mark] if each.mark else [])]
        return self.builder.joined(parts, ""), cut or mark_cut

    def _row(self, number: int, row: BatchRow, most: int) -> tuple[T, bool]:
        """Return a row of a batch: what it is about, and how it differs from the others or how it ended."""
        sign = row_sign(row)
        about, cut = self._short(row.about, units=_VALUE_UNITS)
        head = self.builder.joined([self.builder.write(f"{number}. {sign}"), about], "")
        if not row.card.pending:
            return self._write_end(head, row.fault), cut
        fields = [self._field(each, most) for each in row.fields]
        lines = not all(is_short(each) for each in row.fields)
        parts = [
            head,
            *(made for made, _ in fields),
            *(self._short(n, "italic", units=_NOTE_UNITS)[0] for n in row.notes),
        ]
        return self.builder.joined(parts, "\n" if lines else " · "), cut or any(cut for _, cut in fields)

    def _write_end(self, head: T, fault: str) -> T:
        said = self._short(f": {fault}", units=_NOTE_UNITS)[0]
        if fault:
            return self.builder.joined([head, said], "")
        return head

    def _field(self, each: PreviewField, most: int) -> tuple[T, bool]:
        """Return a field of the change, each value of it within so many units."""
        name, name_cut = self._short(each.field, "bold", units=_LINE_UNITS)
        old, new = each.old_value, each.new_value
        if (compared := diff(old, new)) is not None:
            old, new = None, compared
        same = old is None or old == new
        if is_short(PreviewField("", old, new)):
            shown = [self._value(new, "code")]
            if not same:
                if new is None:
                    shown = [self.builder.write(f"({REMOVED})")]
                shown = [self._value(old, "code"), self.builder.write(" → "), *shown]
            return self.builder.joined([name, self.builder.write(": "), *shown], ""), name_cut
        if same:
            asides = [("", new)]
        elif new is None:
            asides = [(f" ({REMOVED})", old)]
        else:
            asides = [(" now", old), (" will be", new)]
        blocks = [(aside, *self._block(value, most)) for aside, value in asides]
        lines = [
            line
            for aside, block, _ in blocks
            for line in (self.builder.joined([name, self.builder.write(f"{aside}:")], ""), block)
        ]
        return self.builder.joined(lines), name_cut or any(cut for *_, cut in blocks)

    def _block(self, value: str | None, most: int) -> tuple[T, bool]:
        """Return a value in lines of its own, within so many units.

        In few lines, where it can't be folded.
        """
        if not value:
            return self._value(value, "pre"), False
        lines = value.split("\n")
        long = len(lines) > _VALUE_LINES
        if self.builder.folds and most > _VALUE_UNITS and (long or len(value) > _VALUE_UNITS):
            return self._short(value, "fold", units=most)
        if not long:
            return self._short(value, "pre", units=_VALUE_UNITS)
        first = self.builder.cut("\n".join(lines[:_VALUE_LINES]), _VALUE_UNITS - 2)
        return self.builder.write(f"{first}\n…", "pre"), True

    def _value(self, value: str | None, style: str) -> T:
        if not value:
            return self.builder.write("(nothing)" if value is None else "(empty)")
        return self.builder.write(value if value.strip() else repr(value), style)

    def _write_labelled(self, label: str, text: str, units: int = _LINE_UNITS) -> tuple[T, bool]:
        short, cut = self._short(text, units=units)
        return self._after(label, short), cut

    def _after(self, label: str, words: T) -> T:
        return self.builder.joined(
            [self.builder.write(f"{label}:", "bold"), self.builder.write(" "), words], ""
        )

    def _short(self, text: str, *styles: str, units: int) -> tuple[T, bool]:
        """Write a text of at most ``units``, with an ellipsis if it is cut, and tell if it was."""
        made = self.builder.write(text, *styles)
        if self._units(made) <= units:
            return made, False
        return self.builder.write(f"{self.builder.cut(text, units - 1)}…", *styles), True

    def _units(self, made: T) -> int:
        return self.builder.size(made)[0]

    def _lines(self, lines: Iterator[tuple[T, bool]]) -> tuple[T, bool]:
        found = [*lines]
        return self.builder.joined(part for part, _ in found), any(cut for _, cut in found)


class PlainTextBuilder(TextBuilder[str]):
    """Writes text without styles, for channels and shells that have none."""

    folds = True  # no length is too long

    def write(self, text: str, *_: str) -> str:
        return make_visible(text, escape_point)

    def moment(self, at: datetime, *, relative: bool = False) -> str:  # noqa: ARG002 - the same for every reader
        return format_local(at)

    def mention(self, actor: Actor) -> str:
        return self.write(actor.label)

    def joined(self, parts: Iterable[str], between: str = "\n") -> str:
        return between.join(parts)

    def size(self, made: str) -> tuple[int, ...]:
        return (len(made),)

    def cut(self, text: str, units: int) -> str:
        return text[: whole_until(text, units)]


_PLAIN = CardTextRenderer(PlainTextBuilder(), (sys.maxsize,))


def card_text(card: Card) -> str:
    """Return all of a card as plain text."""
    return _PLAIN.card(card).made


def team_text(team: TeamStatus) -> str:
    """Return a team as plain text, a line or two for each teammate."""
    return _PLAIN.team(team, "/nod team")
