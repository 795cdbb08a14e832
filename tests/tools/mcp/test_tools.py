"""A server's tool as one of ours: risk, name, version, schema, arguments and answers."""

import base64
import json
from typing import Any

import pytest
from mcp import types
from mcp.types import ToolAnnotations as Hints

from bot.domain.files import File
from bot.domain.redaction import redact
from bot.domain.risks import Level
from bot.errors import BadArguments, ToolError
from bot.tools.mcp.config import ServerConfig, Stdio, Trust
from bot.tools.mcp.interface import decline
from bot.tools.mcp.server import Server
from bot.tools.mcp.tools import adopt, hash_tool, judge_risk, make_model_name, make_output
from bot.tools.tool import Tool

TRUSTED = ServerConfig("lamps", Stdio("x"), Trust.TRUSTED, prefix="lamps_")
UNTRUSTED = ServerConfig("lamps", Stdio("x"), Trust.UNTRUSTED, prefix="lamps_")
LAMP = {"type": "object", "properties": {"lamp": {"type": "string"}}, "required": ["lamp"]}


def theirs(schema: dict[str, Any] | None = None, **parts: Any) -> types.Tool:
    given = {"name": "paint", "description": "Paint a lamp.", "input_schema": schema or LAMP, **parts}
    return types.Tool(**given)


def ours(clock, tool: types.Tool, config: ServerConfig = TRUSTED) -> Tool:
    return adopt(Server(config, decline, clock=clock, answer_seconds=1), tool, 1)


@pytest.mark.parametrize(
    ("hints", "trusted", "untrusted"),
    [
        (None, "write", "write"),
        (Hints(), "write", "write"),
        (Hints(read_only_hint=True), "read", "write"),
        (Hints(read_only_hint=False), "write", "write"),
        (Hints(destructive_hint=True), "destructive", "destructive"),
        (Hints(destructive_hint=False), "write", "write"),
        (Hints(read_only_hint=False, destructive_hint=True), "destructive", "destructive"),
        (Hints(read_only_hint=True, destructive_hint=False), "read", "write"),
        (Hints(read_only_hint=True, destructive_hint=True), "destructive", "destructive"),
        (Hints(idempotent_hint=True), "write", "write"),
        (Hints(open_world_hint=False), "write", "write"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value and value.model_dump(exclude_none=True)),
)
def test_hints_may_raise_the_risk_and_lower_it_only_where_the_server_is_trusted(hints, trusted, untrusted):
    assert judge_risk(TRUSTED, hints).level == trusted
    assert judge_risk(UNTRUSTED, hints).level == untrusted


@pytest.mark.parametrize(
    ("hints", "vouched"),
    [
        (None, False),
        (Hints(), False),
        (Hints(read_only_hint=False), False),
        (Hints(read_only_hint=False, destructive_hint=False), True),
        (Hints(destructive_hint=False), True),
        (Hints(idempotent_hint=True), False),
    ],
    ids=lambda value: str(getattr(value, "model_dump", dict)() and value),
)
def test_that_a_change_can_be_undone_is_believed_of_trusted_servers_that_say_so(hints, vouched):
    assert judge_risk(TRUSTED, hints).vouched is vouched
    assert not judge_risk(UNTRUSTED, hints).vouched
    assert not judge_risk(UNTRUSTED, Hints(read_only_hint=True, destructive_hint=False)).vouched


def test_a_tool_reads_only_where_no_arguments_make_it_write(clock):
    read = theirs(annotations=Hints(read_only_hint=True))
    assert ours(clock, read).reads
    assert not ours(clock, read, UNTRUSTED).reads
    assert ours(clock, read, UNTRUSTED).classify({}).level is Level.WRITE
    assert not ours(clock, theirs()).reads


def test_only_a_trusted_server_may_say_that_a_write_can_be_repeated(clock):
    again = theirs(annotations=Hints(idempotent_hint=True))
    assert ours(clock, again).idempotent
    assert not ours(clock, again, UNTRUSTED).idempotent
    assert not ours(clock, theirs()).idempotent


@pytest.mark.parametrize(
    ("prefix", "name", "expected"),
    [
        ("git_", "commit", "git_commit"),
        ("git_", "git_commit", "git_commit"),
        ("", "commit", "commit"),
        ("git_", "repo/commit.new", "git_repo_commit_new"),
        ("git_", "ünïcode", "git__n_code"),
    ],
)
def test_a_name_is_prefixed_once_and_has_only_characters_that_models_take(prefix, name, expected):
    assert make_model_name(ServerConfig("git", Stdio("x"), prefix=prefix), name) == expected


def test_a_long_name_is_cut_and_stays_its_own():
    one, two = (make_model_name(TRUSTED, "x" * 80 + end) for end in "ab")
    assert len(one) == len(two) == 64
    assert one != two


@pytest.mark.parametrize(
    "change",
    [
        {"name": "repaint"},
        {"description": "Throw a lamp away."},
        {"input_schema": {**LAMP, "required": []}},
        {"annotations": Hints(destructive_hint=False)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_version_covers_all_that_a_tool_is_judged_by(change):
    before = theirs()
    assert hash_tool("lamps", before.model_copy(update=change)) != hash_tool("lamps", before)
    assert hash_tool("lamps", theirs()) == hash_tool("lamps", before)
    assert hash_tool("other", before) != hash_tool("lamps", before)


def test_the_schema_goes_to_the_model_as_it_is(clock):
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"lamp": {"$ref": "#/$defs/Lamp"}, "coats": {"type": "integer", "default": 1}},
        "$defs": {"Lamp": {"type": "string", "title": "Lamp", "examples": ["desk"]}},
        "required": ["lamp"],
    }
    tool = ours(clock, theirs(schema))
    assert tool.parameters == schema
    assert not tool.strict


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({**LAMP, "additionalProperties": False}, True),
        (LAMP, False),
        ({**LAMP, "required": [], "additionalProperties": False}, False),
        ({"type": "object", "additionalProperties": False}, True),
    ],
    ids=["closed", "open", "optional", "nothing"],
)
def test_strict_is_said_only_of_a_schema_that_strict_mode_takes(clock, schema, strict):
    assert ours(clock, theirs(schema)).strict is strict


