"""Forms: a tool's fields as inputs of a modal, and the submitted modal read back into arguments.

A value that a modal can't hold (beyond 3,000 characters, or in too many fields) stays as it is.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from bot.channels.markdown import clean
from bot.channels.slack import blocks, text
from bot.channels.slack.blocks import VALUE, Block, plain
from bot.channels.slack.places import actor_of, user_of
from bot.domain.forms import Field, Shape, fill_in, option_labels
from bot.domain.people import Actor
from bot.domain.value_text import speak_value

_LINE_CHARS = 80  # a longer text gets an input of several lines
_MAX_LABEL_UNITS = 100  # the name of a field in a remark
_MAX_REMARK_UNITS = 300
_MAX_HINT_UNITS = 500


def make_inputs(fields: Sequence[Field], team: str) -> list[Block]:
    """Return an input for each field, or a remark for one whose value can't be edited."""
    input_blocks = []
    for block_id, field in _with_block_ids(fields):
        if _is_editable(field):
            input_blocks.append(_make_input(block_id, field, team))
        else:
            input_blocks.append(_make_too_long_remark(block_id, field))
    return input_blocks


def find_block_ids(fields: Sequence[Field]) -> dict[str, str]:
    """Return the id of each field's input block, by the field's name."""
    return {field.name: block_id for block_id, field in _with_block_ids(fields) if _is_editable(field)}


def _with_block_ids(fields: Sequence[Field]) -> list[tuple[str, Field]]:
    """Return each field with the id of its block."""
    return [(f"field-{number}", field) for number, field in enumerate(fields)]


def _is_editable(field: Field) -> bool:
    return text.width(clean(field.as_text)) <= blocks.MAX_INPUT_UNITS


def _make_too_long_remark(block_id: str, field: Field) -> Block:
    label, _ = text.cut(field.label, _MAX_LABEL_UNITS)
    words = f"{label}: too long to edit in Slack. It stays as it is."
    return {"type": "context", "block_id": block_id, "elements": [plain(words, _MAX_REMARK_UNITS)]}


def _make_input(block_id: str, field: Field, team: str) -> Block:
    # Slack refuses to submit an empty input that is not optional
    may_be_left_empty = not field.required or field.nullable or field.may_be_empty
    block = blocks.input_block(block_id, field.label, _make_element(field, team), optional=may_be_left_empty)
    hint = _write_hint(field)
    if hint:
        block["hint"] = plain(hint, _MAX_HINT_UNITS)
    return block


def _write_hint(field: Field) -> str:
    description = field.description.strip()
    if not field.default:
        return description
    if description and description[-1].isalnum():
        description += "."
    return f"{description} Default: {speak_value(field.value)}.".strip()


def _make_element(field: Field, team: str) -> Block:
    match field.shape:
        case Shape.FLAG:
            yes, no = blocks.option("Yes", "1"), blocks.option("No", "0")
            chosen = None
            if isinstance(field.value, bool):
                chosen = yes if field.value else no
            return _prefill({"type": "static_select", "options": [yes, no]}, "initial_option", chosen)
        case Shape.CHOICE:
            options = _make_options(field)
            chosen = None
            if field.value in field.options:
                chosen = options[field.options.index(field.value)]
            return _prefill({"type": "static_select", "options": options}, "initial_option", chosen)
        case Shape.CHOICES:
            options = _make_options(field)
            values = field.value if isinstance(field.value, list) else []
            pairs = zip(options, field.options, strict=True)
            chosen_all = [option for option, value in pairs if value in values]
            return _prefill(
                {"type": "multi_static_select", "options": options}, "initial_options", chosen_all
            )
        case Shape.DATE:
            return _prefill({"type": "datepicker"}, "initial_date", _read_date(field.value))
        case Shape.USER:
            return _prefill({"type": "users_select"}, "initial_user", _find_user(field.value, team))
        case Shape.NUMBER | Shape.INTEGER:
            element: Block = {"type": "number_input", "is_decimal_allowed": field.shape is Shape.NUMBER}
            return _prefill(element, "initial_value", field.as_text)
        case _:
            return _make_text_element(field)


def _make_text_element(field: Field) -> Block:
    content = clean(field.as_text)
    is_long = len(content) > _LINE_CHARS or "\n" in content
    multiline = is_long or field.multiline or field.shape is not Shape.TEXT
    return _prefill({"type": "plain_text_input", "multiline": multiline}, "initial_value", content)


def _prefill(element: Block, key: str, value: Any) -> Block:
    """Return the element with a first value, or without one if the value is empty: Slack refuses that."""
    if value:
        return element | {key: value}
    return element


def _make_options(field: Field) -> list[Block]:
    labels = option_labels(field.options, blocks.MAX_OPTION_UNITS)
    return [blocks.option(label, str(position)) for position, label in enumerate(labels)]


def _read_date(value: Any) -> str | None:
    """Return a date as Slack wants it, YYYY-MM-DD; None for a value that is no date."""
    if not isinstance(value, str):
        return None
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        return None


def _find_user(value: Any, team: str) -> str | None:
    """Return the user's id if the value is an account of this team, else None."""
    if not isinstance(value, str):
        return None
    try:
        actor = Actor.parse(value)
    except ValueError:
        return None
    account = user_of(actor)
    if account is None:
        return None
    account_team, user = account
    return user if account_team == team else None


def read_form(
    fields: Sequence[Field], state: Mapping[str, Any], arguments: Mapping[str, Any], team: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments that a person entered, and the faults in them by the field's name.

    ``state``: the ``state.values`` of the submitted view. ``arguments``: those that the form was made from;
    values that it could not show stay as they are.
    """
    entries = {}  # what was entered, by the field's name
    for block_id, field in _with_block_ids(fields):
        if block_id in state:
            entries[field.name] = state[block_id].get(VALUE) or {}
    shown_fields = [field for field in fields if field.name in entries]
    return fill_in(shown_fields, arguments, lambda field: _read_value(field, entries[field.name], team))


def _read_value(field: Field, entry: Mapping[str, Any], team: str) -> Any:
    """Return the entered value; None if nothing was entered.

    Raises BadAnswer, an error of `Field.read`, with words for the person.
    """
    chosen = entry.get("selected_option") or {}
    match field.shape:
        case Shape.FLAG:
            if chosen:
                return chosen["value"] == "1"
            return None
        case Shape.CHOICE:
            if chosen:
                return field.options[int(chosen["value"])]
            return None
        case Shape.CHOICES:
            positions = [int(option["value"]) for option in entry.get("selected_options") or []]
            if field.nullable and not positions:
                return None
            return [field.options[position] for position in positions]
        case Shape.DATE:
            return entry.get("selected_date")
        case Shape.USER:
            user = entry.get("selected_user")
            if user:
                return str(actor_of(team, user))
            return None
    entered = entry.get("value") or ""
    if field.value is not None and entered == clean(field.as_text):
        return field.value  # it was not edited
    is_empty = not entered if field.shape is Shape.TEXT else not entered.strip()
    takes_empty_text = field.required and not field.nullable and field.may_be_empty
    if is_empty and not takes_empty_text:
        return None
    return field.read(entered)
