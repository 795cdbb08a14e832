"""What servers offer; and those that are processes: started when needed, killed, and back again."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.errors import ToolError, ToolTimedOut
from bot.tools.mcp.config import ServerConfig, Stdio
from tests.tools.mcp.conftest import CONTEXT, SECRET, until

pytestmark = pytest.mark.slow

OLD_AND_NEW = pytest.mark.parametrize("era", ["modern", "legacy"])


@OLD_AND_NEW
async def test_a_server_starts_when_its_tools_are_first_asked_for_and_answers(connect, stdio, done, era):
    lamps = connect(stdio(era))
    assert lamps.toolset.servers[0].trouble
    assert {"lamps_look", "lamps_paint", "lamps_smash"} <= await lamps.names()
    assert await lamps.run("lamps_look", lamp="desk") == "desk is white"
    assert await lamps.run("lamps_describe", lamp="desk") == {"lamp": "desk", "color": "white", "watts": 40}
    assert (await lamps.run("lamps_picture")).startswith("A lamp:\n[image, image/png")
    assert await lamps.run("lamps_paint", lamp="desk", color="red") == "paint desk red 1"
    assert done() == ["paint desk red 1"]


async def test_a_tool_that_refuses_tells_why(connect, http):
    with pytest.raises(ToolError, match="the bulb is hot"):
        await connect(http()).run("lamps_fail")


async def test_calls_of_one_server_run_side_by_side(connect, stdio):
    lamps = connect(stdio())
    await lamps.names()
    answers = await asyncio.gather(*(lamps.run("lamps_meet", number=n) for n in range(3)))
    assert answers == ["met 0", "met 1", "met 2"]


async def test_only_what_is_allowed_and_not_denied_is_offered(connect, http):
    lamps = connect(http(allow=("look", "p*"), deny=("pic*",), prefix="l-"))
    assert await lamps.names() == {"l-look", "l-paint", "l-process"}


async def test_a_tool_whose_name_another_has_is_left_out(connect, http):
    lamps = connect(http(allow=("look", "paint"), prefix=""), list_reserved_names=lambda: {"paint"})
    assert await lamps.names() == {"look"}


async def test_of_two_servers_with_one_name_for_a_tool_the_first_keeps_it(connect, http):
    first, second = http(allow=("look",)), http(allow=("look", "paint"))
    both = connect(first, ServerConfig("other", second.transport, prefix="lamps_", allow=second.allow))
    assert [(tool.name, tool.group) for tool in await both.toolset.tools()] == [
        ("lamps_look", "mcp:lamps"),
        ("lamps_paint", "mcp:other"),
    ]


async def test_a_server_gets_its_own_variables_and_not_ours(connect, stdio, monkeypatch):
    monkeypatch.setenv("LAMP_TOKEN", "ours")
    assert await connect(stdio()).run("lamps_whisper") == "nothing"
    assert await connect(stdio(env={"LAMP_TOKEN": SECRET})).run("lamps_whisper") == SECRET


@OLD_AND_NEW
async def test_a_tool_that_comes_while_the_server_runs_is_picked_up(connect, stdio, era):
    lamps = connect(stdio(era))
    assert "lamps_dim" not in await lamps.names()
    await lamps.run("lamps_grow")
    await lamps.has("lamps_dim")
    assert await lamps.run("lamps_dim", lamp="desk") == "dim desk"


async def test_the_same_list_gives_the_same_tools(connect, http):
    lamps = connect(http())
    assert await lamps.tool("lamps_look") is await lamps.tool("lamps_look")


async def test_a_read_without_an_answer_is_given_up(connect, stdio, folder):
    lamps = connect(stdio(timeout=0.05))
    with pytest.raises(ToolTimedOut, match=r"lamps did not answer within 0\.05 s\."):
        await lamps.run("lamps_stare")
    await until((folder / "staring").exists)
    assert await lamps.tool("lamps_look")


async def test_a_write_without_an_answer_may_have_happened(connect, stdio, done):
    lamps = connect(stdio(timeout=0.3))
    with pytest.raises(ToolTimedOut):
        await lamps.run("lamps_hang")
    assert done() == ["hang"]


@OLD_AND_NEW
async def test_a_server_killed_in_a_write_leaves_the_outcome_unknown_and_comes_back(
    connect, stdio, done, era
):
    lamps = connect(stdio(era))
    process = await lamps.run("lamps_process")
    write = asyncio.create_task(lamps.run("lamps_hang"))
    await until(lambda: done() == ["hang"])
    os.kill(process, signal.SIGKILL)
    with pytest.raises(ToolTimedOut, match="lamps ended before it answered"):
        await write

    await until(lambda: lamps.toolset.servers[0].trouble)
    assert "lamps_paint" in await lamps.names()  # still offered
    with pytest.raises(ToolError, match=r"lamps is unavailable right now .* Nothing was done") as caught:
        await lamps.run("lamps_paint", lamp="desk", color="red")
    assert not isinstance(caught.value, ToolTimedOut)

    lamps.pauses.end_all()
    await until(lambda: not lamps.toolset.servers[0].trouble)
    assert await lamps.run("lamps_paint", lamp="desk", color="red") == "paint desk red 1"
    assert await lamps.run("lamps_process") != process
    assert done() == ["hang", "paint desk red 1"]


async def test_a_server_killed_in_a_read_is_unavailable(connect, stdio, folder):
    lamps = connect(stdio())
    process = await lamps.run("lamps_process")
    read = asyncio.create_task(lamps.run("lamps_stare"))
    await until((folder / "staring").exists)
    os.kill(process, signal.SIGKILL)
    with pytest.raises(ToolError, match="lamps is unavailable right now"):
        await read


async def test_a_server_that_dies_unused_is_noticed_and_started_again(connect, stdio):
    lamps = connect(stdio())
    os.kill(await lamps.run("lamps_process"), signal.SIGKILL)
    await until(lambda: lamps.toolset.servers[0].trouble)
    lamps.pauses.end_all()
    await until(lambda: not lamps.toolset.servers[0].trouble)
    assert await lamps.run("lamps_look", lamp="desk") == "desk is white"


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        (Stdio("no-such-program"), "there is no program or file 'no-such-program'"),
        (Stdio(sys.executable, ("-c", "print('hello')")), "it ended"),
    ],
    ids=["missing", "no server"],
)
async def test_a_server_that_cannot_start_is_tried_ever_more_rarely_and_holds_up_no_one(
    connect, stdio, launch, why
):
    both = connect(ServerConfig("broken", launch), stdio())
    broken = both.toolset.servers[0]
    assert await both.run("lamps_look", lamp="desk") == "desk is white"
    pauses = []
    for _ in range(9):
        pauses.append(await both.pauses.begun())
        both.pauses.end()
    assert pauses == [1, 2, 4, 8, 10, 10, 10, 10, 10]
    with pytest.raises(ToolError, match=why):
        await broken.call("x", {}, CONTEXT)


BARE = """
import asyncio
from mcp.server import Server
from mcp.server.stdio import stdio_server
async def main():
    server = Server("bare")
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
asyncio.run(main())
"""


async def test_a_server_without_tools_is_up_and_offers_none(connect):
    bare = connect(ServerConfig("bare", Stdio(sys.executable, ("-c", BARE))))
    assert await bare.names() == set()
    assert bare.toolset.servers[0].trouble is None


async def test_what_a_server_said_before_it_died_is_in_the_log(connect, capfd):
    program = "import sys; sys.exit('\x1b[31mno licence, token tok-4711-very-secret')"
    launch = Stdio(sys.executable, ("-c", program), {"T": "tok-4711-very-secret"})
    dead = connect(ServerConfig("dead", launch))
    await dead.names()
    assert await dead.pauses.begun() == 1
    dead.pauses.end()
    assert await dead.pauses.begun() == 2
    assert "no licence, token ••••••" in capfd.readouterr().out


LIAR = """
import asyncio, sys
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server
async def tools(context, params):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = types.Tool(name="sign", input_schema={"type": "object"}, output_schema=schema)
    return types.ListToolsResult(tools=[tool])
