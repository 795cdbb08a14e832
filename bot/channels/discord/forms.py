"""Modals: a reason, a tool's fields in pages of five, and the scopes of "approve similar". Pure.

Shapes and limits: https://docs.discord.com/developers/components/reference (label, text input).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bot.channels.discord.card import find_shown_round
from bot.channels.discord.places import CUSTOM_ID, HINT, INPUT, LABEL, OPTION, OPTIONS, WINDOW_PARTS
from bot.channels.discord.text import cut, fit, literal, width
from bot.channels.markdown import clean
from bot.domain.cards import Card
from bot.domain.forms import Field, Shape, fill_in, option_labels
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import ButtonMark, Needs, Verb, Way

REASON, RUNG, REACH, LASTING = "reason", "rung", "reach", "lasting"
_LONG = 80  # characters from which a text gets several lines
_ALLOWS = "This approves the change now. Matching calls then run without asking, each shown here as done."

Json = dict[str, Any]


def _window(card: Card, verb: Verb, parts: Iterable[Json], page: int = 0) -> Json:
    data = ButtonMark(Way.SENT, verb, card.proposal_id, find_shown_round(card, verb), page)
    return {
        "custom_id": data.pack(CUSTOM_ID),
        "title": cut(card.button(verb).label, LABEL),
        "components": [*parts],
    }


def _label(label: str, component: Json, hint: str = "") -> Json:
    shown = {"type": 18, "label": cut(label, LABEL), "component": component}
    if hint:
        return shown | {"description": cut(hint, HINT)}
    return shown


def _text(ident: str, value: str = "", *, needed: bool, long: bool = True) -> Json:
    shown = {
        "type": 4,
        "custom_id": ident,
        "style": 2 if long else 1,
        "required": needed,
        "max_length": INPUT,
    }
    if value:
        return shown | {"value": value}
    return shown


def _menu(
    ident: str, options: Iterable[tuple[str, str, bool]], *, needed: bool = True, many: bool = False
) -> Json:
    """Return a menu of labels, values, and whether each is chosen."""
    shown = [{"label": cut(label, OPTION), "value": value, "default": on} for label, value, on in options]
    most = len(shown) if many else 1
    least = {"min_values": int(needed), "required": needed}
    return {"type": 3, "custom_id": ident, "options": shown, "max_values": most} | least


def reason(card: Card, verb: Verb) -> Json:
    """Ask for a reason, or for what should change."""
    pressed = card.button(verb)
    label, hint = (pressed.asks.question, pressed.asks.hint) if pressed.asks else (pressed.label, "")
    return _window(card, verb, [_label(label, _text(REASON, needed=pressed.needs is Needs.WORDS), hint)])


def ask_grant(
    card: Card, ladder: Sequence[tuple[GrantScope, str]], reaches: Sequence[tuple[GrantAudience, str]]
) -> Json:
    """Ask what may run without asking, whose, and how long; in full above the menus."""
    menus = (
        ("What may run without asking", RUNG, [(words, rung) for rung, words in ladder]),
        ("Whose requests, and where", REACH, [(words, whose) for whose, words in reaches]),
        ("How long", LASTING, [(each.words, each) for each in GrantDuration]),
    )
    said = fit("\n".join([_ALLOWS, *(f"- {literal(words)}" for _, words in ladder)]), INPUT)
    shown: list[Json] = [{"type": 10, "content": said}]
    for label, ident, options in menus:
        shown.append(
            _label(label, _menu(ident, ((words, v, not at) for at, (words, v) in enumerate(options))))
        )
    return _window(card, Verb.SIMILAR, shown)


def pages(fields: Sequence[Field]) -> list[Sequence[Field]]:
    """Return the fields that a window can hold, by window."""
    held = [each for each in fields if width(clean(each.as_text)) <= INPUT]
    return [held[at : at + WINDOW_PARTS] for at in range(0, len(held), WINDOW_PARTS)]


def form(card: Card, page: int, fields: Sequence[Field]) -> Json:
    """Return one window of the form, filled with the arguments as they are."""
    shown = (
        _label(each.label, _write_field(str(at), each), each.description) for at, each in enumerate(fields)
    )
    return _window(card, Verb.EDIT, shown, page)


def _write_field(ident: str, field: Field) -> Json:
    needed = field.required and not field.nullable and not field.may_be_empty
    many = field.shape is Shape.CHOICES
    options = _options(field)
    if options:
        on = field.value if many and isinstance(field.value, list) else [field.value]
        labels = zip(option_labels(options, OPTION), options, strict=True)
        shown = (
            (label, str(at), field.value is not None and each in on)
            for at, (label, each) in enumerate(labels)
        )
        return _menu(ident, shown, needed=needed, many=many)
    value = clean(field.as_text)
    several = (
        field.multiline or field.shape in (Shape.LINES, Shape.DATA) or len(value) > _LONG or "\n" in value
    )
    return _text(ident, value, needed=needed, long=several)


def _options(field: Field) -> Sequence[Any]:
    found = field.choices or (field.options if field.shape is Shape.CHOICES else ())
    if len(found) <= OPTIONS:
        return found
    return ()


def read_form(
    fields: Sequence[Field], sent: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Turn what was sent, by the position of its field, into arguments and faults, by the field's name."""
    given = {field.name: sent[str(at)] for at, field in enumerate(fields)}
    return fill_in(fields, arguments, lambda field: _value(field, given[field.name]))


def _value(field: Field, given: Any) -> Any:
    if given == clean(field.as_text):
        return field.value  # no one touched it
    if not isinstance(given, list):
        nothing = not given.strip() and (field.nullable or not field.may_be_empty)
        if nothing:
            return None
        return field.read(given)
    chosen = [_options(field)[int(each)] for each in given]
    return field.check_value(chosen if field.shape is Shape.CHOICES else next(iter(chosen), None))