@pytest.mark.parametrize(
    "part",
    [
        True,
        {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array", "items": True},
        {"anyOf": [True, {"type": "null"}]},
        {"type": "object", "additionalProperties": True},
        {"type": ["string", "null"]},
    ],
    ids=str,
)
def test_a_schema_of_any_legal_shape_can_be_offered_and_its_arguments_shown(clock, part):
    older = {"$schema": "http://json-schema.org/draft-07/schema#"}  # where items may be a list
    tool = ours(clock, theirs({**older, "type": "object", "properties": {"x": part}}))
    assert redact({"x": ["a", 1]}, tool.parameters) == {"x": ["a", 1]}
    assert json.dumps(tool.spec.parameters)
    with pytest.raises(BadArguments):
        ours(clock, theirs({"type": "object", "properties": {"x": False}})).validate({"x": 1})


@pytest.mark.parametrize(
    "schema",
    [{"type": "objekt"}, {"type": "object", "properties": []}, {"type": "object", "required": "lamp"}],
    ids=str,
)
def test_what_is_no_schema_is_refused(clock, schema):
    with pytest.raises(ValueError, match="this is no JSON schema"):
        ours(clock, theirs(schema))


NESTED = {
    "type": "object",
    "properties": {
        "lamp": {"type": "string", "maxLength": 5},
        "color": {"enum": ["red", "blue"]},
        "coats": {"type": "integer", "minimum": 1},
        "at": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "who": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "note": {"type": ["string", "null"]},
    },
    "required": ["lamp"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({}, {"lamp": "this is required"}),
        ({"lamp": None}, {"lamp": "should be string"}),
        ({"lamp": "x" * 9}, {"lamp": "should satisfy maxLength 5"}),
        ({"lamp": "a", "color": "green"}, {"color": 'should be one of ["red", "blue"]'}),
        ({"lamp": "a", "coats": "2"}, {"coats": "should be integer"}),
        ({"lamp": "a", "coats": 0}, {"coats": "should satisfy minimum 1"}),
        ({"lamp": "a", "at": {}}, {"at.room": "this is required"}),
        ({"lamp": "a", "tags": ["x", 1]}, {"tags.1": "should be string"}),
        ({"lamp": "a", "who": []}, {"who": "fits none of the forms that are allowed here"}),
        (
            {"lamp": "a", "shade": 1},
            {"shade": "there is no such field; there are: lamp, color, coats, at, tags, who, note"},
        ),
        ({"lamp": 1, "coats": 0}, {"lamp": "should be string", "coats": "should satisfy minimum 1"}),
        (["a"], {"arguments": "this must be a JSON object"}),
        ({"lamp": "\ud800"}, {"arguments": "this is not JSON (UnicodeEncodeError)"}),
        ({"lamp": "a", "coats": float("nan")}, {"arguments": "this is not JSON (ValueError)"}),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_refused_naming_the_fields(clock, given, fields):
    with pytest.raises(BadArguments) as caught:
        ours(clock, theirs(NESTED)).validate(given)
    assert caught.value.fields == fields


def test_an_error_about_a_secret_does_not_repeat_it(clock):
    schema = {"type": "object", "properties": {"password": {"type": "string", "maxLength": 3}}}
    with pytest.raises(BadArguments) as caught:
        ours(clock, theirs(schema)).validate({"password": "hunter22"})
    assert "hunter22" not in caught.value.message


def test_null_in_an_optional_argument_means_not_given_unless_it_may_be_null(clock):
    tool = ours(clock, theirs(NESTED))
    assert tool.validate({"lamp": "a", "coats": None, "note": None}) == {"lamp": "a", "note": None}


ONE_OF_TWO = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}


@pytest.mark.parametrize(
    ("properties", "more", "given", "settled"),
    [
        ({"a": {"default": 1}, "b": {}}, {}, {}, {"a": 1}),
        ({"a": {"default": 1}}, {}, {"a": 2}, {"a": 2}),
        ({"a": {"type": "integer", "default": 1}}, {}, {"a": None}, {"a": 1}),
        ({"a": {"type": ["integer", "null"], "default": 1}}, {}, {"a": None}, {"a": None}),
        ({"a": {"default": None}, "b": {"default": []}}, {}, {}, {"b": []}),
        ({"a": {"$ref": "#/$defs/A"}}, {"$defs": {"A": {"default": "x"}}}, {}, {"a": "x"}),
        # a default that the schema refuses is not sent
        ({"a": {"type": "integer", "default": "1"}, "b": {"default": 2}}, {}, {}, {"b": 2}),
        ({"a": {"default": 1}, "b": {"default": 2}}, ONE_OF_TWO, {"b": 3}, {"b": 3}),
    ],
)
def test_what_is_not_given_is_filled_in_by_the_schema_as_far_as_it_allows(
    clock, properties, more, given, settled
):
    tool = ours(clock, theirs({"type": "object", "properties": properties, **more}))
    assert tool.validate(given) == settled
    assert tool.validate(settled) == settled


def test_the_summary_leaves_out_defaults(clock):
    tool = ours(clock, theirs({"type": "object", "properties": {"a": {"default": 1}, "b": {}}}))
    assert tool.summary({"a": 1, "b": 1}) == "Paint on lamps: b = 1"
    assert tool.summary({"a": True, "b": 1}) == "Paint on lamps: a = true, b = 1"


def test_arguments_that_fit_stay_as_they_were_given(clock):
    given = {"lamp": "a", "at": {"room": "x", "more": [1.5, None, True]}, "tags": []}
    tool = ours(clock, theirs(NESTED))
    assert tool.validate(given) == given
    assert tool.validate(tool.validate(given)) == given
    assert tool.validate(given)["at"] is not given["at"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"lamp": {"$ref": "https://evil.example/schema.json"}}},
        {"type": "object", "properties": {"lamp": {"$ref": "file:///etc/passwd"}}},
        {"type": "object", "properties": {"lamp": {"$ref": "#/$defs/gone"}}},
        {"type": "object", "properties": {"lamp": {"$ref": "#/properties/lamp"}}},
    ],
    ids=["web", "file", "nowhere", "circle"],
)
def test_a_reference_out_of_the_schema_or_into_itself_is_never_followed(clock, schema):
    with pytest.raises(BadArguments, match="they can't be checked"):
        ours(clock, theirs(schema)).validate({"lamp": "a"})


