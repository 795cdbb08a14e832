"""Cards as text messages: their layout, and the cutting of long ones. Pure.

`CardTextRenderer` lays out cards for platforms whose messages are text with a few styles, such as Telegram
and Discord. A platform's `TextBuilder` writes the styled text, of a type of its own, and counts its size as a
tuple: first the length in the platform's units, then other things that the platform limits, such as
Telegram's entities (styled stretches of a text).

A card is a title, an intro (warning and reason), a body (the change), and a foot (who asked, who may decide,
the outcome). All parts but the body are shortened to limits of their own, and the body gets the remaining
room. If something of the title or the body is cut, the card says so. Then *View all* shows everything before
the card can be approved. A platform may fold a long text: people see its beginning and can open the rest.

The change is a list of fields, each with its old and its new value, or the steps of a plan, or the rows of a
batch: several calls in one card.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from bot.domain.annotations import Annotation
from bot.domain.cards import BatchRow, Card
from bot.domain.diffs import diff
from bot.domain.files import MAX_SHOWN_UTF16_UNITS
from bot.domain.people import Actor
from bot.domain.plans import PlanLine
from bot.domain.preview import REMOVED, PreviewField
from bot.domain.proposal_states import Tone
from bot.domain.redaction import redact_text
from bot.domain.teams import Teammate, TeammateState, TeamStatus
from bot.domain.text import escape_point, find_cut, make_visible
from bot.domain.times import format_local

_CUT_TEXT = "… cut here: View all shows the rest, then it can be approved."
# the most units, and lines, of a part of a card; a longer part is cut
_VALUE_UNITS = 700  # one value of the change
_VALUE_LINES = 20  # one value of the change
_LINE_UNITS = 200  # a line of the intro or the foot
_REASON_UNITS = 300
_NOTE_UNITS = 120  # one vote or note, a teammate's words
_TITLE_UNITS = 400
_MAX_NOTES = 4  # the newest notes that are shown; the limit of votes is the same
_RESERVED_UNITS = 100  # room for `_CUT_TEXT` and the empty lines
_INLINE_CHARS = 60  # a longer value has lines of its own
_MAX_TEAMMATES = 10  # the newest teammates that are shown

_TONE_SIGNS = {Tone.WAITING: "🟡", Tone.GOOD: "✅", Tone.BAD: "🔴", Tone.WARNED: "🟠", Tone.QUIET: "⚪️"}
_STATE_SIGNS = {
    TeammateState.WORKING: "⏳",
    TeammateState.DONE: "✅",
    TeammateState.FAILED: "🔴",
    TeammateState.STOPPED: "⏹",
}

T = TypeVar("T")  # the platform's type of styled text


def row_sign(row: BatchRow) -> str:
    """Return the symbol of a batch's row: running, or its outcome, followed by a space.

    A waiting row has none, or a warning if its change can't be undone.
    """
    if row.card.pending:
        return "⚠️ " if row.needs_own_decision else ""
    if row.is_running:
        return "⏳ "
    return f"{_TONE_SIGNS[row.card.tone]} "


def is_short(field: PreviewField) -> bool:
    """Tell if the values of a field fit into the line of its name."""
    values = [value for value in (field.old_value, field.new_value) if value is not None]
    return all(len(value) <= _INLINE_CHARS and "\n" not in value for value in values)


class TextBuilder(Protocol[T]):
    """A writer of styled text in which nothing is markup but the requested styles."""

    folds: bool = False  # True if the platform can fold long text: then `write` knows the style ``fold``

    def write(self, text: str, *styles: str) -> T:
        """Return the text in these styles.

        ``bold``, ``italic``, ``code`` in a line, ``pre`` for a block of code, and ``fold`` if it `folds`.
        """

    def moment(self, at: datetime, *, relative: bool = False) -> T:
        """Return a time as each reader's own app shows it."""

    def mention(self, actor: Actor) -> T:
        """Return a person's name, which notifies them where the platform knows them."""

    def join(self, parts: Iterable[T], between: str = "\n") -> T:
        """Return written texts as one, with the unstyled text ``between`` any two."""

    def size(self, made: T) -> tuple[int, ...]:
        """Return the size of a written text: its units, then the platform's other counts, if any."""

    def cut(self, text: str, units: int) -> str:
        """Return the longest beginning of a text that takes at most ``units`` when written."""


