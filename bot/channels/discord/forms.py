"""Modals, Discord's forms: a reason, a tool's fields in pages of five, or a grant. Pure.

A grant permits similar calls in advance ("approve similar"). The functions `ask_…` and `make_form` return a
modal, `read_form` reads a submitted edit back into arguments. `presses.py` opens and takes the modals.
Shapes and limits: https://docs.discord.com/developers/components/reference (label, text input).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bot.channels.discord.card import find_shown_round
from bot.channels.discord.places import (
    LABEL_TYPE,
    MAX_CUSTOM_ID_CHARS,
    MAX_HINT_UNITS,
    MAX_INPUT_UNITS,
    MAX_LABEL_UNITS,
    MAX_MODAL_PARTS,
    MAX_OPTION_UNITS,
    MAX_OPTIONS,
    MENU_TYPE,
    TEXT_INPUT_TYPE,
    TEXT_TYPE,
)
from bot.channels.discord.text import cut_label, cut_to_units, literal, width
from bot.channels.markdown import clean
from bot.domain.cards import Card
from bot.domain.forms import Field, Shape, fill_in, option_labels
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import ButtonMark, Needs, Verb, Way

# custom ids of inputs
REASON = "reason"
RUNG = "rung"  # the scope of a grant: which calls
REACH = "reach"  # its audience: whose calls, and where
LASTING = "lasting"  # its duration
# styles of a text input
_ONE_LINE_STYLE = 1
_PARAGRAPH_STYLE = 2
_LINE_CHARS = 80  # a longer text gets an input of several lines
_GRANT_TEXT = "This approves the change now. Matching calls then run without asking, each shown here as done."

Json = dict[str, Any]


class _Option(NamedTuple):
    """An option of a menu."""

    label: str
    value: str
    is_chosen: bool  # it is chosen when the modal opens


def ask_words(card: Card, verb: Verb) -> Json:
    """Return the modal that asks for a reason, or for the changes to a plan."""
    button = card.button(verb)
    label = button.text_question.question if button.text_question else button.label
    hint = button.text_question.hint if button.text_question else ""
    text_input = _make_text_input(REASON, required=button.needs is Needs.TEXT)
    return _make_modal(card, verb, [_make_label(label, text_input, hint)])


def ask_grant(
    card: Card, scopes: Sequence[tuple[GrantScope, str]], audiences: Sequence[tuple[GrantAudience, str]]
) -> Json:
    """Return the modal of a grant: which calls may run without asking, whose, and for how long.

    ``scopes`` and ``audiences`` are those that may be granted, each with its text, narrowest first. The texts
    of the scopes are also shown in full above the menus, which cut them.
    """
    lines = [_GRANT_TEXT, *(f"- {literal(description)}" for _, description in scopes)]
    durations = [(duration, duration.label) for duration in GrantDuration]
    parts: list[Json] = [
        {"type": TEXT_TYPE, "content": cut_to_units("\n".join(lines), MAX_INPUT_UNITS)},
        _make_label("What may run without asking", _make_grant_menu(RUNG, scopes)),
        _make_label("Whose requests, and where", _make_grant_menu(REACH, audiences)),
        _make_label("How long", _make_grant_menu(LASTING, durations)),
    ]
    return _make_modal(card, Verb.SIMILAR, parts)


def _make_grant_menu(custom_id: str, options: Iterable[tuple[str, str]]) -> Json:
    """Return a menu of values with their descriptions, of which the first is chosen."""
    menu_options = []
    for position, (value, description) in enumerate(options):
        menu_options.append(_Option(description, value, is_chosen=position == 0))
    return _make_menu(custom_id, menu_options)


def split_pages(fields: Sequence[Field]) -> list[Sequence[Field]]:
    """Distribute the fields over pages, of which each is a modal.

    A field whose value is too long for an input is left out.
    """
    fitting = [field for field in fields if width(clean(field.as_text)) <= MAX_INPUT_UNITS]
    return [fitting[start : start + MAX_MODAL_PARTS] for start in range(0, len(fitting), MAX_MODAL_PARTS)]


def make_form(card: Card, page: int, fields: Sequence[Field]) -> Json:
    """Return one page of the edit form, filled with the current values of its ``fields``."""
    parts = [
        _make_label(field.label, _make_input(str(position), field), field.description)
        for position, field in enumerate(fields)
    ]
    return _make_modal(card, Verb.EDIT, parts, page)


def read_form(
    fields: Sequence[Field], sent: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments with the submitted values, and the faults by the name of the field.

    ``fields``: those of the page. ``sent``: the inputs, by the position of their field in the page.
    """
    inputs = {field.name: sent[str(position)] for position, field in enumerate(fields)}
    return fill_in(fields, arguments, lambda field: _read_value(field, inputs[field.name]))


