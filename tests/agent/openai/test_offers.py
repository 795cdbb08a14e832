# ruff: noqa: E501 - a schema on a line is read best
"""A tool as every maker takes it, and a model's arguments back under the tool's own names."""

import json
import random
from typing import Any

import pytest

from bot.agent.openai.chat import chat_body
from bot.agent.openai.offers import MAX_DESCRIPTION_CHARS, offer_tool
from bot.agent.openai.requests import RequestWriter, choose_tools
from bot.agent.openai.responses import responses_body
from bot.domain.model import AssistantText, SystemText, ToolCall, ToolSpec, UserText
from bot.domain.named_models import NamedModel
from bot.tools.mcp.schemas import simplify_schema
from bot.tools.schema import fits_strict_mode
from bot.tools.tool import APPROVED_FIRST
from tests.fakes.model_dialects import DIALECTS, check_strict_schema
from tests.fakes.openai_responses import check_response
from tests.fakes.openai_rules import RefusalError
from tests.tiers import thin

HELLO = (SystemText("You are Nod."), UserText("hello"))
STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}

SCHEMAS: dict[str, dict[str, Any]] = {
    "no items": {"properties": {"tags": {"type": "array"}}},
    "no items in a list of types": {"properties": {"tags": {"type": ["array", "null"]}}},
    "no items in an alternative": {"properties": {"tags": {"anyOf": [{"type": "array"}, STRING]}}},
    "no items in items": {"properties": {"rows": {"type": "array", "items": {"type": "array"}}}},
    "items of older drafts": {"properties": {"at": {"type": "array", "items": [STRING, {"type": "number"}]}}},
    "a tuple": {"properties": {"at": {"type": "array", "prefixItems": [STRING, STRING], "items": False}}},
    "alternatives at the top": {
        "properties": {"id": STRING, "name": STRING},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    },
    "nothing but alternatives": {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "file"}, "path": STRING}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"const": "url"}, "url": STRING}, "required": ["kind"]},
        ]
    },
    "all of at the top": {"allOf": [{"properties": {"a": STRING}}, {"$ref": "#/$defs/b"}],
                          "$defs": {"b": {"properties": {"b": STRING}, "required": ["b"]}}},
    "conditions": {"properties": {"mode": STRING}, "if": {"properties": {"mode": {"const": "x"}}},
                   "then": {"required": ["size"], "properties": {"size": {"type": "integer"}}}},
    "what is not": {"properties": {"a": STRING}, "not": {"required": ["b"]}},
    "enum at the top": {"type": "object", "properties": {}, "enum": [{}]},
    "names in brackets": {"properties": {"filter[name]": STRING, "filter[id]": STRING, "$top": STRING, "ünïcode": STRING}},
    "names that collide": {"properties": {"a b": STRING, "a_b": STRING, "a$b": STRING}, "required": ["a b", "a$b"]},
    "a long name": {"properties": {"x" * 80: STRING, "x" * 81: STRING}},
    "an empty name": {"properties": {"": STRING}},
    "numbers in an enum": {"properties": {"level": {"type": "integer", "enum": [0, 1, 2]}}},
    "a mixed enum": {"properties": {"level": {"enum": ["low", 1, None, True]}}},
    "an empty enum": {"properties": {"level": {"type": "string", "enum": []}}},
    "an empty text in an enum": {"properties": {"level": {"type": "string", "enum": ["", "low"]}}},
    "an enum without a type": {"properties": {"level": {"enum": ["low", "high"]}}},
    "constants": {"properties": {"a": {"const": 5}, "b": {"const": "x"}, "c": {"const": None}, "d": {"const": {}}}},
    "a list of types": {"properties": {"value": {"type": ["string", "integer", "object", "null"], "description": "Any"}}},
    "an object or null": {"properties": {"o": {"type": ["object", "null"], "properties": {"a": STRING}}}},
    "properties without a type": {"properties": {"o": {"properties": {"a": STRING}}}},
    "no type at all": {"properties": {"any": {}, "told": {"description": "Anything"}}},
    "booleans for schemas": {"properties": {"yes": True, "no": False}, "additionalProperties": {"type": "string"}},
    "a description next to alternatives": {
        "properties": {"n": {"anyOf": [{"type": "number"}, {"type": "null"}], "description": "How many", "default": None}}
    },
    "a reference next to other keys": {
        "properties": {"a": {"$ref": "#/$defs/a", "description": "First"}}, "$defs": {"a": {"type": "string"}}
    },
    "a reference to a property": {
        "properties": {"h": {"type": "object"}, "l": {"type": "array", "items": {"$ref": "#/properties/h"}}}
    },
    "a type that contains itself": {
        "properties": {"node": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": STRING}}},
    },
    "a schema that contains itself": {"properties": {"inside": {"$ref": "#"}}},
    "two that contain each other": {
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, STRING]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
    },
    "a reference to nowhere": {"properties": {"a": {"$ref": "#/$defs/gone"}, "b": {"$ref": "https://x.example/s"}}},
    "a reference with odd letters": {"properties": {"a": {"$ref": "#/$defs/a~1b%20c"}}, "$defs": {"a/b c": STRING}},
    "patterns": {"properties": {"a": {"type": "string", "pattern": "\\d+"}, "b": {"type": "string", "pattern": "^(?!x).*$"}}},
    "formats": {"properties": {"a": {"type": "string", "format": "uri"}, "b": {"type": "string", "format": "date-time"}}},
    "large bounds": {"properties": {"a": {"type": "string", "maxLength": 1_000_000}, "b": {"type": "array", "maxItems": 9999}}},
    "bounds": {"properties": {"n": {"type": "integer", "exclusiveMinimum": 0, "maximum": 10, "multipleOf": 2}}},
    "required and unknown": {"properties": {"a": STRING}, "required": ["a", "a", "b"]},
    "required in items": {"properties": {"l": {"type": "array", "items": {"type": "object", "required": ["type"]}}}},
    "required without properties": {"type": "object", "required": ["x"]},
    "nothing": {},
    "free objects": {"properties": {"o": {"type": "object"}, "p": {"type": "object", "additionalProperties": STRING}}},
    "nullable": {"properties": {"a": {"type": "string", "nullable": True}}},
    "deprecated keys": {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "properties": {"a": {
        "type": "string", "examples": ["x"], "deprecated": True, "readOnly": True, "$comment": "y", "x-order": 1}}},
    "dependent": {"properties": {"a": STRING}, "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {"type": "array"}}},
    "many values": {"properties": {f"a{at}": {"type": "string", "enum": [f"v{n}" for n in range(200)]} for at in range(6)},
                    "required": [f"a{at}" for at in range(6)], "additionalProperties": False},
    "long values": {"properties": {"a": {"type": "string", "enum": ["x" * 90 + str(n) for n in range(260)]}},
                    "required": ["a"], "additionalProperties": False},
    "names by a pattern": {"patternProperties": {"^x": {"type": "array"}}},
    "properties on a text": {"properties": {"a": {"type": "string", "properties": {"b": STRING}, "items": {}}}},
    "unknown types": {"properties": {"a": {"type": "file"}, "b": {"type": ["date", "string"]}}},
    "properties called as keywords are": {"properties": {"properties": {"type": "object", "properties": {"items": {"type": "array"}}}, "anyOf": STRING}},
}  # fmt: skip