@dataclass(frozen=True, slots=True)
class CardTextParts(Generic[T]):
    """A card as text."""

    text: T  # the written text
    is_change_cut: bool  # something of the title or the change is missing
    is_rest_cut: bool  # something of the intro or the foot is missing, such as the end of a long reason


class _Part(NamedTuple, Generic[T]):
    """A part of a card as styled text, and True if something of it was cut."""

    text: T
    is_cut: bool


@dataclass(frozen=True, slots=True)
class CardTextRenderer(Generic[T]):
    """Lays out cards and teams as text."""

    builder: TextBuilder[T]
    max_size: tuple[int, ...]  # the size of one message, as `TextBuilder.size` counts

    def card(self, card: Card) -> CardTextParts[T]:
        """Lay out a card, pending or resolved, so that it fits one message."""
        title, title_cut = self._write_title(_TONE_SIGNS[card.tone], card.headline, _TITLE_UNITS)
        intro, intro_cut = self._join_lines(self._write_intro(card))
        foot, foot_cut = self._join_lines(self._write_foot(card))
        body, body_cut = self._write_body(card, self._find_max_body_size(title, intro, foot))
        head = self.builder.join([title, intro]) if self._count_units(intro) else title
        parts = [head]
        is_cut = title_cut or body_cut
        # other cards show only their outcome
        if card.pending or card.is_approved_plan or card.batch is not None:
            parts.append(body)
            if is_cut:
                parts.append(self.builder.write(_CUT_TEXT, "italic"))
        parts.append(foot)
        text = self.builder.join((part for part in parts if self._count_units(part)), "\n\n")
        return CardTextParts(text, is_cut, intro_cut or foot_cut)

    def _find_max_body_size(self, *parts: T) -> tuple[int, ...]:
        """Return the size that the other parts of a card leave for its body."""
        left = list(self.max_size)
        for part in parts:
            left = [count - used for count, used in zip(left, self.builder.size(part), strict=True)]
        units, *other_counts = left
        # the text that says that the body is cut takes one of each other count, such as entities
        return (units - _RESERVED_UNITS, *(count - 1 for count in other_counts))

    def team(self, status: TeamStatus, command: str) -> T:
        """Return a team, a line or two for each teammate; ``command`` lists the omitted teammates."""
        lines = [self._write_title("👥", status.title).text]
        lines += map(self._write_teammate, status.teammates[-_MAX_TEAMMATES:])
        left_out = len(status.teammates) - _MAX_TEAMMATES
        if left_out > 0:
            lines.append(self.builder.write(f"and {left_out} more: {command}"))
        return self.builder.join(lines)

    def _write_teammate(self, teammate: Teammate) -> T:
        name, _ = self._write_title(_STATE_SIGNS[teammate.stored_state], teammate.name, _INLINE_CHARS)
        state = f": {teammate.state}"
        if teammate.plan_state:
            state = f"{state}; {teammate.plan_state}"
        head = self.builder.join([name, self._write_short(state, units=_NOTE_UNITS).text], "")
        activity = redact_text(teammate.status_text)
        if activity:
            return self.builder.join([head, self._write_short(f"    {activity}", units=_NOTE_UNITS).text])
        return head

    def _write_title(self, sign: str, title: str, units: int = _LINE_UNITS) -> _Part[T]:
        short, cut = self._write_short(title, "bold", units=units)
        return _Part(self.builder.join([self.builder.write(f"{sign} "), short], ""), cut)

    def _write_intro(self, card: Card) -> Iterator[_Part[T]]:
        """Yield the lines between the title and the change: the warning and the reason."""
        if not card.pending:
            return
        if card.kind.is_answer and card.risk_reason:  # the card of a question has no warning, but a remark
            yield self._write_short(card.risk_reason, "italic", units=_LINE_UNITS)
        elif card.warning:
            yield self._write_short(f"⚠️ {card.warning}", units=_LINE_UNITS)
        if card.shown_reason:
            yield self._write_labelled("Why", card.shown_reason, _REASON_UNITS)

    def _write_foot(self, card: Card) -> Iterator[_Part[T]]:
        """Yield the lines below the change: who asked, who may decide, the outcome, notes and the result."""
        if card.pending:
            expires = self.builder.moment(card.local_expires_at, relative=True)
            yield self._write_date(card.requester_line, " · expires ", expires)
            if not card.asker_decides:
                yield self._write_deciders(card)
            if card.undo_note:
                yield self._write_short(card.undo_note, units=_LINE_UNITS)
        else:
            ended = None
            if card.ended_at:
                ended = self.builder.moment(card.ended_at, relative=card.running_since is not None)
            yield self._write_date(card.outcome_line, " · ", ended, units=_TITLE_UNITS)
        if card.acts_as:  # as code, in which no platform makes a link of an address
            yield self._write_short(card.acts_as, "code", units=_LINE_UNITS)
        for annotation in card.annotations:
            yield self._write_annotation(annotation)
        for note in (*card.notes[-_MAX_NOTES:], *card.shown_votes[-_MAX_NOTES:]):
            short, cut = self._write_short(note, units=_NOTE_UNITS)
            yield _Part(self.builder.join([self.builder.write("• "), short], ""), cut)
        if card.result:
            # in a separate block, so that no line of the result looks like a line of the card
            yield self._write_short(card.result, "pre", units=MAX_SHOWN_UTF16_UNITS)

    def _write_annotation(self, annotation: Annotation) -> _Part[T]:
        """Return a line of a feature. Its text is code, in which no platform makes a link of an address."""
        text, cut = self._write_short(annotation.text, "code", units=_LINE_UNITS)
        if annotation.name:
            text = self._write_after_label(annotation.name, text)
        return _Part(text, cut)

    def _write_date(self, text: str, between: str, at: T | None, *, units: int = _LINE_UNITS) -> _Part[T]:
        """Return a line that ends with a time, if there is one: ``text``, ``between`` and the time."""
        written, cut = self._write_short(text, units=units)
        if at is not None:
            written = self.builder.join([written, self.builder.write(between), at], "")
        return _Part(written, cut)

    def _write_deciders(self, card: Card) -> _Part[T]:
        """Write the people who may decide. People of this platform are mentioned."""
        written = []
        for person_or_text in card.decider_names.parts:
            if isinstance(person_or_text, Actor):
                written.append(self.builder.mention(person_or_text))
            else:
                written.append(self.builder.write(person_or_text))
        deciders = self.builder.join(written, "")
        if self._count_units(deciders) > _LINE_UNITS:
            return self._write_labelled("Can decide", card.deciders)
        return _Part(self._write_after_label("Can decide", deciders), is_cut=False)

    def _write_body(self, card: Card, max_size: tuple[int, ...]) -> _Part[T]:
        """Return the change, field by field and row by row, as far as it fits into ``max_size``."""
        body = self.builder.write("")
        some_cut = False
        for write_part in self._list_writers(card):
            extended = self._add_part(body, write_part, max_size)
            if extended is None:
                return _Part(body, is_cut=True)
            body, is_part_cut = extended
            some_cut = some_cut or is_part_cut
        return _Part(body, some_cut)

    def _add_part(
        self, body: T, write_part: Callable[[int], _Part[T]], max_size: tuple[int, ...]
    ) -> _Part[T] | None:
        """Return the body with one more part, and True if that part was cut. None if it does not fit.

        Where the platform folds long text, a value may first take all units of the message. If the part does
        not fit then, it is written again with short values, as on other platforms.
        """
        all_units = max_size[0]
        max_units_to_try = (all_units, _VALUE_UNITS) if self.builder.folds else (_VALUE_UNITS,)
        for max_units in max_units_to_try:
            part, is_cut = write_part(max_units)
            longer = self.builder.join([body, part]) if self._count_units(body) else part
            counts = zip(self.builder.size(longer), max_size, strict=True)
            if all(count <= limit for count, limit in counts):
                return _Part(longer, is_cut)
        return None

    def _list_writers(self, card: Card) -> list[Callable[[int], _Part[T]]]:
        """Return a function for each part of the change, which writes the part.

        It takes the most units that a value of the part may have.
        """
        writers: list[Callable[[int], _Part[T]]] = []
        if card.outline:
            writers += [partial(self._write_step, plan_line) for plan_line in card.outline]
        else:
            writers += [partial(self._write_field, field) for field in card.shown_fields]
        if card.batch:
            rows = enumerate(card.batch.rows, card.batch.first_number)
            writers += [partial(self._write_row, number, row) for number, row in rows]
        return writers

    def _write_step(self, plan_line: PlanLine, _: int) -> _Part[T]:
        """Write a line of a plan: a numbered step with its tools, or text around the steps.

        The number of units is ignored: a step has no long value.
        """
        text, cut = self._write_short(plan_line.text, units=_VALUE_UNITS)
        if plan_line.label:
            text = self._write_after_label(plan_line.label, text)
        parts = [text]
        if plan_line.number:
            parts.insert(0, self.builder.write(f"{plan_line.number}. "))
        for name in plan_line.tools:
            parts += [self.builder.write(" "), self.builder.write(name, "code")]
        if plan_line.mark:
            mark, mark_cut = self._write_short(f" ({plan_line.mark})", "italic", units=_VALUE_UNITS)
            parts.append(mark)
            cut = cut or mark_cut
        return _Part(self.builder.join(parts, ""), cut)

    def _write_row(self, number: int, row: BatchRow, max_units: int) -> _Part[T]:
        """Write a row of a batch: its subject, and its differences from other rows or its outcome."""
        subject, some_cut = self._write_short(row.about, units=_VALUE_UNITS)
        head = self.builder.join([self.builder.write(f"{number}. {row_sign(row)}"), subject], "")
        if not row.card.pending:
            return _Part(self._append_fault(head, row.fault), some_cut)
        parts = [head]
        for field in row.fields:
            part, cut = self._write_field(field, max_units)
            parts.append(part)
            some_cut = some_cut or cut
        for note in row.notes:
            part, cut = self._write_short(note, "italic", units=_NOTE_UNITS)
            parts.append(part)
            some_cut = some_cut or cut
        between = " · " if all(is_short(field) for field in row.fields) else "\n"
        return _Part(self.builder.join(parts, between), some_cut)

    def _append_fault(self, head: T, fault: str) -> T:
        if not fault:
            return head
        return self.builder.join([head, self._write_short(f": {fault}", units=_NOTE_UNITS).text], "")

    def _write_field(self, field: PreviewField, max_units: int) -> _Part[T]:
        """Write a field of the change, each of its values within ``max_units``."""
        name, name_cut = self._write_short(field.field, "bold", units=_LINE_UNITS)
        old = field.old_value
        new = field.new_value
        difference = diff(old, new)
        if difference is not None:
            old = None
            new = difference
        if is_short(replace(field, old_value=old, new_value=new)):
            values = self._write_inline(old, new)
            return _Part(self.builder.join([name, self.builder.write(": "), *values], ""), name_cut)
        if old is None or old == new:
            labelled = [("", new)]
        elif new is None:
            labelled = [(f" ({REMOVED})", old)]
        else:
            labelled = [(" now", old), (" will be", new)]
        lines: list[T] = []
        some_cut = name_cut
        for label, value in labelled:
            block, cut = self._write_block(value, max_units)
            lines += [self.builder.join([name, self.builder.write(f"{label}:")], ""), block]
            some_cut = some_cut or cut
        return _Part(self.builder.join(lines), some_cut)

    def _write_inline(self, old: str | None, new: str | None) -> list[T]:
        """Return the new value, after the old one if there was another."""
        if old is None or old == new:
            return [self._write_value(new, "code")]
        if new is None:
            after = self.builder.write(f"({REMOVED})")
        else:
            after = self._write_value(new, "code")
        return [self._write_value(old, "code"), self.builder.write(" → "), after]

    def _write_block(self, value: str | None, max_units: int) -> _Part[T]:
        """Write a value in lines of its own, within ``max_units``.

        A long value is folded if the platform can do that, else it is cut after `_VALUE_LINES` lines.
        """
        if not value:
            return _Part(self._write_value(value, "pre"), is_cut=False)
        lines = value.split("\n")
        has_many_lines = len(lines) > _VALUE_LINES
        is_long = has_many_lines or len(value) > _VALUE_UNITS
        if self.builder.folds and max_units > _VALUE_UNITS and is_long:
            return self._write_short(value, "fold", units=max_units)
        if not has_many_lines:
            return self._write_short(value, "pre", units=_VALUE_UNITS)
        mark = "\n…"
        first_lines = self.builder.cut("\n".join(lines[:_VALUE_LINES]), _VALUE_UNITS - len(mark))
        return _Part(self.builder.write(f"{first_lines}{mark}", "pre"), is_cut=True)

    def _write_value(self, value: str | None, style: str) -> T:
        if value is None:
            return self.builder.write("(nothing)")
        if not value:
            return self.builder.write("(empty)")
        return self.builder.write(value if value.strip() else repr(value), style)

    def _write_labelled(self, label: str, text: str, units: int = _LINE_UNITS) -> _Part[T]:
        short, cut = self._write_short(text, units=units)
        return _Part(self._write_after_label(label, short), cut)

    def _write_after_label(self, label: str, text: T) -> T:
        parts = [self.builder.write(f"{label}:", "bold"), self.builder.write(" "), text]
        return self.builder.join(parts, "")

    def _write_short(self, text: str, *styles: str, units: int) -> _Part[T]:
        """Write the beginning of a text that takes at most ``units``, with an ellipsis if it is cut."""
        written = self.builder.write(text, *styles)
        if self._count_units(written) <= units:
            return _Part(written, is_cut=False)
        shortened = f"{self.builder.cut(text, units - 1)}…"
        return _Part(self.builder.write(shortened, *styles), is_cut=True)

    def _count_units(self, written: T) -> int:
        return self.builder.size(written)[0]

    def _join_lines(self, lines: Iterator[_Part[T]]) -> _Part[T]:
        parts = list(lines)
        text = self.builder.join(part.text for part in parts)
        return _Part(text, any(part.is_cut for part in parts))


class PlainTextBuilder(TextBuilder[str]):
    """A `TextBuilder` of text without styles, for channels and shells that have none."""

    folds = True  # so that nothing is cut

    def write(self, text: str, *_: str) -> str:
        return make_visible(text, escape_point)

    def moment(self, at: datetime, *, relative: bool = False) -> str:  # noqa: ARG002 - the same for every reader
        return format_local(at)

    def mention(self, actor: Actor) -> str:
        return self.write(actor.label)

    def join(self, parts: Iterable[str], between: str = "\n") -> str:
        return between.join(parts)

    def size(self, made: str) -> tuple[int, ...]:
        return (len(made),)

    def cut(self, text: str, units: int) -> str:
        return text[: find_cut(text, units)]


_PLAIN = CardTextRenderer(PlainTextBuilder(), (sys.maxsize,))


def card_text(card: Card) -> str:
    """Return all of a card as plain text."""
    return _PLAIN.card(card).text


def team_text(team: TeamStatus) -> str:
    """Return a team as plain text, a line or two for each teammate."""
    return _PLAIN.team(team, "/nod team")
