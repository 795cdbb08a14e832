"""Schemas made to hold up their checker: the tool is left out alone, and no one else waits."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bot.errors import BadArguments, ToolTimedOut
from bot.tools.mcp.config import Http, ServerConfig, Stdio
from bot.tools.response_bounds import MAX_MESSAGE_BYTES, MAX_MESSAGE_VALUES, MAX_VALUE_DEPTH, bound_message
from tests.tools.mcp.conftest import Connected, until
from tests.tools.mcp.servers import hostile

pytestmark = pytest.mark.slow

PLAIN: dict[str, Any] = {"type": "object", "properties": {"lamp": {"type": "string"}}}
PATTERN = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^(a+)+$"}}}
DOUBLING = {
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(26)} | {"d26": {}},
    "$ref": "#/$defs/d0",
    "type": "object",
}
LARGE = {"type": "object", "description": "x" * 100_000}


@pytest.fixture
def offering(connect, tmp_path):
    """A toolset over a process that lists these tools, on one page."""

    def make(*tools: dict[str, Any] | str, **parts: Any) -> Connected:
        return paged(connect, tmp_path, [tools], **parts)

    return make


def paged(connect, folder: Path, pages: list[Any], **parts: Any) -> Connected:
    file = folder / "tools.json"
    file.write_text(lines(pages))
    launch = Stdio(sys.executable, (str(Path(hostile.__file__)), str(file)))
    return connect(ServerConfig("hostile", launch), **parts)


@pytest.fixture
def at_an_address(connect) -> Iterator[Any]:
    """The same server over HTTP."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), hostile.Handler)
    thread = threading.Thread(target=served.serve_forever)
    thread.start()

    def make(*tools: dict[str, Any] | str) -> Connected:
        hostile.Handler.pages = lines([tools]).splitlines()
        return connect(ServerConfig("hostile", Http(f"http://127.0.0.1:{served.server_port}/mcp")))

    yield make
    served.shutdown()
    served.server_close()
    thread.join()


def lines(pages: list[Any]) -> str:
    each = (
        "[" + ",".join(t if isinstance(t, str) else json.dumps(t) for t in tools) + "]" for tools in pages
    )
    return "".join(f"{page}\n" for page in each)


def nested(levels: int) -> str:
    """A tool whose schema has so many levels, as text: no library writes one that deep."""
    inside = '{"properties":{"a":' * levels + "{}" + "}}" * levels
    return f'{{"name": "evil", "inputSchema": {{"type": "object", "properties": {{"a": {inside}}}}}}}'


def tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema}


async def beats_while(work: asyncio.Task[Any]) -> int:
    """How often the loop came round while the work was under way."""
    beats = 0
    while not work.done():
        beats += 1
        await asyncio.sleep(0)
    return beats


@pytest.mark.parametrize("schema", [DOUBLING, LARGE], ids=["doubling", "large"])
async def test_a_tool_whose_schema_cannot_be_checked_is_left_out_alone(offering, schema):
    server = offering(tool("evil", schema), tool("good", PLAIN))
    assert await server.names() == {"good"}
    assert await server.run("good", lamp="desk") == "done"


async def test_a_pattern_that_takes_centuries_holds_no_one_else_and_is_tried_once(offering):
    server = offering(tool("evil", PATTERN), tool("good", PLAIN))
    evil = await server.tool("evil")
    assert await evil.check_arguments({"name": "aaa"}) == {"name": "aaa"}
    work = asyncio.create_task(evil.check_arguments({"name": "a" * 40 + "!"}))
    assert await beats_while(work) > 100
    with pytest.raises(BadArguments, match="in time"):
        await work
    with pytest.raises(BadArguments, match="in time"):
        await evil.check_arguments({"name": "aaa"})
    assert await server.run("good", lamp="desk") == "done"


@pytest.mark.parametrize("levels", [450, 50_000])
async def test_a_tool_nested_too_deeply_is_left_out_alone(offering, levels):
    server = offering(nested(levels), tool("good", PLAIN))
    assert await server.names() == {"good"}
    assert await server.run("good", lamp="desk") == "done"