def tool(schema: dict[str, Any], name: str = "tool") -> ToolSpec:
    offered = simplify_schema(schema)
    return ToolSpec(name, "Does something.", offered, strict=fits_strict_mode(offered))


def refusals(spec: ToolSpec) -> list[str]:
    """What the makers say to a request with this tool, each with its name."""
    found = []
    for dialect in DIALECTS:
        model = "gemini-3-pro" if dialect.name == "gemini" else "a-model"
        request = RequestWriter(NamedModel(model, model), chat_body).write(HELLO, [spec])
        try:
            dialect.check({"model": model, "stream": True, **request.body})
        except RefusalError as refusal:
            found.append(f"{dialect.name}: {refusal}")
    try:
        request = RequestWriter(NamedModel("m", "m"), responses_body).write(HELLO, [spec])
        check_response({"model": "m", "stream": True, **request.body})
    except RefusalError as refusal:
        found.append(f"responses: {refusal}")
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_maker_takes_what_is_sent_of_a_schema(name):
    assert refusals(tool(SCHEMAS[name])) == []


def as_it_was(schema: dict[str, Any]) -> dict[str, Any]:
    """A request with a server's schema nearly as it is."""
    function = {"name": "tool", "description": "x", "parameters": simplify_schema(schema)}
    return {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": function}]}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "makers"),
    [
        ("no items", "openai openai-strict gemini"),
        ("no items in a list of types", "openai openai-strict gemini"),
        ("alternatives at the top", "openai openai-strict anthropic gemini"),
        ("names in brackets", "anthropic"),
        ("numbers in an enum", "gemini"),
        ("a reference to a property", "anthropic gemini"),
        ("patterns", "templates"),
        ("large bounds", "templates"),
        ("an empty enum", "gemini templates"),
    ],
)
def test_the_makers_refuse_these_schemas_as_they_are(name, makers):
    refused = []
    for dialect in DIALECTS:
        try:
            dialect.check(as_it_was(SCHEMAS[name]))
        except RefusalError:
            refused.append(dialect.name)
    assert set(makers.split()) <= set(refused)


