"""One reader of a schema: which fields a call has, what fits them, how they are told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.forms import BadAnswer, Field, Shape, fields_of, list_values, option_labels
from bot.domain.redaction import HIDDEN
from bot.domain.value_text import label_of, outline_value, speak_value, summarize_arguments
from tests.channels.telegram.core import ARGUMENTS, SCHEMA

FIELDS = {f.name: f for f in fields_of(SCHEMA, ARGUMENTS)}


def only(schema: dict[str, Any], arguments: dict[str, Any] | None = None, **root: Any) -> Field:
    (field,) = fields_of({"properties": {"it": schema}, **root}, arguments or {})
    return field


def test_choices_can_be_picked_and_the_rest_is_typed():
    assert {name: f.single_choices for name, f in FIELDS.items() if f.single_choices} == {
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
        ("labels", "x\n y \n", ["x", "y"]),
        ("owner", "12", "12"),
    ],
)
def test_typed_text_becomes_the_fields_own_type(name: str, typed: str, value: object):
    assert FIELDS[name].read(typed) == value


@pytest.mark.parametrize(
    ("name", "typed", "why"),
    [
        ("number", "twelve", "Write a whole number."),
        ("number", "0", "At least 1."),
        ("number", "1.5", "Write a whole number."),
        ("number", "1e999", "Write a whole number."),
        ("title", "x" * 41, "At most 40 characters."),
        ("labels", "[1]", "Write one entry a line."),
    ],
)
def test_what_does_not_fit_is_refused_in_plain_words(name: str, typed: str, why: str):
    with pytest.raises(BadAnswer) as refused:
        FIELDS[name].read(typed)
    assert str(refused.value) == why


def test_references_unions_with_null_and_allof_are_followed_alike():
    root = {"$defs": {"S": {"enum": ["a", "b"], "type": "string"}, "T": {"$ref": "#/$defs/S"}}}
    for schema in (
        {"$ref": "#/$defs/T"},
        {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]},
        {"allOf": [{"$ref": "#/$defs/T"}, {"description": "which"}]},
        {"oneOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/S"}]}]},
        {"enum": ["a", "b", None]},
    ):
        field = only(schema, **root)
        assert (field.shape, field.options) == (Shape.CHOICE, ("a", "b"))
        assert field.nullable == ("null" in str(schema) or "None" in str(schema))
        assert field.check_value("b") == "b"
        with pytest.raises(BadAnswer, match="Choose one"):
            field.check_value("c")


def test_a_secret_behind_an_anchor_is_asked_for_as_a_secret():
    root = {"$defs": {"code": {"$anchor": "code", "type": "string", "writeOnly": True}}}
    assert only({"$ref": "#code"}, **root).secret


def test_a_schema_that_contains_itself_is_read_to_a_depth():
    root = {"$defs": {"L": {"allOf": [{"$ref": "#/$defs/L"}, {"anyOf": [{"$ref": "#/$defs/L"}]}]}}}
    assert only({"$ref": "#/$defs/L"}, **root).shape is Shape.DATA


def test_lists_of_choices_texts_and_anything_else_are_told_apart():
    choices = only({"type": "array", "items": {"enum": ["bug", "idea"]}})
    assert (choices.shape, choices.read("Bug, idea")) == (Shape.CHOICES, ["bug", "idea"])
    assert only({"type": ["array", "null"], "items": {"type": "string"}}).shape is Shape.LINES
    assert only({"type": "array", "items": {"type": "object"}}).shape is Shape.DATA


def test_arguments_without_a_schema_can_still_be_edited():
    assert [(f.name, f.shape) for f in fields_of({}, {"a": "x", "b": 1, "c": [1]})] == [
        ("a", Shape.TEXT),
        ("b", Shape.INTEGER),
        ("c", Shape.DATA),
    ]


def test_what_runs_by_default_is_a_value_of_the_field_and_marked():
    field = only({"type": "integer", "default": 1})
    assert (field.value, field.default, field.present, field.required) == (1, True, False, False)
    schema = {
        "properties": {
            "to": {"type": "string"},
            "copies": {"type": "integer", "default": 1},
            "urgent": {"type": "boolean", "default": False},
            "kind": {"enum": ["short_memo"], "default": "short_memo"},
            "token": {"type": "string", "default": "hunter2"},
            "note": {"type": "string"},
        }
    }
    assert list_values(schema, {"to": "Kim", "copies": 2}) == (
        ("to", "Kim"),
        ("copies", "2"),
        ("urgent", "no (default)"),
        ("kind", "short memo (default)"),
        ("token", f"{HIDDEN} (default)"),
    )


def test_no_argument_that_runs_is_left_out_however_many_there_are():
    arguments = {f"a{n}": n for n in range(200)}
    assert len(list_values({}, arguments)) == 200
    assert len(fields_of({}, arguments)) == 60


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("due_date", "Due date"),
        ("dueDate", "Due date"),
        ("max-size", "Max size"),
        ("title", "Title"),
        ("URL", "URL"),
        ("why it asks", "Why it asks"),
        ("src/app.py", "src/app.py"),
        ("Step 1", "Step 1"),
        ("", ""),
    ],
)
def test_names_become_labels_and_what_is_no_name_stays(name: str, label: str):
    assert label_of(name) == label


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (True, "yes"),
        (False, "no"),
        (None, "none"),
        ([], "none"),
        (["a", "b"], "a, b"),
        (2, "2"),
        ({"a": 1}, "A: 1"),
        ("in_progress", "in progress"),
    ],
)
def test_values_are_told_as_people_write_them(value: object, told: str):
    assert speak_value(value) == told


PUSHED = [{"path": "src/vat.py", "content": "RATE = 0.19\n\n  x = 1"}, {"path": "b.txt", "content": "yes"}]
ENTITIES = [{"name": "Ana", "entityType": "person", "observations": ["likes tea", "a: b"]}]
RICH = [{"paragraph": {"text": {"content": "Hi"}, "color": None}}, {"insertText": {"location": {"index": 1}}}]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            PUSHED,
            """1. Path: src/vat.py
   Content:
       RATE = 0.19
       \n         x = 1
