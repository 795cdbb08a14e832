"""The fields of a tool as modal inputs, prefilled, and the filled-in modal read back into arguments.

What a modal cannot hold (a value beyond 3,000 characters, more fields than fit) keeps the value it has.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

from bot.channels.markdown import clean
from bot.channels.slack import blocks, text
from bot.channels.slack.blocks import VALUE, Block, plain
from bot.channels.slack.places import actor_of, user_of
from bot.domain.forms import Field, Shape, fill_in, option_labels
from bot.domain.people import Actor
from bot.domain.value_text import speak_value

_LONG = 80  # characters from which a text gets several lines


def inputs(fields: Sequence[Field], team: str) -> list[Block]:
    """Give one input block per field; a context line where the value must stay as it is."""
    return [_input(at, f, team) if _editable(f) else _write_kept(at, f) for at, f in _name_blocks(fields)]


def blocks_of(fields: Sequence[Field]) -> dict[str, str]:
    """Return the id of each field's input block, by the field's name."""
    return {f.name: at for at, f in _name_blocks(fields) if _editable(f)}


def _name_blocks(fields: Sequence[Field]) -> list[tuple[str, Field]]:
    return [(f"field-{i}", each) for i, each in enumerate(fields)]


def _editable(asked: Field) -> bool:
    return text.width(clean(asked.as_text)) <= blocks.INPUT_VALUE


def _write_kept(at: str, asked: Field) -> Block:
    words = f"{text.cut(asked.label, 100)[0]}: too long to edit in Slack. It stays as it is."
    return {"type": "context", "block_id": at, "elements": [plain(words, 300)]}


def _input(at: str, asked: Field, team: str) -> Block:
    optional = not asked.required or asked.nullable or asked.may_be_empty
    described = asked.description.strip()
    default = f"Default: {speak_value(asked.value)}." if asked.default else ""
    if described[-1:].isalnum() and default:
        described += "."
    hint = f"{described} {default}".strip()
    hinted = {"hint": plain(hint, 500)} if hint else {}
    return blocks.input_block(at, asked.label, _element(asked, team), optional=optional, **hinted)


def _element(asked: Field, team: str) -> Block:
    match asked.shape:
        case Shape.FLAG:
            options = [blocks.option("Yes", "1"), blocks.option("No", "0")]
            chosen = options[not asked.value] if isinstance(asked.value, bool) else None
            return _with({"type": "static_select", "options": options}, "initial_option", chosen)
        case Shape.CHOICE:
            options = _options(asked)
            if asked.value in asked.options:
                chosen = options[asked.options.index(asked.value)]
            else:
                chosen = None
            return _with({"type": "static_select", "options": options}, "initial_option", chosen)
        case Shape.CHOICES:
            options = _options(asked)
            given = asked.value if isinstance(asked.value, list) else []
            chosen_all = [o for o, v in zip(options, asked.options, strict=True) if v in given]
            return _with({"type": "multi_static_select", "options": options}, "initial_options", chosen_all)
        case Shape.DATE:
            return _with({"type": "datepicker"}, "initial_date", _date(asked.value))
        case Shape.USER:
            return _with({"type": "users_select"}, "initial_user", _user(asked.value, team))
        case Shape.NUMBER | Shape.INTEGER:
            element: Block = {"type": "number_input", "is_decimal_allowed": asked.shape is Shape.NUMBER}
            return _with(element, "initial_value", asked.as_text)
        case _:
            return _text_element(asked)


def _text_element(asked: Field) -> Block:
    content = clean(asked.as_text)
    several = asked.shape is not Shape.TEXT or len(content) > _LONG or "\n" in content
    several = several or asked.multiline
    return _with({"type": "plain_text_input", "multiline": several}, "initial_value", content)


def _with(element: Block, key: str, value: Any) -> Block:
    if value:
        return element | {key: value}
    return element


def _options(asked: Field) -> list[Block]:
    labels = option_labels(asked.options, blocks.OPTION_TEXT)
    return [blocks.option(label, str(at)) for at, label in enumerate(labels)]


def _date(value: Any) -> str | None:
    with suppress(ValueError):
        if isinstance(value, str):
            return date.fromisoformat(value).isoformat()
        return None
    return None


def _user(value: Any, team: str) -> str | None:
    with suppress(ValueError):
        found = user_of(Actor.parse(value)) if isinstance(value, str) else None
        if found and found[0] == team:
            return found[1]
        return None
    return None


def read_form(
    fields: Sequence[Field], state: Mapping[str, Any], arguments: Mapping[str, Any], team: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Turn a view's ``state.values`` into arguments and faults, by the field's name.

    ``arguments`` is what the form was made from: whatever it could not show is taken from there.
    """
    entered = {field.name: state[at].get(VALUE) or {} for at, field in _name_blocks(fields) if at in state}
    shown = (field for field in fields if field.name in entered)
    return fill_in(shown, arguments, lambda field: _read(field, entered[field.name], team))


def _read(asked: Field, element: Mapping[str, Any], team: str) -> Any:
    """Give the value, None for nothing; raises BadAnswer with words for the person."""
    chosen = element.get("selected_option") or {}
    match asked.shape:
        case Shape.FLAG:
            if chosen:
                return chosen["value"] == "1"
            return None
        case Shape.CHOICE:
            if chosen:
                return asked.options[int(chosen["value"])]
            return None
        case Shape.CHOICES:
            picked = [asked.options[int(o["value"])] for o in element.get("selected_options") or []]
            if picked or not asked.nullable:
                return picked
            return None
        case Shape.DATE:
            return element.get("selected_date")
        case Shape.USER:
            user = element.get("selected_user")
            if user:
                return str(actor_of(team, user))
            return None
    entered = element.get("value") or ""
    if asked.value is not None and entered == clean(asked.as_text):
        return asked.value  # no one touched it
    given = entered if asked.shape is Shape.TEXT else entered.strip()
    optional = asked.nullable or not asked.required or not asked.may_be_empty
    if optional and not given:
        return None
    return asked.read(entered)
