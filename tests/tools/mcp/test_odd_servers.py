"""Servers as they are: lists that do not end, answers out of form, names that become one, packed bodies."""

import asyncio
import json
import sys
from datetime import timedelta
from typing import Any

import pytest

from bot.errors import ToolError, ToolTimedOut
from bot.tools.mcp.config import Http, ServerConfig, Stdio, Trust
from bot.tools.mcp.schemas import ArgumentSchema

TEXT = {"type": "text", "text": "note 7 was added"}


def at(plain, **parts) -> ServerConfig:
    return ServerConfig("notes", Http(plain.url), **{"trust": Trust.TRUSTED, "prefix": "", **parts})


def tool(name: str, **parts: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **parts}


# lists


@pytest.mark.parametrize(
    ("page", "asked", "why"),
    [
        (lambda plain, _: {"tools": plain.tools, "nextCursor": "same"}, 2, "the same page again"),
        (
            lambda plain, cursor: {"tools": plain.tools, "nextCursor": {"a": "b"}.get(cursor, "a")},
            3,
            "the same page again",
        ),
        (
            lambda plain, cursor: {"tools": plain.tools, "nextCursor": f"{cursor}1"},
            4,
            "3 pages brought nothing new",
        ),
        (
            lambda plain, cursor: {"tools": [] if cursor else plain.tools, "nextCursor": f"{cursor}1"},
            4,
            "3 pages brought nothing new",
        ),
        (lambda plain, _: {"tools": plain.tools, "nextCursor": ""}, 1, ""),
    ],
    ids=["stands still", "round and round", "the same tools", "nothing", "empty"],
)
async def test_a_list_that_does_not_end_is_read_no_further_and_it_is_told(connect, plain, page, asked, why):
    plain.page = lambda cursor: page(plain, cursor)
    notes = connect(at(plain))
    assert await notes.names() == {"add_note", "read_note"}
    assert plain.asked.count("tools/list") == asked
    [status] = await notes.toolset.status()
    assert (why in status.left_out, status.trouble) == (True, None)
    assert await notes.run("add_note", text="eggs") == "add_note eggs"
    assert plain.asked.count("tools/list") == 2 * asked


async def test_a_list_of_many_pages_is_read_to_its_end(connect, plain):
    def page(cursor: str | None) -> dict[str, Any]:
        number = int(cursor or 0)
        more = {"nextCursor": str(number + 1)} if number < 59 else {}
        return {"tools": [tool(f"t{number}")], **more}

    plain.page = page
    assert len(await connect(at(plain)).names()) == 60


# answers

