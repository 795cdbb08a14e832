"""Which fields a tool call has, and what fits them."""

import pytest

from bot.channels.telegram.form import BadAnswer, fields_of
from tests.telegram_channel.core import ARGUMENTS, SCHEMA

FIELDS = {f.name: f for f in fields_of(SCHEMA, ARGUMENTS)}


def test_choices_become_buttons_and_the_rest_is_typed():
    assert {name: f.choices for name, f in FIELDS.items() if f.choices} == {
        "urgent": (True, False),
        "state": ("open", "closed"),
    }
    assert FIELDS["owner"].nullable


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("title", "007", "007"),
        ("title", '{"a": 1}', '{"a": 1}'),
        ("number", " 12 ", 12),
        ("labels", '["x", "y"]', ["x", "y"]),
        ("owner", "12", "12"),
    ],
)
def test_typed_text_becomes_the_fields_own_type(name: str, typed: str, value: object):
    assert FIELDS[name].read(typed) == value


@pytest.mark.parametrize(
    ("name", "typed", "why"),
    [
        ("number", "twelve", "not a number"),
        ("number", "0", "minimum"),
        ("number", "1.5", "integer"),
        ("title", "x" * 41, "too long"),
        ("labels", "x, y", "JSON"),
        ("labels", "[1]", "string"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(name: str, typed: str, why: str):
    with pytest.raises(BadAnswer, match=why):
        FIELDS[name].read(typed)


def test_references_are_followed():
    schema = {
        "$defs": {"S": {"enum": ["a", "b"], "type": "string"}},
        "properties": {"s": {"anyOf": [{"$ref": "#/$defs/S"}, {"type": "null"}]}},
    }
    (field,) = fields_of(schema, {"s": "a"})
    assert (field.choices, field.nullable) == (("a", "b"), True)
    assert field.checked("b") == "b"
    with pytest.raises(BadAnswer):
        field.checked("c")


def test_arguments_without_a_schema_can_still_be_edited():
    assert [(f.name, f.kind) for f in fields_of({}, {"a": "x", "b": 1})] == [("a", "string"), ("b", "")]
