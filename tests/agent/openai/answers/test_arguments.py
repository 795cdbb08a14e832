"""Arguments as servers and models send them: one object without a doubt is read, the rest is told."""

import json

import pytest

from bot.agent.openai.answers.arguments import read_arguments
from bot.agent.openai.answers.calls import Calls, find_offered_name

A = '{"text": "x"}'
READ = {
    "as it should be": A,
    "an empty object before": "{}" + A,
    "two of them": "{} {}" + A,
    "an empty object behind": A + "{}",
    "sent twice": A + A,
    "encoded twice": json.dumps(A),
    "encoded three times": json.dumps(json.dumps(A)),
    "a brace behind": A + "}",
    "a bracket behind": A + "]}",
    "an end token behind": A + "<|im_end|>",
    "another one": A + "\n<\uff5ctool▁call▁end\uff5c>",
    "a tag behind": A + "</tool_call>",
    "a token before": "<|tool_call_argument_begin|>" + A,
    "fenced": f"```json\n{A}\n```",
    "fenced without a word": f"```\n{A}\n```\n",
    "a byte-order mark": "\ufeff" + A,
    "white space": f"\n  {A}\n",
    "one field twice, alike": '{"text": "x", "text": "x"}',
    "a line's end as it is": '{"text": "x"\n}',
}


@pytest.mark.parametrize("name", READ)
def test_what_is_one_object_without_a_doubt_is_read(name: str) -> None:
    read = read_arguments(READ[name])
    assert (json.loads(read.text), read.refusal) == ({"text": "x"}, "")


@pytest.mark.parametrize("given", [None, "", " \n", "null", "{}", "{}{}", {}])
def test_none_are_an_empty_object(given: object) -> None:
    assert json.loads(read_arguments(given).text) == {}


def test_a_text_with_line_ends_as_they_are_becomes_sound() -> None:
    assert json.loads(read_arguments('{"text": "a\nb"}').text) == {"text": "a\nb"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('{"text": "x", "text": "y"}', "the field 'text' twice"),
        ('{"a": {"n": 1, "n": 2}}', "the field 'n' twice"),
        ('{"a": 1, "a": true}', "the field 'a' twice"),
        ('{"a": [0], "a": [false]}', "the field 'a' twice"),
        ('{"a": {"b": 1}}{"a": {"b": true}}', "several JSON objects"),
        ('{"text": "x"}{"text": "y"}', "several JSON objects"),
        ('{}{"a": 1}{"a": 1, "b": 2}', "several JSON objects"),
    ],
)
def test_what_is_in_doubt_is_refused_in_words(given: str, why: str) -> None:
    assert why in read_arguments(given).refusal


@pytest.mark.parametrize(
    "given",
    ['{"text": ', '{"text": "x",}', "{'text': 'x'}", "text=x", '[{"text": "x"}]', "7", '{"a": 1} and more',
     'Sure: {"text": "x"}', '"words"', "[" * 100_000, '{"a":' * 100_000],
)  # fmt: skip
def test_what_can_not_be_read_stays_as_it_is(given: str) -> None:
    assert read_arguments(given) == (given, "")


OFFERED = {"note_add", "list"}


@pytest.mark.parametrize(
    "name",
    ["note_add", " note_add\n", "functions.note_add:0", "functions.note_add", "default_api.note_add",
     "default_api:note_add", "note_add:3", "tools/note_add", "note_add()", "`note_add`", "mcp::note_add",
     "note_add<|channel|>commentary", "note_add<|channel|>json", "note_add<\uff5ctool▁sep\uff5c>"],
)  # fmt: skip
def test_a_name_in_a_dress_means_the_tool(name: str) -> None:
    assert find_offered_name(name, OFFERED) == "note_add"


@pytest.mark.parametrize("name", ["note", "functions.other:0", "", "NOTE_ADD", "note add"])
def test_a_name_that_means_none_stays(name: str) -> None:
    assert find_offered_name(name, OFFERED) == name


@pytest.mark.parametrize(
    "fragment",
    [
        {"name": "note_add", "arguments": A},
        {"type": "tool_use", "id": "t1", "name": "note_add", "input": {"text": "x"}},
        {"function": {"name": "note_add", "parameters": {"text": "x"}}},
    ],
    ids=["without function", "tool use", "parameters"],
)
def test_a_call_in_another_shape_is_one(fragment: dict[str, object]) -> None:
    calls = Calls()
    calls.add([fragment])
    [call] = calls.finish()
    assert (call.name, json.loads(call.arguments), call.server_fields.get("input")) == (
        "note_add",
        {"text": "x"},
        None,
    )