@pytest.mark.parametrize("count", thin([100, 400]))
def test_made_up_schemas_are_taken(count):
    drawn = random.Random(44)
    for number in range(count):
        schema = made_up(drawn, 4)
        assert (
            refusals(tool({"type": "object", "properties": {"a": schema, "b c": made_up(drawn, 3)}})) == []
        ), (
            number,
            schema,
        )


def made_up(drawn: random.Random, depth: int) -> Any:
    """A schema of the shapes that servers publish, right or wrong."""
    kind = drawn.choice(["string", "number", "integer", "boolean", "object", "array", "null", "union", "odd"])
    inner = (lambda: made_up(drawn, depth - 1)) if depth else (lambda: {"type": "string"})
    made: dict[str, Any] = {"type": kind}
    if kind == "object":
        names = drawn.sample(
            ["a", "b", "filter[x]", "@type", "very " * 20, "items", "$ref "], drawn.randint(0, 4)
        )
        made |= {
            "properties": {name: inner() for name in names},
            "required": drawn.sample(names, len(names) // 2),
        }
        made |= drawn.choice(
            [{}, {"additionalProperties": inner()}, {"additionalProperties": False}, {"minProperties": 1}]
        )
    elif kind == "array":
        made |= drawn.choice(
            [{}, {"items": inner()}, {"items": [inner(), inner()]}, {"prefixItems": [inner()]}]
        )
    elif kind == "union":
        made = {drawn.choice(["anyOf", "oneOf", "allOf"]): [inner() for _ in range(drawn.randint(1, 3))]}
    elif kind == "odd":
        made = drawn.choice([
            True, False, {}, {"const": 3}, {"enum": [1, "a", None]}, {"type": ["array", "object", "null"]},
            {"$ref": "#"}, {"$ref": "#/properties/a"}, {"not": {}}, {"type": "string", "enum": []},
            {"properties": {"x": inner()}}, {"if": inner(), "then": inner(), "else": inner()},
        ])  # fmt: skip
    if isinstance(made, dict) and drawn.random() < 0.3:
        made |= {"description": "Words", "default": None, "title": "T"}
    return made


def test_arguments_come_back_under_the_names_of_the_tool():
    schema = {
        "type": "object",
        "properties": {
            "filter[name]": {"type": "string"},
            "rows": {
                "type": "array",
                "items": {"type": "object", "properties": {"$top": {"type": "integer"}}},
            },
            "free": {"type": "object"},
        },
    }
    offer = offer_tool(tool(schema))
    sent = {own: name for name, own in offer.own_name_by_sent.items()}
    assert all(name.replace("_", "").isalnum() for name in offer.own_name_by_sent)
    given = {sent["filter[name]"]: "x", "rows": [{sent["$top"]: 3}], "free": {sent["$top"]: "stays"}}
    own = {"filter[name]": "x", "rows": [{"$top": 3}], "free": {sent["$top"]: "stays"}}
    assert json.loads(offer.restore_arguments(json.dumps(given))) == own
    assert offer.restore_arguments("{broken") == "{broken"
    earlier = json.loads(offer.rename_arguments(json.dumps({"filter[name]": "x", "rows": [{"$top": 3}]})))
    assert earlier == {sent["filter[name]"]: "x", "rows": [{sent["$top"]: 3}]}


def test_objects_of_free_names_travel_as_text_where_a_maker_refuses_them():
    offer = offer_tool(tool({"type": "object", "properties": {"fields": {"type": "object"}}}), plain=True)
    assert offer.parameters["properties"]["fields"]["type"] == "string"
    for given in ('{"fields": "{\\"a\\": 1}"}', '{"fields": {"a": 1}}'):
        assert json.loads(offer.restore_arguments(given)) == {"fields": {"a": 1}}


def test_what_a_schema_can_not_say_is_said_in_words():
    part = {"type": "integer", "enum": [1, 2], "minimum": 1, "default": 2, "description": "How loud"}
    made = offer_tool(tool({"properties": {"n": part}})).parameters["properties"]["n"]
    assert made == {"type": "integer", "description": "How loud. One of: 1, 2. At least 1. Default: 2."}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"$ref": "#/$defs/id"}, {"$ref": "#/$defs/name"}),
        ({"anyOf": [INTEGER, NULL]}, STRING | {"const": "a"}),
    ],
)
def test_an_argument_may_be_what_it_is_in_either_alternative(first, second):
    alternatives = [{"properties": {"key": part}, "required": ["key"]} for part in (first, second)]
    schema = {"oneOf": alternatives, "$defs": {"id": INTEGER, "name": STRING}}
    key = offer_tool(tool(schema)).parameters["properties"]["key"]
    assert {part["type"] for part in key["anyOf"]} >= {"integer", "string"}