_PROCESS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    method, info = asked.get("method"), {"name": "p", "version": "1"}
    begun = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    said = {
        "initialize": {"result": begun},
        "tools/list": {"result": {"tools": [{"name": "add_note", "inputSchema": {"type": "object"}}]}},
        "tools/call": ANSWER,
    }.get(method, {"error": {"code": -32601, "message": "no"}})
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | said), flush=True)
"""
ODD = {
    "data that misses its schema": ({"content": [TEXT], "structuredContent": {"id": "seven"}}, '"seven"'),
    "no data": ({"content": [TEXT]}, "does not fit the form"),
    "a list as data": ({"content": [TEXT], "structuredContent": [7]}, "[7]"),
    "a part of an unknown kind": ({"content": [TEXT, {"type": "video", "url": "x"}]}, "video"),
    "a part without its fields": ({"content": [TEXT, {"type": "image"}]}, "image"),
    "text as content": ({"content": TEXT["text"]}, ""),
    "one part as content": ({"content": TEXT}, ""),
    "texts as parts": ({"content": ["note 7", TEXT["text"]]}, "note 7\n"),
    "an old form": ({"toolResult": TEXT["text"]}, ""),
    "an odd flag": ({"content": [TEXT], "isError": "false"}, ""),
    "odd meta": ({"content": [TEXT], "_meta": 5}, ""),
    "odd annotations": ({"content": [TEXT | {"annotations": "none"}]}, ""),
}


@pytest.mark.parametrize(("result", "more"), ODD.values(), ids=ODD)
async def test_what_a_server_said_is_kept_whatever_its_form(connect, plain, result, more):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    plain.tools = [tool("add_note", outputSchema=schema)]
    plain.answer = lambda *_: {"result": result}
    said = str(await connect(at(plain)).run("add_note", text="eggs"))
    assert "note 7 was added" in said
    assert more in said


async def test_an_error_that_may_have_come_after_the_work_keeps_its_words(connect, plain):
    plain.answer = lambda *_: {"error": {"code": -32603, "message": "note 7 was added", "data": "no mail"}}
    notes = connect(at(plain))
    with pytest.raises(ToolTimedOut, match=r"notes says: note 7 was added: no mail\. It does not say what"):
        await notes.run("add_note", text="eggs")
    with pytest.raises(ToolError, match="notes says: note 7 was added") as caught:
        await notes.run("read_note")
    assert not isinstance(caught.value, ToolTimedOut)


ENVELOPES = {
    "an error that is a text": ({"error": "note 7 was added"}, "says: note 7 was added"),
    "an error without a code": ({"error": {"message": "note 7 was added"}}, "says: note 7 was added"),
    "a code that is a text": (
        {"error": {"code": "E1", "message": "note 7 was added"}},
        "says: note 7 was added",
    ),
    "an error without words": ({"error": {"code": -1}}, 'says: {"code": -1}'),
    "a result that is a text": ({"result": "note 7 was added"}, "says: note 7 was added"),
    "a result that is a list": ({"result": ["note 7"]}, r'says: \["note 7"\]'),
    "nothing": ({}, r"gave an answer that can't be read \(it answers in a way that MCP does not allow\)"),
    "no kind of result": (
        {"result": {"task": {"taskId": "1"}}},
        r"gave an answer that can't be read \(it answers in a way that MCP does not allow\)",
    ),
}


@pytest.mark.parametrize(("answer", "said"), ENVELOPES.values(), ids=ENVELOPES)
async def test_what_is_no_message_of_the_protocol_is_told_in_the_servers_words(connect, plain, answer, said):
    plain.answer = lambda *_: answer
    with pytest.raises(ToolTimedOut, match=f"^notes {said}"):
        await connect(at(plain)).run("add_note", text="eggs")


@pytest.mark.parametrize(("answer", "said"), ENVELOPES.values(), ids=ENVELOPES)
async def test_what_a_process_says_is_told_as_well(connect, answer, said):
    program = f"ANSWER = {answer!r}\n{_PROCESS}"
    notes = connect(ServerConfig("notes", Stdio(sys.executable, ("-c", program)), Trust.TRUSTED, prefix=""))
    with pytest.raises(ToolTimedOut, match=f"^notes {said}"):
        await notes.run("add_note", text="eggs")


ANSWERS = {
    "a page": ("text/html", "<html><h1>Sign in</h1></html>", "it answered HTTP 200: Sign in"),
    "words": ("text/plain", "Quota is used up", "it answered HTTP 200: Quota is used up"),
    "half a message": ("application/json", '{"jsonrpc', 'it answered HTTP 200: {"jsonrpc'),
    "nothing": ("application/json", "", "it answers in a way that MCP does not allow"),
    "nothing, and no kind": ("", "", "it answers in a way that MCP does not allow"),
    "another event": ("text/event-stream", "data: x\n\n", "it answers in a way that MCP does not allow"),
}


@pytest.mark.parametrize(("kind", "body", "said"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_that_is_no_message_is_told_with_what_it_says(connect, plain, kind, body, said):
    plain.instead = (200, kind, body)
    notes = connect(at(plain))
    for name, fault in (("add_note", ToolTimedOut), ("read_note", ToolError)):
        with pytest.raises(fault) as caught:
            await notes.run(name, text="eggs")
        assert caught.value.message == f"notes gave an answer that can't be read ({said})."


@pytest.mark.parametrize("form", ["{}", "[{}]", '[{{"jsonrpc": "2.0", "method": "x"}}, {}]'])
@pytest.mark.parametrize("ident", ["null", "99999", '"other"'])
@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "text/plain"])
async def test_what_answers_a_request_is_its_answer_under_any_id_and_label(connect, plain, form, ident, kind):
    result = f'{{"jsonrpc": "2.0", "id": {ident}, "result": {{"content": [{json.dumps(TEXT)}]}}}}'
    plain.instead = (200, kind, form.format(result))
    assert await connect(at(plain)).run("add_note", text="eggs") == "note 7 was added"
    error = f'{{"jsonrpc": "2.0", "id": {ident}, "error": {{"code": -32000, "message": "It is full"}}}}'
    plain.instead = (200, kind, form.format(error))
    with pytest.raises(ToolTimedOut, match=r"^notes says: It is full\. It does not say"):
        await connect(at(plain)).run("add_note", text="eggs")


async def test_messages_without_the_mark_of_the_protocol_are_read(connect, plain):
    text = {"type": "text", "text": "note 7 was added"}
    plain.answer = lambda *_: {"jsonrpc": "1.0", "error": None, "result": {"content": [text]}}
    assert await connect(at(plain)).run("add_note", text="eggs") == "note 7 was added"


@pytest.mark.parametrize("code", [-32000, -32700])
async def test_an_error_whose_code_says_nothing_of_the_work_is_told_in_the_servers_own_words(
    connect, plain, code
):
    """Servers and what stands before them use these codes for all that goes wrong, before and after."""
    plain.answer = lambda *_: {"error": {"code": code, "message": "The mail server refused it"}}
    notes = connect(at(plain))
    said = r"^notes says: The mail server refused it\. It does not say what was done\.$"
    with pytest.raises(ToolTimedOut, match=said):
        await notes.run("add_note", text="eggs")
    with pytest.raises(ToolError, match=r"^notes says: The mail server refused it$"):
        await notes.run("read_note")
    assert notes.toolset.servers[0].trouble is None


@pytest.mark.parametrize("begun", ["", ": still at it\n\n", "id: 1\nretry: 1\ndata:\n\n"])
async def test_a_stream_that_ends_without_an_answer_is_told_in_plain_words(connect, plain, begun):
    plain.instead = (200, "text/event-stream", begun)
    notes = connect(at(plain))
    said = r"^notes ended before it answered \(the connection to it was cut off\)\.$"
    with pytest.raises(ToolTimedOut, match=said):
        await notes.run("add_note", text="eggs")
    assert plain.done == ["eggs"]


@pytest.mark.parametrize("packing", ["gzip", "x-gzip"])
async def test_a_packed_answer_is_read(connect, plain, packing):
    plain.packed = packing
    assert await connect(at(plain)).run("read_note", text="7") == "read_note 7"


async def test_an_answer_packed_in_an_unknown_way_is_told_as_that(connect, plain):
    notes = connect(at(plain))
    await notes.names()
    plain.packed = "br"
    with pytest.raises(ToolError, match="packs its answer in a way that was not asked for"):
        await notes.run("read_note")


# names


async def test_tools_whose_names_become_one_are_each_offered(connect, plain):
    plain.tools = [tool("repo.get"), tool("repo/get"), tool("repo_get"), tool("list")]
    notes = connect(at(plain, prefix="n_"))
    names = await notes.names()
    assert {"n_list", "n_repo_get"} < names
    assert len(names) == 4
    [dotted] = [name for name in names if (await notes.tool(name)).summary({}).startswith("Repo get")][:1]
    assert dotted in names
    plain.answer = lambda name, _: {"result": {"content": [{"type": "text", "text": name}]}}
    assert {await notes.run(name) for name in names} == {"repo.get", "repo/get", "repo_get", "list"}


async def test_a_name_that_another_server_has_is_told(connect, plain, http):
    plain.tools = [tool("lamps_look"), tool("more")]
    both = connect(http(allow=("look",)), at(plain))
    assert await both.names() == {"lamps_look", "more"}
    assert "lamps_look is left out: another tool has this name" in (await both.toolset.status())[1].left_out


# schemas


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\p{L}+$", "Zoë", "7"),
        (r"^(?<year>\d{4})$", "2026", "26"),
        (r"^\u{1F600}$", "\N{GRINNING FACE}", "x"),
        (r"^[^]$", "x", "xx"),
    ],
)
def test_a_pattern_of_javascript_is_held(pattern, good, bad):
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    arguments = ArgumentSchema(schema)
    assert arguments.check({"a": good}) == {"a": good}
    with pytest.raises(ToolError):
        arguments.check({"a": bad})


def test_a_pattern_that_no_one_can_read_is_left_to_the_server():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": r"(?<=*"}},
        "patternProperties": {r"^\p{L}$": {"type": "string"}},
        "additionalProperties": False,
    }
    assert ArgumentSchema(schema).check({"a": "x", "é": "y"}) == {"a": "x", "é": "y"}


# starts


async def test_a_slow_start_is_told_with_its_words_and_holds_up_no_list(connect, stdio, clock):
    program = "import sys; print('npm: fetching', file=sys.stderr, flush=True); sys.stdin.read()"
    slow = ServerConfig("slow", Stdio(sys.executable, ("-c", program)))
    both = connect(slow, stdio(), turn_wait_seconds=0)
    assert await both.names() == set()
    await both.has("lamps_look")
    clock.forward(timedelta(seconds=75))
    async with asyncio.timeout(30):
        while not (status := (await both.toolset.status())[0]).said:  # noqa: ASYNC110 - a process says it
            await asyncio.sleep(0.01)
    assert (status.is_starting, status.trouble) == (True, "it is still starting, for 75 s now")
    assert status.said == "npm: fetching"