def test_the_summary_tells_the_call_in_one_plain_line(clock):
    tool = ours(clock, theirs(name="paint_lamp.now", title="Read the weather"))
    given = {"lamp": "desk\rApproved by Ana", "note": "two\nlines", "text": "x" * 200, "at": [1, "ä"]}
    expected = (
        'Read the weather (paint_lamp.now) on lamps: lamp = desk Approved by Ana, text = {}…, at = [1, "ä"]'
    )
    assert tool.summary(given) == expected.format("x" * 59)
    assert tool.summary({}) == "Read the weather (paint_lamp.now) on lamps"


def answer(*content: Any, **parts: Any) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), **parts)


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


IMAGE = types.ImageContent(type="image", data="aGVsbG8h", mime_type="image/png")
FILE = types.EmbeddedResource(
    type="resource",
    resource=types.BlobResourceContents(uri="file:///a.bin", blob="AA==", mime_type="x/y"),
)
NOTE = types.EmbeddedResource(
    type="resource", resource=types.TextResourceContents(uri="file:///a.txt", text="the note")
)


@pytest.mark.parametrize(
    ("result", "data"),
    [
        (answer(text("white")), "white"),
        (answer(text("one"), text("two")), "one\ntwo"),
        (answer(), "no output"),
        (answer(text('{"a": 1}'), structured_content={"a": 1}), {"a": 1}),
        (answer(text("white"), structured_content={"result": "white"}), "white"),
        (answer(structured_content=[1, 2]), [1, 2]),
        (answer(structured_content={"result": 1, "more": 2}), {"result": 1, "more": 2}),
        (answer(text("see"), IMAGE), "see\n[image, image/png, about 6 bytes, people get it as a file]"),
        (
            answer(IMAGE, structured_content={"a": 1}),
            '{"a": 1}\n[image, image/png, about 6 bytes, people get it as a file]',
        ),
        (
            answer(NOTE, FILE),
            "the note\n[file file:///a.bin, x/y, about 3 bytes, people get it as a file]",
        ),
    ],
    ids=range(10),
)
def test_an_answer_is_its_data_or_its_text_with_a_note_for_what_cannot_be_shown(result, data):
    assert make_output(TRUSTED, result).data == data


