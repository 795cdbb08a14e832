"""A card as Telegram shows it: text with entities and an inline keyboard. Pure.

A card that does not fit one message is cut with a marker, and "View all" stands where Approve would: the
whole payload is shown by `whole`, and Approve is under its last message.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from telegram import InlineKeyboardButton, InlineKeyboardMarkup
from telegram.constants import KeyboardButtonStyle

from bot.channels.telegram.callback import Callback, Does
from bot.channels.telegram.limits import ENTITIES, TEXT_UNITS
from bot.channels.telegram.text import Rich, joined, plain, split, styled, trimmed, web_link
from bot.domain.cards import Action, Card, Tone, whole_text
from bot.domain.files import RESULT_SHOWN
from bot.domain.proposals import Kind, PreviewField, State

_CUT = "… cut here: View all shows the rest"
_FIELD_UNITS = 700  # of one value on the card; longer ones are cut
_FIELD_LINES = 20
_LINE_UNITS = 200  # of a reason, a name, a link
_NOTE_UNITS = 120  # of one vote or note
_NOTES = 4  # of each, the newest
_TITLE_UNITS = 400
_BETWEEN = 100  # kept for the mark of a cut and the empty lines
_SHORT = 60  # a value that stands in a line of its own field
_MESSAGES = 5  # a longer payload is sent as a file

_SIGNS = {Tone.WAITING: "🟡", Tone.GOOD: "✅", Tone.BAD: "🔴", Tone.QUIET: "⚪️"}
_BUTTONS: dict[Action, tuple[str, Does, KeyboardButtonStyle | None]] = {
    Action.APPROVE: ("Approve", Does.APPROVE, KeyboardButtonStyle.SUCCESS),
    Action.DECLINE: ("Decline", Does.DECLINE, KeyboardButtonStyle.DANGER),
    Action.EDIT: ("Edit", Does.EDIT, KeyboardButtonStyle.PRIMARY),
    Action.SIMILAR: ("Similar", Does.SIMILAR, None),
    Action.EXTEND: ("Extend", Does.EXTEND, None),
    Action.REVISE: ("Ask for changes", Does.CHANGES, KeyboardButtonStyle.PRIMARY),
    Action.APPROVE_STEPS: ("Approve plan and its steps", Does.APPROVE_STEPS, KeyboardButtonStyle.SUCCESS),
    Action.RETRY: ("Retry", Does.RETRY, KeyboardButtonStyle.PRIMARY),
    Action.APPROVE_ALL: ("Approve all", Does.APPROVE_ALL, KeyboardButtonStyle.SUCCESS),
    Action.DECLINE_ALL: ("Decline all", Does.DECLINE_ALL, KeyboardButtonStyle.DANGER),
}
_ROWS = (
    (Action.APPROVE, Action.DECLINE, Action.RETRY),
    (Action.EDIT, Action.SIMILAR, Action.REVISE, Action.EXTEND),
    (Action.APPROVE_STEPS,),
)
_GROUP = (Action.APPROVE_ALL, Action.DECLINE_ALL)
_PLAN_WORDS = {Action.APPROVE: "Approve plan", Action.DECLINE: "Reject"}
_APPROVING = frozenset({Action.APPROVE, Action.APPROVE_STEPS, Action.SIMILAR, Action.APPROVE_ALL})


@dataclass(frozen=True, slots=True)
class Rendered:
    """``cut`` says that not everything is in the text."""

    rich: Rich
    keyboard: InlineKeyboardMarkup | None
    cut: bool


def rendered(card: Card, unseen: int = 0) -> Rendered:
    """Lay out the pending or the resolved twin; fits one message whatever the card holds.

    ``unseen``: how many others of its group are cut and have not been viewed where this card stands.
    """
    head, head_cut = _lines(_head(card))
    foot, foot_cut = _lines(_foot(card))
    room = TEXT_UNITS - head.units - foot.units - _BETWEEN
    body, body_cut = _body(card, room, ENTITIES - len(head.entities) - len(foot.entities) - 1)
    # who voted and what came of it is not what would run: cut short, it does not hold Approve back
    cut = head_cut or body_cut or (foot_cut and not card.pending)
    parts = [head, body, foot]
    if cut:
        parts.insert(2, styled(f"{_CUT}, then it can be approved." if card.pending else f"{_CUT}.", "italic"))
    whole_card = joined((p for p in parts if p.text), "\n\n")
    return Rendered(trimmed(whole_card), keyboard(card, cut=cut, unseen=unseen), cut)


def keyboard(card: Card, *, cut: bool, viewed: bool = False, unseen: int = 0) -> InlineKeyboardMarkup | None:
    """Give the buttons of the card; ``viewed``: those under the whole payload, where Approve may stand.

    What this module does not know of is not offered.
    """
    hidden = cut and not viewed
    offered = [a for a in card.actions if a in _BUTTONS and not (hidden and a in _APPROVING)]
    rows: list[list[InlineKeyboardButton]] = []
    if hidden:
        rows.append([_viewing(card, Does.VIEW, "View all")])
    rows += [[_button(card, a) for a in row if a in offered] for row in _ROWS]
    if Action.DECLINE in offered:
        data = Callback(Does.REASON, card.proposal_id, card.round).pack()
        words = "Reject with a reason" if card.kind is Kind.PLAN else "Decline with a reason"
        rows.append([InlineKeyboardButton(words, callback_data=data)])
    group = [_button(card, a) for a in _GROUP if a in offered and not (unseen and a is Action.APPROVE_ALL)]
    if unseen and Action.APPROVE_ALL in card.actions:
        group.insert(0, _viewing(card, Does.VIEW_GROUP, f"View what is cut ({unseen})"))
    rows.append(group)
    if not card.pending and card.result_url and web_link(card.result_url):
        rows.append([InlineKeyboardButton("Open", url=card.result_url)])
    rows = [row for row in rows if row]
    return InlineKeyboardMarkup(rows) if rows else None


def everything(card: Card) -> str:
    """Give all of the card as plain text, nothing cut."""
    parts = [whole_text(card), *card.votes, *card.notes]
    return "\n\n".join(parts if card.pending else [*parts, card.outcome, card.result])


def whole(card: Card) -> list[Rich] | None:
    """Give `everything` as messages; None when it is so long that it should be a file."""
    pieces = split(styled(everything(card), "pre"), TEXT_UNITS)
    return pieces if len(pieces) <= _MESSAGES else None


def _viewing(card: Card, does: Does, text: str) -> InlineKeyboardButton:
    data = Callback(does, card.proposal_id, card.round).pack()
    return InlineKeyboardButton(text, callback_data=data, style=KeyboardButtonStyle.PRIMARY)


def _button(card: Card, action: Action) -> InlineKeyboardButton:
    text, does, style = _BUTTONS[action]
    text = _PLAN_WORDS.get(action, text) if card.kind is Kind.PLAN else card.says(action, text)
    shown = card.round
    if action in _GROUP and card.group:
        text, shown = f"{text} ({card.group.open})", card.group.round
    data = Callback(does, card.proposal_id, shown).pack()
    return InlineKeyboardButton(text, callback_data=data, style=style)


Line = tuple[Rich, bool]
"""A line of the card, and whether something of it was left out."""


def _lines(lines: Iterator[Line]) -> Line:
    parts, cuts = zip(*lines, strict=True)
    return joined(parts), any(cuts)


def _head(card: Card) -> Iterator[Line]:
    yield _short(f"{_SIGNS[card.tone]} {card.outcome}", "bold", units=_TITLE_UNITS)
    yield plain(""), False
    yield _short(card.title, "bold", units=_TITLE_UNITS)
    if card.reason:
        yield _labelled("Agent's reason", card.reason)
    if card.kind is Kind.QUESTION:
        yield _labelled("Question", card.risk_reason)
    else:
        yield _labelled("Risk", f"{card.level}, {card.risk_reason}")
    if card.kind is not Kind.PLAN:
        yield _labelled("Tool", card.tool_name)


def _foot(card: Card) -> Iterator[Line]:
    yield _labelled("Asked of" if card.kind is Kind.QUESTION else "Asked by", card.asked_by)
    if card.pending:
        yield _labelled("May decide", card.deciders)
        yield _labelled("Expires", f"{card.expires_at:%Y-%m-%d %H:%M} UTC")
    elif card.decided_at:
        yield _labelled("Decided", f"{card.decided_at:%Y-%m-%d %H:%M} UTC")
    yield from map(_point, card.notes[-_NOTES:])
    if card.votes:
        yield styled("Votes:", "bold"), False
    yield from map(_point, card.votes[-_NOTES:])
    if card.result:
        label = "Result" if card.state is State.SUCCEEDED else "What happened"
        # in a block of its own, so that no line of it looks like one of the card's
        block, cut = _short(card.result, "pre", units=RESULT_SHOWN)
        yield joined([styled(f"{label}:", "bold"), block]), cut
    if card.result_url:
        yield _labelled("Link", card.result_url)


def _body(card: Card, units: int, entities: int) -> Line:
    """Give the fields, each with old → new, and whether some of it was left out."""
    fields = card.fields
    if not fields and card.arguments:
        fields = tuple(
            PreviewField(k, None, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False))
            for k, v in card.arguments.items()
        )
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
    return styled(f"{label}:", "bold") + plain(" ") + short, cut


def _short(text: str, *kinds: str, units: int) -> Line:
    """At most so many units, with the cut marked by an ellipsis."""
    style: Callable[[str], Rich] = (lambda t: styled(t, *kinds)) if kinds else plain
    whole_line = style(text)
    if whole_line.units <= units:
        return whole_line, False
    kept = split(plain(text), units - 1)
    return style((kept[0].text if kept else "") + "…"), True
