"""The @tool decorator and the registry."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from sqlmodel import Session
from structlog.testing import capture_logs

from bot.approvals.drafts import summary_of
from bot.domain.preview import PreviewField
from bot.domain.risks import Level
from bot.errors import BadArguments, UnknownTool
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.custom import OwnTools, Source
from bot.tools.decorator import tool
from bot.tools.registry import Registry
from bot.tools.signature import find_parameter
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset
from bot.tools.trial import TrialOutput

CONTEXT = CallContext("c1", "http:ana", "key-1")


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Box(BaseModel):
    title: str
    size: Size = Size.SMALL
    tags: list[str] = []


class Node(BaseModel):
    name: str
    children: "list[Node]" = Field(default=[], description="what is below")


@tool()
async def pack(
    box: Box,
    by: date,
    boxes: list[Box] | None = None,
    size: Size = Size.LARGE,
    speed: Literal["slow", "fast"] = "slow",
) -> Any:
    """Pack a box
    for the post.

    More words, for people who read the code.

    Args:
        box: what to pack: the first one,
            and only that
        by (date): the last day
        size: how large

    Returns:
        speed: this is not a parameter
    """
    return {"box": box, "by": by, "boxes": boxes, "size": size, "speed": speed}


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every object schema inside a schema."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    here = [schema] if schema.get("type") == "object" else []
    return here + [found for item in schema.values() for found in objects(item)]


def shelf_of(*tools: Tool, name: str = "own") -> FixedToolset:
    return FixedToolset(name, tools)


def test_every_object_in_a_schema_requires_all_its_properties_and_allows_no_others():
    found = objects(pack.parameters)
    assert len(found) == 3
    for each in found:
        assert each["required"] == list(each["properties"])
        assert each["additionalProperties"] is False
    assert pack.strict


def test_a_schema_has_no_references_no_defaults_and_no_titles_but_keeps_a_property_called_title():
    text = json.dumps(pack.parameters)
    assert "$ref" not in text
    assert '"default"' not in text
    assert '"title": "' not in text
    assert pack.parameters["properties"]["box"]["properties"]["title"] == {"type": "string"}


def test_enumerations_and_dates_say_what_they_take():
    properties = pack.parameters["properties"]
    assert properties["box"]["properties"]["size"] == {"type": "string", "enum": ["small", "large"]}
    assert properties["by"] == {"type": "string", "format": "date", "description": "the last day"}


def test_an_optional_parameter_may_be_null_and_keeps_its_description_on_the_outside():
    assert pack.parameters["properties"]["size"] == {
        "anyOf": [{"type": "string", "enum": ["small", "large"]}, {"type": "null"}],
        "description": "how large",
    }


def test_a_type_that_contains_itself_is_referred_to_with_nothing_next_to_the_reference():
    @tool()
    async def grow(root: Node) -> None:
        """Grow.

        Args:
            root: where to start
        """

    assert grow.parameters["properties"]["root"]["description"] == "where to start"
    assert grow.parameters["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert grow.parameters["$defs"]["Node"]["required"] == ["name", "children"]
    assert grow.strict


@pytest.mark.parametrize(
    "annotation",
    [dict[str, int], Any, Annotated[str, Field(pattern="(?i)x")], tuple[int, str], list, set[str]],
)
def test_what_strict_mode_cannot_say_is_offered_without_it(annotation):
    async def loose(value):
        pass

    loose.__annotations__ = {"value": annotation}
    assert not tool()(loose).strict


def test_an_object_with_free_keys_keeps_them_free():
    @tool()
    async def count(many: dict[str, int]) -> None: ...

    assert count.parameters["properties"]["many"] == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }
    assert count.validate({"many": {"a": 1}}) == {"many": {"a": 1}}


def test_a_tool_may_be_marked_without_parentheses():
    @tool
    async def notify(notifier: str) -> str:
        """Ring a bell."""
        return notifier

    assert (notify.name, notify.description, notify.reads) == ("notify", "Ring a bell.", False)


def test_the_description_is_the_first_paragraph_of_the_docstring():
    assert pack.description == "Pack a box for the post."


def test_parameter_descriptions_come_from_the_args_lines_and_may_continue_in_the_next_line():
    box = pack.parameters["properties"]["box"]
    assert box["description"] == "what to pack: the first one, and only that"
    assert "description" not in pack.parameters["properties"]["speed"]


def test_a_tool_without_a_docstring_is_described_by_its_name():
    @tool()
    async def send_parcel() -> None: ...

    assert send_parcel.description == "send parcel"
    assert send_parcel.parameters == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_null_in_an_optional_parameter_means_not_given_and_defaults_are_filled_in():
    given = {"box": {"title": "t"}, "by": "2026-03-02", "boxes": None, "size": None, "speed": None}
    assert pack.validate(given) == {
        "box": {"title": "t", "size": "small", "tags": []},
        "by": "2026-03-02",
        "size": "large",
        "speed": "slow",
    }


async def test_a_default_is_checked_and_passed_as_if_it_were_given_and_one_that_is_no_data_is_left_alone():
    nothing, got = object(), []

    @tool()
    async def ship(
        day: date = date(2026, 3, 2),
        size: Size = Size.LARGE,
        most: Annotated[int, Field(ge=1)] = 0,
        tags: list[str] = [],  # noqa: B006 - that it stays empty is what is tested
        other: Any = nothing,
        note: str | None = None,
    ) -> None:
        got.append((day, size, most, tags, other, note))
        tags.append("seen")

    filled = {"day": "2026-03-02", "size": "large", "most": 0, "tags": []}
    assert ship.validate({}) == ship.validate(filled) == filled == ship.defaults
    for arguments in (filled, {}):  # of this release, and of one before
        got.clear()
        await ship.run(arguments, CallContext("c", "chat:ana"))
        assert got[0][:3] == (date(2026, 3, 2), Size.LARGE, 0)
        assert got[0][4:] == (nothing, None)
    assert ship.validate({}) == filled
    with pytest.raises(BadArguments):
        ship.validate({"most": -1})


def test_null_in_a_required_parameter_that_takes_null_stays():
    @tool()
    async def assign(who: str | None) -> None: ...

    assert assign.validate({"who": None}) == {"who": None}
    with pytest.raises(BadArguments):
        assign.validate({})


def test_canonical_arguments_stay_the_same_when_checked_again():
    once = pack.validate({"box": {"title": "t"}, "by": "2026-03-02", "size": "small"})
    assert pack.validate(once) == once


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"by": "2026-03-02"}, "box"),
        ({"box": {"title": "t"}, "by": "some day"}, "by"),
        ({"box": {"title": "t", "size": "huge"}, "by": "2026-03-02"}, "box.size"),
        ({"box": {"title": "t"}, "by": "2026-03-02", "boxes": [{}]}, "boxes.0.title"),
        ({"box": {"title": "t"}, "by": "2026-03-02", "speed": "warp"}, "speed"),
        ({"box": {"title": "t"}, "by": "2026-03-02", "color": "red"}, "color"),
        ([], "arguments"),
    ],
)
def test_bad_arguments_are_refused_naming_the_field(given, field):
    with pytest.raises(BadArguments) as caught:
        pack.validate(given)
    assert list(caught.value.fields) == [field]
    assert field in caught.value.message


def test_what_does_not_fit_is_told_as_a_sentence_for_each_field():
    @tool()
    async def name(value: Annotated[str, Field(max_length=3)]) -> None: ...

    with pytest.raises(BadArguments) as caught:
        name.validate({"value": "long", "colour": "red"})
    assert caught.value.message == (
        "value: At most 3 characters. colour: There is no such field. There are: value."
    )
    assert BadArguments({"arguments": "this is not JSON"}).message == "arguments: this is not JSON."


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_cannot_say_is_refused(number):
    @tool()
    async def pay(amount: float) -> None: ...

    with pytest.raises(BadArguments, match="amount"):
        pay.validate({"amount": number})


async def test_the_function_gets_its_own_types_and_its_defaults():
    seen = {}

    @tool()
    async def pack_all(
        by: date, boxes: list[Box], wait: timedelta, size: Size = Size.LARGE, note: str | None = "none"
    ) -> str:
        seen.update(by=by, boxes=boxes, wait=wait, size=size, note=note)
        return "packed"

    given = {"by": "2026-03-02", "boxes": [{"title": "t", "size": "large"}], "wait": "PT5M"}
    output = await pack_all.run(pack_all.validate(given), CONTEXT)
    assert output == ToolOutput("packed")
    assert seen == {
        "by": date(2026, 3, 2),
        "boxes": [Box(title="t", size=Size.LARGE)],
        "wait": timedelta(minutes=5),
        "size": Size.LARGE,
        "note": "none",
    }


async def test_a_parameter_annotated_with_the_call_context_gets_it_and_is_not_offered():
    @tool()
    async def who(call: CallContext, number: int) -> list[Any]:
        return [call, number]

    assert list(who.parameters["properties"]) == ["number"]
    assert (await who.run({"number": 3}, CONTEXT)).data == [CONTEXT, 3]
    with pytest.raises(BadArguments, match="call"):
        who.validate({"number": 3, "call": {}})


async def test_a_tool_may_answer_with_an_output_of_its_own_that_has_a_link():
    @tool()
    async def make() -> ToolOutput:
        return ToolOutput({"number": 1}, url="https://example.org/1")

    output = await make.run({}, CONTEXT)
    assert (output.text, output.url) == ('{"number": 1}', "https://example.org/1")


def test_output_that_is_not_json_is_told_as_near_as_can_be():
    output = ToolOutput({"by": date(2026, 3, 2), "box": Box(title="t"), "raw": b"\xff", "other": object})
    told = json.loads(output.text)
    assert told["by"] == "2026-03-02"
    assert told["box"] == {"title": "t", "size": "small", "tags": []}
    assert isinstance(told["raw"], str)
    assert isinstance(told["other"], str)


def test_output_that_holds_itself_or_is_nested_too_deep_is_told_too():
    circle: list[Any] = []
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert {ToolOutput(circle).text, ToolOutput(deep).text} == {"(an answer that can't be written as JSON)"}


def versioned(default: Any = 1, annotation: Any = int, version: str = "1", doc: str = "Do it.") -> str:
    async def work(amount=default):
        pass

    work.__annotations__ = {"amount": annotation}
    work.__doc__ = doc
    return tool(version=version)(work).version


def test_the_version_is_the_same_for_the_same_tool():
    assert versioned() == versioned()


@pytest.mark.parametrize(
    "other",
    [{"annotation": float}, {"default": 2}, {"version": "2"}, {"doc": "Do something else."}],
    ids=["type", "default", "version", "description"],
)
def test_the_version_changes_when_the_same_arguments_could_mean_something_else(other):
    assert versioned(**other) != versioned()


def test_a_function_that_is_not_async_is_refused_where_it_is_defined():
    with pytest.raises(TypeError, match="tool wait must be an async function"):

        @tool()
        def wait() -> None: ...


def test_a_parameter_without_a_type_is_refused_where_it_is_defined():
    with pytest.raises(TypeError, match="parameter number of tool close needs a type"):

        @tool()
        async def close(number) -> None: ...


def test_a_tool_that_takes_a_session_of_its_own_accord_is_refused_where_it_is_defined():
    with pytest.raises(TypeError, match="tool look takes a Session"):

        @tool(writes=False)
        async def look(session: Session) -> None: ...


def test_parameters_that_have_no_name_of_their_own_are_refused_where_they_are_defined():
    with pytest.raises(TypeError, match="parameter rest of tool spread"):

        @tool()
        async def spread(*rest: int) -> None: ...

    with pytest.raises(TypeError, match="parameter number of tool place"):

        @tool()
        async def place(number: int, /) -> None: ...


def test_a_tool_writes_unless_it_says_otherwise():
    async def work() -> None: ...

    write, read = tool()(work), tool(writes=False)(work)
    assert (write.reads, write.classify({}).level) == (False, Level.WRITE)
    assert (read.reads, read.classify({}).level) == (True, Level.READ)
    destructive = tool(writes=False, destructive=True)(work)
    assert (destructive.reads, destructive.classify({}).level) == (False, Level.DESTRUCTIVE)


def test_a_tool_that_classifies_its_arguments_is_not_taken_for_a_read():
    async def work() -> None: ...

    assert not tool(writes=False, classify=tool()(work).classify)(work).reads


def test_a_summary_reads_arguments_that_were_not_given_as_nothing():
    @tool(summary="Close #{number}{reason}")
    async def close(number: int, reason: str = "") -> None: ...

    assert close.summary({"number": 3}) == "Close #3"
    assert close.summary({"number": 3, "reason": ": done {number}"}) == "Close #3: done {number}"


def test_a_summary_says_lists_and_objects_in_words():
    @tool(summary="Invite {who} to {room}")
    async def invite(who: list[str], room: dict[str, str]) -> None: ...

    room = {"floor": "2", "name": "Oak"}
    many = [f"p{number}@a.example" for number in range(120)]
    assert invite.summary({"who": many[:2], "room": room}) == (
        "Invite p0@a.example, p1@a.example to floor: 2, name: Oak"
    )
    assert invite.summary({"who": many, "room": {}}) == "Invite p0@a.example and 119 more to none"
    assert len(summary_of(invite, {"who": ["x" * 5000], "room": room})) == 300


def test_without_a_summary_the_call_is_told_with_its_arguments():
    assert pack.summary({"by": "2026-03-02", "boxes": []}) == "Pack: by = 2026-03-02, boxes = []"


async def test_without_a_preview_every_value_that_runs_is_shown_defaults_too():
    fields = await pack.preview_fields({"by": "2026-03-02", "boxes": [1], "speed": "fast"})
    assert fields == (
        PreviewField("by", None, "2026-03-02"),
        PreviewField("boxes", None, "1"),
        PreviewField("speed", None, "fast"),
        PreviewField("size", None, "large (default)"),
    )


async def test_a_shelf_names_what_there_is_when_a_tool_is_unknown():
    available = await Registry([shelf_of(pack)]).load_tools()
    assert available.get("pack") is pack
    assert list(available) == [pack]
    with pytest.raises(UnknownTool, match=r"'unpack'.*There are: pack"):
        available.get("unpack")


async def test_of_two_tools_of_one_name_the_first_is_there_and_the_log_says_which_to_rename():
    registry = Registry([shelf_of(pack), shelf_of(replace(pack, version="2"), name="theirs")])
    with capture_logs() as logs:
        for _ in range(2):
            assert list(await registry.load_tools()) == [pack]
    [line] = logs
    assert (line["tool"], line["left_out_of"], "rename" in line["event"]) == ("pack", "theirs", True)


async def test_only_callables_that_take_a_context_are_given_one():
    seen: list[object] = []

    async def title(arguments: Arguments) -> str:
        return "plain"

    async def preview(arguments: Arguments, there: CallContext) -> list[PreviewField]:
        seen.append(there)
        return []

    async def trial(arguments: Arguments, there: CallContext) -> TrialOutput:
        seen.append(there)
        return TrialOutput([])

    async def apply(arguments: Arguments, token: Any, context: CallContext) -> str:
        return "done"

    @tool(title=title, preview=preview, trial=trial, apply=apply)
    async def move() -> None: ...

    assert await move.preview_fields({}) == ()
    assert seen == [CallContext("", "")]
    for context in (CallContext("c1", "http:ana"), CallContext("c2", "http:ben")):
        move = move.in_context(context)
        assert move.trial_functions is not None
        await move.preview_fields({})
        await move.trial_functions.trial({})
        assert seen[-2:] == [context, context]
        assert move.title is title
    assert pack.in_context(CONTEXT) is pack


@pytest.mark.parametrize("hint", [CallContext, CallContext | None, "CallContext | None"])
async def test_a_toolset_may_be_told_for_whom_it_is_asked(hint: Any):
    seen: list[CallContext | None] = []

    class Telling:
        name = "telling"

        async def tools(self, there: CallContext | None = None) -> Sequence[Tool]:
            seen.append(there)
            return [pack]

        tools.__annotations__["there"] = hint

    registry = Registry([OwnTools([Source("theirs", (Telling(),))]), FixedToolset("fixed", ())])
    await registry.load_tools(CONTEXT)
    await registry.load_tools()
    assert seen == [CONTEXT, None]


def test_annotations_that_can_not_be_read_take_no_context():
    async def preview(arguments: Arguments, other: "NotThere" = None) -> None: ...  # noqa: F821

    assert find_parameter(preview, CallContext) == ""
    assert find_parameter(object(), CallContext) == ""


async def test_a_toolset_is_asked_again_for_every_shelf():
    class Growing:
        name = "growing"

        def __init__(self) -> None:
            self.have: list[Tool] = []

        async def tools(self) -> Sequence[Tool]:
            return self.have

    growing = Growing()
    registry = Registry([growing])
    assert list(await registry.load_tools()) == []
    growing.have = [pack]
    assert list(await registry.load_tools()) == [pack]


def test_limits_in_annotations_reach_the_schema_and_the_check():
    @tool()
    async def name(value: Annotated[str, Field(max_length=3)]) -> None: ...

    assert name.parameters["properties"]["value"] == {"type": "string", "maxLength": 3}
    with pytest.raises(BadArguments, match=r"value: At most 3 characters"):
        name.validate({"value": "long"})