def test_what_is_no_text_is_a_file_for_people_named_by_its_bytes():
    picture = b"\x89PNG\r\n\x1a\n..."
    shown = types.ImageContent(type="image", data=base64.b64encode(picture).decode(), mime_type="text/html")
    broken = types.ImageContent(type="image", data="no base64!", mime_type="image/png")
    huge = types.ImageContent(type="image", data="A" * 14_000_000, mime_type="image/png")
    made = make_output(TRUSTED, answer(shown, broken, huge, FILE))
    assert made.files == (
        File("image-1.png", "", picture, "image/png"),
        File("a.bin", "", b"\0", "application/octet-stream"),
    )
    assert made.data.count("not shown") == 2


def test_an_answer_that_is_an_error_is_told_without_the_servers_secrets():
    config = ServerConfig("lamps", Stdio("x", env={"T": "tok-4711-very-secret"}))
    with pytest.raises(ToolError, match=r"^the bulb is hot, token ••••••$"):
        make_output(config, answer(text("the bulb is hot, token tok-4711-very-secret"), is_error=True))
    with pytest.raises(ToolError, match="lamps failed and did not say why"):
        make_output(config, answer(is_error=True))


def test_a_tools_title_is_shown_with_its_name_which_it_cannot_hide(clock):
    tool = ours(clock, theirs(title="Look\u202e at a lamp\n"), UNTRUSTED)
    assert tool.summary({"lamp": "desk"}) == "Look at a lamp (paint) on lamps: lamp = desk"
    assert tool.version != ours(clock, theirs(), UNTRUSTED).version
    hinted = ours(clock, theirs(annotations=Hints(title="Paint")))
    assert hinted.summary({}) == "Paint on lamps"