@pytest.mark.parametrize(
    ("evil", "name", "why"),
    [
        ({"name": "evil"}, "evil", "inputSchema: This is needed."),
        (tool("evil", "all"), "evil", "inputSchema: This must be an object."),  # type: ignore[arg-type]
        (tool("evil", {}), "evil", "inputSchema.type: This is needed."),
        (tool("evil", {"type": "array"}), "evil", "inputSchema.type: This must be object."),
        (tool("evil", PLAIN) | {"outputSchema": []}, "evil", "outputSchema: This must be an object."),
        (tool("evil", PLAIN) | {"annotations": "mild"}, "evil", "annotations: This must be an object."),
        (tool(7, PLAIN), "7", "name: This must be text."),  # type: ignore[arg-type]
        ("5", "2", "This must be an object."),
        (tool("evil", {"type": "object", "required": "x"}), "evil", None),
        (tool("evil", {"type": "object", "allOf": 5}), "evil", None),
    ],
)
@pytest.mark.parametrize("remote", [False, True])
async def test_a_malformed_tool_is_left_out_alone_and_it_is_told(
    offering, at_an_address, remote, evil, name, why
):
    server = (at_an_address if remote else offering)(tool("good", PLAIN), evil)
    assert await server.names() == {"good"}
    assert await server.run("good", lamp="desk") == "done"
    [status] = await server.toolset.status()
    assert status.trouble is None
    assert status.left_out.startswith(f"{name} is left out: {why or ''}")


async def test_a_list_out_of_form_is_told_in_words(offering, tmp_path):
    server = offering(tool("good", PLAIN))
    (tmp_path / "tools.json").write_text("7\n")
    assert await server.names() == set()
    assert server.toolset.servers[0].trouble == "it answers in a way that MCP does not allow"


async def test_a_tool_nested_too_deeply_at_an_address_is_left_out_alone(at_an_address):
    server = at_an_address(nested(50_000), tool("good", PLAIN))
    assert await server.names() == {"good"}
    assert await server.run("good", lamp="desk") == "done"


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {"type": "object", "description": "x" * MAX_MESSAGE_BYTES},
        {"type": "object", "enum": [0] * MAX_MESSAGE_VALUES},
    ],
    ids=["long", "many values"],
)
async def test_a_list_beyond_the_bounds_is_refused_and_said(offering, at_an_address, remote, more):
    server = (at_an_address if remote else offering)(tool("evil", more), tool("good", PLAIN))
    assert await server.names() == set()
    words = f"it sent a message larger than 8 MiB or with over {MAX_MESSAGE_VALUES:,} values"
    assert words in server.toolset.servers[0].trouble


async def test_of_a_list_without_end_the_first_pages_are_kept(connect, tmp_path):
    large = [tool(f"evil{n}", {"type": "object", "description": "x" * 100_000}) for n in range(40)]
    server = paged(connect, tmp_path, [[tool("good", PLAIN)], large, large, large, [tool("late", PLAIN)]])
    assert await server.names() == {"good"}


async def test_a_harmless_tool_is_offered_while_others_are_still_looked_at(offering, capfd):
    evil = [tool(f"evil{n}", DOUBLING | {"title": str(n)}) for n in range(3)]
    server = offering(*evil, tool("good", PLAIN), turn_wait_seconds=0.0)
    await server.has("good")
    assert "left out" not in capfd.readouterr().err


async def test_all_who_ask_first_get_the_tools(offering):
    server = offering(tool("good", PLAIN))
    assert await asyncio.gather(*(server.names() for _ in range(3))) == [{"good"}] * 3


async def test_an_answer_beyond_the_bounds_ends_the_call_with_words_and_the_server_comes_back(offering):
    server = offering(tool("good", {"type": "object"}))
    with pytest.raises(ToolTimedOut, match="larger than 8 MiB"):
        await server.run("good", flood=MAX_MESSAGE_BYTES)
    await server.pauses.begun()
    server.pauses.end_all()
    await until(lambda: not server.toolset.servers[0].trouble)
    assert await server.run("good", flood=3) == "xxx"


async def test_an_answer_with_half_a_surrogate_pair_arrives_with_a_sign_in_its_place(offering):
    server = offering(tool("good", {"type": "object"}))
    assert await server.run("good", half="\\ud83d is ") == "\\ud83d is 😀\ufffd"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b'{"a": 1}',
        b'{"a": "' + b"[" * 300 + b'"}',
        b"[" * MAX_VALUE_DEPTH + b"]" * MAX_VALUE_DEPTH,
        b'{"a": "' + b'\\"' * 300 + b"[" * 300 + b'", "b": [1, 2]}',
    ],
)
async def test_a_message_within_the_bounds_stays_as_it_is(message):
    assert await bound_message(message) == message


async def test_what_is_nested_too_deeply_is_replaced_where_it_begins_and_the_rest_stays():
    deep = b"[" * (MAX_VALUE_DEPTH + 5) + b'"]", 7' + b"]" * (MAX_VALUE_DEPTH + 5)
    found = json.loads(await bound_message(b'{"a": ' + deep + b', "b": {"c": ' + deep + b"}, " + b'"d": 1}'))
    assert found["d"] == 1
    for levels, part in ((MAX_VALUE_DEPTH - 1, found["a"]), (MAX_VALUE_DEPTH - 2, found["b"]["c"])):
        inside = part
        for _ in range(levels):
            [inside] = inside
        assert inside == "nested too deeply"