def _make_modal(card: Card, verb: Verb, parts: Iterable[Json], page: int = 0) -> Json:
    mark = ButtonMark(Way.SUBMIT, verb, card.proposal_id, find_shown_round(card, verb), page)
    return {
        "custom_id": mark.pack(MAX_CUSTOM_ID_CHARS),
        "title": cut_label(card.button(verb).label, MAX_LABEL_UNITS),
        "components": [*parts],
    }


def _make_label(label: str, component: Json, hint: str = "") -> Json:
    labelled = {"type": LABEL_TYPE, "label": cut_label(label, MAX_LABEL_UNITS), "component": component}
    if hint:
        return labelled | {"description": cut_label(hint, MAX_HINT_UNITS)}
    return labelled


def _make_text_input(custom_id: str, value: str = "", *, required: bool, long: bool = True) -> Json:
    component = {
        "type": TEXT_INPUT_TYPE,
        "custom_id": custom_id,
        "style": _PARAGRAPH_STYLE if long else _ONE_LINE_STYLE,
        "required": required,
        "max_length": MAX_INPUT_UNITS,
    }
    if value:
        return component | {"value": value}
    return component


def _make_menu(
    custom_id: str, options: Iterable[_Option], *, required: bool = True, many: bool = False
) -> Json:
    """Return a menu; ``many``: several options can be chosen."""
    entries = [
        {
            "label": cut_label(option.label, MAX_OPTION_UNITS),
            "value": option.value,
            "default": option.is_chosen,
        }
        for option in options
    ]
    max_values = len(entries) if many else 1
    minimum = {"min_values": 1 if required else 0, "required": required}
    return {"type": MENU_TYPE, "custom_id": custom_id, "options": entries, "max_values": max_values} | minimum


def _make_input(custom_id: str, field: Field) -> Json:
    """Return the menu or the text input of a field."""
    required = field.required and not field.nullable and not field.may_be_empty
    options = _list_options(field)
    if options:
        is_multiple = field.shape is Shape.CHOICES
        if field.value is None:
            chosen = []
        elif is_multiple and isinstance(field.value, list):
            chosen = field.value
        else:
            chosen = [field.value]
        menu_options = []
        for position, label in enumerate(option_labels(options, MAX_OPTION_UNITS)):
            is_chosen = options[position] in chosen
            menu_options.append(_Option(label, str(position), is_chosen))
        return _make_menu(custom_id, menu_options, required=required, many=is_multiple)
    value = clean(field.as_text)
    has_lines = field.multiline or field.shape in (Shape.LINES, Shape.DATA) or "\n" in value
    return _make_text_input(custom_id, value, required=required, long=has_lines or len(value) > _LINE_CHARS)


def _list_options(field: Field) -> Sequence[Any]:
    """Return the options of a field's menu; none if the field has no options, or too many for a menu."""
    # a single value is one of ``single_choices``; the values of a list are among ``options``
    options = field.single_choices
    if not options and field.shape is Shape.CHOICES:
        options = field.options
    if len(options) <= MAX_OPTIONS:
        return options
    return ()


def _read_value(field: Field, entered: Any) -> Any:
    """Return the value of a field from its input: a text, or the positions of chosen options."""
    if entered == clean(field.as_text):
        return field.value  # it was not edited
    if not isinstance(entered, list):
        is_empty = not entered.strip()
        if is_empty and (field.nullable or not field.may_be_empty):
            return None
        return field.read(entered)
    chosen = [_list_options(field)[int(position)] for position in entered]
    if field.shape is Shape.CHOICES:
        return field.check_value(chosen)
    return field.check_value(chosen[0] if chosen else None)
