"""A card as Telegram shows it: text with entities and an inline keyboard. Pure.

A card whose changes do not fit one message is cut with a marker, and VIEW_ALL stands where Approve would:
all of it is shown by `whole`, and Approve is under its last message. A long reason is only shortened.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from telegram import InlineKeyboardButton, InlineKeyboardMarkup
from telegram.constants import KeyboardButtonStyle

from bot.channels.telegram.buttons import ButtonData, Does, does_of
from bot.channels.telegram.limits import ENTITIES, TEXT_UNITS
from bot.channels.telegram.text import (
    Rich,
    joined,
    mention,
    moment,
    plain,
    split,
    styled,
    trimmed,
    web_link,
)
from bot.domain.cards import Card, Tone, everything
from bot.domain.files import RESULT_SHOWN
from bot.domain.forms import label_of, told_values
from bot.domain.people import Actor
from bot.domain.proposals import Kind, PreviewField, State
from bot.domain.verbs import VIEW_ALL, Look, Verb, button, with_reason

_CUT = "… cut here: View all shows the rest"
_FIELD_UNITS = 700  # of one value on the card; longer ones are cut
_FIELD_LINES = 20
_LINE_UNITS = 200  # of a name, a link
_REASON_UNITS = 300
_NOTE_UNITS = 120  # of one vote or note
_NOTES = 4  # of each, the newest
_TITLE_UNITS = 400
_BETWEEN = 100  # kept for the mark of a cut and the empty lines
_SHORT = 60  # a value that stands in a line of its own field
_MESSAGES = 5  # a longer payload is sent as a file

_SIGNS = {Tone.WAITING: "🟡", Tone.GOOD: "✅", Tone.BAD: "🔴", Tone.WARNED: "🟠", Tone.QUIET: "⚪️"}
_STYLES = {
    Look.PRIMARY: KeyboardButtonStyle.SUCCESS,
    Look.DANGER: KeyboardButtonStyle.DANGER,
    Look.PLAIN: KeyboardButtonStyle.PRIMARY,
}
_ROWS = (
    (Verb.APPROVE, Verb.DECLINE, Verb.RETRY),
    (Verb.EDIT, Verb.REVISE, Verb.EXTEND),
    (Verb.APPROVE_STEPS,),
    (Verb.SIMILAR,),
)
_PLACED = frozenset(verb for row in _ROWS for verb in row)
_GROUP = (Verb.APPROVE_ALL, Verb.DECLINE_ALL)
_APPROVING = frozenset({Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL})


@dataclass(frozen=True, slots=True)
class TelegramCard:
    """``cut`` says that something of what would run is not in the text."""

    rich: Rich
    keyboard: InlineKeyboardMarkup | None
    cut: bool


def rendered(card: Card, unseen: int = 0) -> TelegramCard:
    """Lay out the pending or the resolved twin; fits one message whatever the card holds.

    ``unseen``: how many others of its group are cut and have not been viewed where this card stands.
    """
    title, title_cut = _lines(_title(card))
    about, about_cut = _lines(_about(card))
    foot, foot_cut = _lines(_foot(card))
    around = (title, about, foot)
    room = TEXT_UNITS - sum(part.units for part in around) - _BETWEEN
    body, body_cut = _body(card, room, ENTITIES - sum(len(part.entities) for part in around) - 1)
    if not card.pending:
        body = Rich()  # a decided card is folded; View all still has what was cut
    cut = title_cut or body_cut
    left_out = about_cut or foot_cut  # nothing of what would run: it does not hold Approve back
    parts = [joined([title, about]) if about.text else title, body, foot]
    if cut and card.pending:
        parts.insert(2, styled(f"{_CUT}, then it can be approved.", "italic"))
    whole_card = joined((p for p in parts if p.text), "\n\n")
    buttons = keyboard(card, cut=cut, left_out=left_out, unseen=unseen)
    return TelegramCard(trimmed(whole_card), buttons, cut)


def keyboard(
    card: Card, *, cut: bool, left_out: bool = False, viewed: bool = False, unseen: int = 0
) -> InlineKeyboardMarkup | None:
    """Give the buttons of the card; ``viewed``: those under the whole payload, where Approve may stand.

    ``left_out``: View all is worth a press, but nothing of what would run is missing.
    What asks for something that Telegram has no screen for is not offered.
    """
    hidden = cut and not viewed
    offered = [a for a in card.verbs if does_of(a) and not (hidden and a in _APPROVING)]
    rows: list[list[InlineKeyboardButton]] = []
    if hidden:
        rows.append([_viewing(card, Does.VIEW, VIEW_ALL)])
    further = tuple(a for a in offered if a not in _PLACED and a not in _GROUP)
    *first, last = _ROWS
    rows += [[_button(card, a) for a in row if a in offered] for row in (*first, further, last)]
    if Verb.DECLINE in offered:
        data = ButtonData(Does.REASON, card.proposal_id, card.round).pack()
        words = with_reason(card.button(Verb.DECLINE))
        rows[-1].append(InlineKeyboardButton(words, callback_data=data))
    if left_out and not cut and not viewed:
        rows.append([_viewing(card, Does.VIEW, VIEW_ALL, style=None)])
    group = [_button(card, a) for a in _GROUP if a in offered and not (unseen and a is Verb.APPROVE_ALL)]
    if unseen and Verb.APPROVE_ALL in card.verbs:
        group.insert(0, _viewing(card, Does.VIEW_GROUP, f"View what is cut ({unseen})"))
    rows.append(group)
    if not card.pending and card.result_url and web_link(card.result_url):
        rows.append([InlineKeyboardButton("Open", url=card.result_url)])
    rows = [row for row in rows if row]
    return InlineKeyboardMarkup(rows) if rows else None


def whole(card: Card) -> list[Rich] | None:
    """Give `everything` as messages; None when it is so long that it should be a file."""
    pieces = split(styled(everything(card), "pre"), TEXT_UNITS)
    return pieces if len(pieces) <= _MESSAGES else None


def _viewing(
    card: Card, does: Does, text: str, style: KeyboardButtonStyle | None = KeyboardButtonStyle.PRIMARY
) -> InlineKeyboardButton:
    data = ButtonData(does, card.proposal_id, card.round).pack()
    return InlineKeyboardButton(text, callback_data=data, style=style)


def _button(card: Card, action: Verb) -> InlineKeyboardButton:
    drawn = button(action)
    style = None if drawn.rare else _STYLES[drawn.look]
    shown = card.group.round if action in _GROUP and card.group else card.round
    data = ButtonData(does_of(action) or action, card.proposal_id, shown).pack()
    return InlineKeyboardButton(card.button(action).label, callback_data=data, style=style)


Line = tuple[Rich, bool]
"""A line of the card, and whether something of it was left out."""


def _lines(lines: Iterator[Line]) -> Line:
    found = [*lines]
    if not found:
        return Rich(), False
    parts, cuts = zip(*found, strict=True)
    return joined(parts), any(cuts)


def _title(card: Card) -> Iterator[Line]:
    """What would run or has run, in the first line: it is all that a notification on a phone shows."""
    yield _short(f"{_SIGNS[card.tone]} {card.headline}", "bold", units=_TITLE_UNITS)


def _about(card: Card) -> Iterator[Line]:
    if not card.pending:
        return
    if card.kind is Kind.QUESTION and card.risk_reason:
        yield _short(card.risk_reason, "italic", units=_LINE_UNITS)
    elif card.warning:
        yield _short(f"⚠️ {card.warning}", units=_LINE_UNITS)
    if card.reason:
        yield _labelled("Why", card.reason, _REASON_UNITS)


def _foot(card: Card) -> Iterator[Line]:
    if card.pending:
        asked, cut = _short(card.asked, units=_LINE_UNITS)
        yield asked + plain(" · expires ") + moment(card.expires_at, relative=True), cut
        if not card.asker_decides:
            yield _deciders(card)
    else:
        decided = card.decided_at if card.state is not State.EXPIRED else None
        said = card.outcome.removesuffix(".") if decided else card.outcome
        outcome, cut = _short(said, units=_TITLE_UNITS)
        yield (outcome + plain(" · ") + moment(decided) if decided else outcome), cut
    yield from map(_point, card.notes[-_NOTES:])
    yield from map(_point, card.tally[-_NOTES:])
    if card.result:
        # in a block of its own, so that no line of it looks like one of the card's
        yield _short(card.result, "pre", units=RESULT_SHOWN)


def _deciders(card: Card) -> Line:
    """Who may decide; people in Telegram by a mention, which notifies them once, when the card is posted."""
    said = (mention(part) if isinstance(part, Actor) else plain(part) for part in card.circle.parts)
    words = joined(said, "")
    if words.units > _LINE_UNITS:
        return _labelled("Can decide", card.deciders)
    return _label("Can decide") + words, False


def _body(card: Card, units: int, entities: int) -> Line:
    """Give the fields, each with old → new, and whether some of it was left out."""
    fields = card.fields
    if not fields and card.arguments:
        told = told_values(card.schema, card.arguments)
        fields = tuple(PreviewField(label_of(name), None, said) for name, said in told)
    made = Rich()
    any_cut = False
    for each in fields:
        part, cut = _field(each)
        longer = joined([made, part]) if made.text else part
        if longer.units > units or len(longer.entities) > entities:
            return made, True
        made, any_cut = longer, any_cut or cut
    return made, any_cut


def _field(each: PreviewField) -> Line:
    name, name_cut = _short(each.field, "bold", units=_LINE_UNITS)
    values = [v for v in (each.old_value, each.new_value) if v is not None]
    if all(len(v) <= _SHORT and "\n" not in v for v in values):
        old, new = _value(each.old_value, "code"), _value(each.new_value, "code")
        if each.old_value is None or each.old_value == each.new_value:
            return name + plain(": ") + new, name_cut
        change = old + plain(" → ") + new
        return name + plain(": ") + change, name_cut
    old, old_cut = _block(each.old_value)
    new, new_cut = _block(each.new_value)
    lines = [name + plain(":"), new]
    if each.old_value is not None and each.old_value != each.new_value:
        lines = [name, plain("old:"), old, plain("→ new:"), new]
    return joined(lines), name_cut or old_cut or new_cut


def _block(value: str | None) -> Line:
    """A value in lines of its own: at most so many, and so many units."""
    if not value:
        return _value(value, "pre"), False
    lines = value.split("\n")
    if len(lines) <= _FIELD_LINES:
        return _short(value, "pre", units=_FIELD_UNITS)
    first, _ = _short("\n".join(lines[:_FIELD_LINES]), units=_FIELD_UNITS - 2)
    return styled(f"{first.text}\n…", "pre"), True


def _value(value: str | None, kind: str) -> Rich:
    if value is None:
        return plain("(nothing)")
    if value == "":
        return plain("(empty)")
    return styled(value, kind) if value.strip() else styled(repr(value), kind)


def _point(text: str) -> Line:
    short, cut = _short(text, units=_NOTE_UNITS)
    return plain("• ") + short, cut


def _labelled(label: str, text: str, units: int = _LINE_UNITS) -> Line:
    short, cut = _short(text, units=units)
    return _label(label) + short, cut


def _label(label: str) -> Rich:
    return styled(f"{label}:", "bold") + plain(" ")


def _short(text: str, *kinds: str, units: int) -> Line:
    """At most so many units, with the cut marked by an ellipsis."""
    style: Callable[[str], Rich] = (lambda t: styled(t, *kinds)) if kinds else plain
    whole_line = style(text)
    if whole_line.units <= units:
        return whole_line, False
    kept = split(plain(text), units - 1)
    return style((kept[0].text if kept else "") + "…"), True