async def sign(context, params):
    return types.CallToolResult(content=[], structured_content={"n": "one"})
async def main():
    server = Server("liar", on_list_tools=tools, on_call_tool=sign)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
asyncio.run(main())
"""


async def test_a_write_whose_data_misses_its_schema_has_run_and_says_so(connect):
    liar = connect(ServerConfig("liar", Stdio(sys.executable, ("-c", LIAR))))
    said = await liar.run("sign")
    assert said == '{"n": "one"}\n[its answer does not fit the form that the tool names]'


async def test_a_server_that_lived_long_is_started_again_soon(connect, stdio, clock):
    lamps = connect(stdio("legacy"))
    pauses = []
    for minutes in (0, 0, 2):
        process = await lamps.run("lamps_process")
        clock.forward(timedelta(minutes=minutes))
        os.kill(process, signal.SIGKILL)
        pauses.append(await lamps.pauses.begun())
        lamps.pauses.end()
        await until(lambda: not lamps.toolset.servers[0].trouble)
    assert pauses == [1, 2, 1]


MUTE = ServerConfig("mute", Stdio(sys.executable, ("-c", "import sys; sys.stdin.read()")))


async def test_a_server_that_never_says_a_word_holds_up_no_turn(connect, stdio):
    both = connect(MUTE, stdio(), turn_wait_seconds=0)
    assert await both.names() == set()
    await both.has("lamps_look")
    assert await both.run("lamps_look", lamp="desk") == "desk is white"


async def test_a_server_that_never_says_a_word_is_given_up_and_tried_again(connect):
    mute = connect(replace(MUTE, startup=0.2))
    assert await mute.names() == set()
    assert await mute.pauses.begun() == 1
    with pytest.raises(ToolError, match=r"it did not start within 0\.2 s"):
        await mute.toolset.servers[0].call("x", {}, CONTEXT)


async def test_a_stopped_server_has_no_process_and_is_not_started_again(connect, stdio):
    lamps = connect(stdio())
    process = await lamps.run("lamps_process")
    await lamps.toolset.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(ToolError, match="Nod is stopping"):
        await lamps.run("lamps_look", lamp="desk")
    await lamps.toolset.stop()


async def test_a_toolset_that_was_never_used_stops_immediately(connect, stdio):
    lamps = connect(stdio())
    await lamps.toolset.stop()
    assert await lamps.names() == set()


async def test_a_server_that_is_stopped_while_it_starts_leaves_no_process(connect, stdio):
    lamps = connect(stdio(), turn_wait_seconds=0)
    await lamps.names()
    await lamps.toolset.stop()
    assert lamps.toolset.servers[0].trouble