def test_strict_is_said_only_where_it_is_so():
    closed = {"type": "object", "properties": {"a": STRING}, "required": ["a"], "additionalProperties": False}
    assert offer_tool(tool(closed)).strict
    assert not offer_tool(tool(closed), strict=False).strict
    for part in (
        {"type": ["object", "null"], "properties": {"a": STRING}},
        {"properties": {"a": STRING}},
        {"type": "object", "additionalProperties": STRING},
        {"$ref": "#/$defs/x", "description": "y"},
        {"type": "string", "format": "uri"},
    ):
        schema = closed | {"properties": {"a": part}, "$defs": {"x": closed}}
        assert not fits_strict_mode(schema), part


@pytest.mark.parametrize("name", ["many values", "long values"])
def test_a_schema_over_the_limits_of_strict_mode_is_not_said_to_be_strict(name):
    schema = {"type": "object", **SCHEMAS[name]}
    with pytest.raises(RefusalError, match="enum"):
        check_strict_schema("tool", schema)
    assert not fits_strict_mode(schema)


@pytest.mark.parametrize("name", ["no items", "alternatives at the top", "enum at the top", "no type at all"])
def test_the_responses_interface_refuses_what_the_other_one_does(name):
    for strict in (True, False):
        made = {"name": "tool", "type": "function", "parameters": SCHEMAS[name], "strict": strict}
        with pytest.raises(RefusalError, match="Invalid schema for function 'tool'"):
            check_response({"model": "m", "input": [{"role": "user", "content": "x"}], "tools": [made]})


def test_a_long_description_is_cut_and_still_says_who_approves():
    spec = ToolSpec("tool", "x" * 3000 + APPROVED_FIRST, {"type": "object", "properties": {}})
    offer = offer_tool(spec)
    assert len(offer.description) == MAX_DESCRIPTION_CHARS
    assert offer.description.endswith(APPROVED_FIRST)
    assert offer.omissions == ("the end of its description",)


def test_of_more_tools_than_a_request_takes_those_are_offered_that_people_write_of():
    specs = [ToolSpec(f"jira_{word}_{n}", f"{word} it", {"type": "object", "properties": {}})
             for word in ("list", "sprint", "close") for n in range(60)]  # fmt: skip
    assert choose_tools(specs[:100], HELLO) == specs[:100]
    called = AssistantText("", (ToolCall("c1", "jira_close_59", "{}"),))
    chosen = [
        each.name
        for each in choose_tools(specs, (*HELLO, called, UserText("start a sprint with jira_close_7")))
    ]
    assert len(chosen) == 128
    assert {"jira_close_59", "jira_close_7", *(f"jira_sprint_{n}" for n in range(60))} <= set(chosen)
    request = RequestWriter(NamedModel("m", "m"), chat_body).write(HELLO, specs)
    assert len(request.body["tools"]) == 128
    said = request.body["messages"][0]["content"]
    assert "jira_close_59" in said
    assert "write its full name" in said


def test_a_blank_description_of_an_argument_hides_none_of_its_facts():
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "description": " ", "pattern": "^x"}},
    }
    parameters = offer_tool(ToolSpec("rename", "Rename.", schema)).parameters
    assert parameters is not None
    assert parameters["properties"]["name"]["description"] == "Pattern: ^x"