2. Path: b.txt
   Content: "yes\"""",
        ),
        (
            ENTITIES,
            """1. Name: Ana
   Entity type: person
   Observations:
     1. likes tea
     2. "a: b\"""",
        ),
        (
            RICH,
            """1. Paragraph:
     Text / Content: Hi
     Color: none
2. Insert text / Location / Index: 1""",
        ),
        (
            {"odd: name\n1": {}, "b": [], "c": "", "d": "12", "e": 12, "f": "(empty)"},
            """"odd: name\\n1": (no fields)
B: (no entries)
C: (empty)
D: "12"
E: 12
F: "(empty)\"""",
        ),
        (["x\nPath: y", "b"], "1. (text)\n       x\n       Path: y\n2. b"),
    ],
)
def test_what_is_nested_is_told_as_an_outline(value: object, told: str):
    assert speak_value(value, is_choice=False) == told


_NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.text(), _NESTED, min_size=1, max_size=2), min_size=1, max_size=3))
def test_no_entry_of_an_outline_looks_like_another(value: Any):
    lines = outline_value(value).split("\n")
    begun = [line for line in lines if not line.startswith(" ")]
    assert [line.partition(".")[0] for line in begun] == [str(n) for n in range(1, len(value) + 1)]


def test_an_outline_of_something_very_deep_ends_as_json():
    deep: Any = "x"
    for _ in range(100):
        deep = {"a": deep, "b": 1}
    told = outline_value(deep)
    assert '"a": "x"' in told
    assert told.count("B: 1") == 8


def test_a_title_counts_what_is_nested_and_leaves_out_what_has_several_lines():
    given = {"repo": "web", "files": PUSHED, "labels": ["a", "b"], "body": "x\ny", "meta": {"a": 1}}
    assert summarize_arguments(given) == 'repo = web, files = 2 entries, labels = ["a", "b"]'


def test_a_text_that_is_no_option_is_told_as_it_is():
    assert speak_value("snake_case_is_mine", is_choice=False) == "snake_case_is_mine"


_KEYWORDS = ["type", "$ref", "anyOf", "allOf", "enum", "const", "items", "default", "maxLength", "title"]
_SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(_KEYWORDS), inner),
)


@pytest.mark.slow
@given(_SCHEMAS)
def test_any_schema_can_be_read(schema: Any):
    whole = {"properties": {"it": schema}, "required": schema}
    for field in fields_of(whole, {"it": "x"}):
        assert isinstance(field.find_fault("x"), str)


def test_options_that_begin_alike_are_told_apart():
    begin = "a branch of the repository with a name that is far too long to read " * 2
    labels = option_labels([f"{begin}one", f"{begin}two", "short"], 75)
    assert [each[:3] for each in labels[:2]] == ["1. ", "2. "]
    assert [each[-4:] for each in labels[:2]] == [" one", " two"]
    assert labels[2] == "short"
    assert all(len(each) <= 75 for each in labels)
