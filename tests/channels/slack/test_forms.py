"""A tool's schema becomes a form, and the form becomes the arguments again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.slack.forms import find_block_ids, make_inputs, read_form
from bot.channels.slack.screens import ModalSubject, make_edit_form
from bot.domain.card_rendering import render_card
from bot.domain.forms import fields_of
from tests.channels.slack.conftest import SCHEMA, make_proposal
from tests.fakes.slack_rules import check_view
from tests.fakes.slack_state import Modal, shown_text

FULL: dict[str, Any] = {
    "title": "New roof",
    "body": "two\nlines & <more>",
    "priority": "high",
    "urgent": False,
    "count": 3,
    "due": "2026-03-05",
    "labels": ["idea"],
    "paths": ["a b", "c"],
    "owner": "slack:T1/U9",
}


def _filled(schema: dict[str, Any], arguments: dict[str, Any], changes: dict[str, Any]) -> Any:
    """Open the edit form, change some inputs by label, and read it back."""
    card = render_card(make_proposal(arguments=arguments), schema)
    view = make_edit_form(card, arguments, ModalSubject("p1", 1), "T1")
    check_view(view)
    state = Modal("U7", view).state(changes)["values"]
    return read_form(fields_of(schema, arguments), state, arguments, "T1")


def test_an_untouched_form_gives_the_same_arguments() -> None:
    assert _filled(SCHEMA, FULL, {}) == (FULL, {})


def test_every_kind_of_field_can_be_changed() -> None:
    changes = {
        "Title": "Other",
        "Body": "x",
        "Priority": "low",
        "Urgent": "Yes",
        "Count": "12",
        "Due": "2026-04-01",
        "Labels": ["bug", "idea"],
        "Paths": "one\n\n two \n",
        "Owner": "U8",
    }
    expected = {
        "title": "Other",
        "body": "x",
        "priority": "low",
        "urgent": True,
        "count": 12,
        "due": "2026-04-01",
        "labels": ["bug", "idea"],
        "paths": ["one", "two"],
        "owner": "slack:T1/U8",
    }
    assert _filled(SCHEMA, FULL, changes) == (expected, {})


def test_emptied_fields_are_null_absent_or_empty_as_the_schema_allows() -> None:
    changes = {"Due": None, "Count": "", "Body": "", "Labels": [], "Paths": ""}
    values, faults = _filled(SCHEMA, FULL, changes)

    assert faults == {}
    assert values["due"] is None
    assert "count" not in values
    assert "body" not in values
    assert values["labels"] == []
    assert "paths" not in values


def test_a_value_too_long_for_a_modal_stays_as_it_is() -> None:
    arguments = {"title": "t", "body": "y" * 4000}

    assert _filled(SCHEMA, arguments, {"Title": "u"}) == ({"title": "u", "body": "y" * 4000}, {})


def test_optional_by_union_references_and_unknown_shapes_are_understood() -> None:
    schema = {
        "type": "object",
        "$defs": {"Color": {"enum": ["red", "blue"], "title": "Color"}},
        "properties": {
            "color": {"$ref": "#/$defs/Color"},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "title": "Maybe"},
            "shape": {"type": "object", "title": "Shape"},
            "ratio": {"type": ["number", "null"], "title": "Ratio"},
        },
        "required": ["color", "maybe"],
    }
    arguments = {"color": "red", "maybe": None, "shape": {"a": [1]}, "ratio": 0.5}
    assert _filled(schema, arguments, {}) == (arguments, {})

    values, faults = _filled(
        schema, arguments, {"Color": "blue", "Maybe": "4", "Shape": '{"b": 2}', "Ratio": "1.25"}
    )
    assert (values, faults) == ({"color": "blue", "maybe": 4, "shape": {"b": 2}, "ratio": 1.25}, {})


@pytest.mark.parametrize(
    ("label", "entered", "words"),
    [("Count", "many", "whole number"), ("Shape", "{", "JSON"), ("Ratio", "true", "a number")],
)
def test_what_cannot_be_read_is_said_at_the_field(label: str, entered: str, words: str) -> None:
    schema = {
        "properties": {
            "count": {"type": "integer", "title": "Count"},
            "shape": {"type": "object", "title": "Shape"},
            "ratio": {"type": "number", "title": "Ratio"},
        }
    }
    _, faults = _filled(schema, {}, {label: entered})

    ((name, fault),) = faults.items()
    assert words in fault
    fields = fields_of(schema, {})
    assert find_block_ids(fields)[name] in {
        b["block_id"] for b in make_inputs(fields, "T1") if b["label"]["text"] == label
    }


def test_a_list_whose_first_entry_begins_with_a_bracket_can_be_edited() -> None:
    schema = {"properties": {"paths": {"type": "array", "items": {"type": "string"}, "title": "Paths"}}}
    values, faults = _filled(schema, {"paths": ["[x] one"]}, {"Paths": "[x] one\n[ ] two"})
    assert (values, faults) == ({"paths": ["[x] one", "[ ] two"]}, {})


@given(
    st.dictionaries(st.text(max_size=20), st.text(max_size=100) | st.integers() | st.booleans(), max_size=80)
)
def test_a_tool_without_a_schema_can_be_edited_too(arguments: dict[str, Any]) -> None:
    assert _filled({}, arguments, {}) == (arguments, {})


def test_options_that_begin_alike_look_different_and_more_fields_than_fit_are_told() -> None:
    begin = "refs/heads/" + "x" * 80
    branches = [f"{begin}-{each}" for each in ("one", "two")]
    named = {"branch": {"enum": branches}} | {f"field_{n}": {"type": "string"} for n in range(130)}
    arguments = {"branch": branches[0]}
    card = render_card(make_proposal(arguments=arguments), {"type": "object", "properties": named})
    view = make_edit_form(card, arguments, ModalSubject("p1", 1), "T1")
    check_view(view)
    options = [each["text"]["text"] for each in view["blocks"][1]["element"]["options"]]
    assert [each[-4:] for each in options] == ["-one", "-two"]
    assert any("More fields than fit here" in shown for shown in shown_text(view["blocks"]))


def test_a_window_that_was_open_at_an_upgrade_still_says_what_it_is_about() -> None:
    # as the release before wrote it
    kept = '{"proposal": "p1", "round": 2, "address": "T1/C1", "ref": "T1/C1/1.2"}'
    subject = ModalSubject("p1", 2, "T1/C1", "T1/C1/1.2")
    assert ModalSubject.unpack(kept) == subject
    assert ModalSubject.unpack(subject.pack()) == subject
