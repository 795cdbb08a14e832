"""Servers at an address: streamable HTTP on loopback, with headers, and gone in between."""

import asyncio
import logging

import pytest

from bot.errors import ToolError, ToolTimedOut
from bot.tools.mcp.config import Http, ServerConfig, Stdio
from tests.tools.mcp.conftest import SECRET, until


async def test_a_server_at_an_address_answers_and_gets_the_headers(connect, http, done):
    lamps = connect(http({"lamp_token": SECRET}))
    assert await lamps.run("lamps_describe", lamp="desk") == {"lamp": "desk", "color": "white", "watts": 40}
    assert await lamps.run("lamps_paint", lamp="desk", color="blue") == "paint desk blue 1"
    assert await lamps.run("lamps_whisper") == SECRET
    assert done() == ["paint desk blue 1"]


async def test_calls_at_an_address_run_side_by_side(connect, http):
    lamps = connect(http())
    await lamps.names()
    answers = await asyncio.gather(*(lamps.run("lamps_meet", number=n) for n in range(3)))
    assert answers == ["met 0", "met 1", "met 2"]


async def test_a_tool_that_comes_at_an_address_is_picked_up(connect, http):
    lamps = connect(http())
    await lamps.run("lamps_grow")
    await lamps.has("lamps_dim")


async def test_an_answer_that_does_not_come_from_an_address_is_given_up(connect, http):
    with pytest.raises(ToolTimedOut, match="lamps did not answer within"):
        await connect(http(timeout=0.05)).run("lamps_stare")


async def test_a_write_at_an_address_that_breaks_off_may_have_happened(connect, http, http_lamps, done):
    lamps = connect(http())
    write = asyncio.create_task(lamps.run("lamps_hang"))
    await until(lambda: done() == ["hang"])
    await http_lamps.down()
    with pytest.raises(ToolTimedOut, match="lamps ended before it answered"):
        await write


async def test_an_address_that_is_gone_is_unavailable_and_comes_back(connect, http, http_lamps, done):
    lamps = connect(http())
    assert await lamps.run("lamps_look", lamp="desk") == "desk is white"
    await http_lamps.down()
    with pytest.raises(ToolError, match=r"lamps is unavailable right now .* Nothing was done") as caught:
        await lamps.run("lamps_paint", lamp="desk", color="red")
    assert not isinstance(caught.value, ToolTimedOut)
    assert "lamps_paint" in await lamps.names()
    await http_lamps.up()
    lamps.pauses.end_all()
    await until(lambda: not lamps.toolset.servers[0].trouble)
    assert await lamps.run("lamps_paint", lamp="desk", color="red") == "paint desk red 1"
    assert done() == ["paint desk red 1"]


async def test_an_address_where_no_one_listens_holds_up_no_one(connect, http):
    nobody = ServerConfig("nobody", Http("http://127.0.0.1:9/mcp"))
    assert "lamps_look" in await connect(nobody, http()).names()


@pytest.mark.slow
async def test_no_secret_of_a_server_reaches_a_log_whatever_happens(
    connect, http, http_lamps, stdio, caplog, capfd
):
    caplog.set_level(logging.DEBUG)
    headers = {"Authorization": f"Bearer {SECRET}", "lamp_token": SECRET}
    lost = ServerConfig("lost", Http(f"{http_lamps.url}/lost", headers))
    gone = ServerConfig("gone", Http("http://127.0.0.1:9/mcp", headers))
    bad = ServerConfig("bad", Stdio("no-such-program", env={"LAMP_TOKEN": SECRET}))
    process = ServerConfig("process", stdio(env={"LAMP_TOKEN": SECRET}).transport)
    all_of_them = connect(http(headers), lost, gone, bad, process)
    with pytest.raises(ToolError):
        await all_of_them.run("lamps_fail")
    await http_lamps.down()
    await all_of_them.toolset.stop()
    out, err = capfd.readouterr()
    assert "mcp server is down" in out
    assert "lamps at" in out  # a server's own words, which held the secret
    assert SECRET not in caplog.text + out + err
    await http_lamps.up()
