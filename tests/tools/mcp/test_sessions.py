"""Servers at an address that forget their sessions, fall silent or go away: told, and back by themselves."""

import pytest

from bot.errors import ToolError, ToolTimedOut
from bot.tools.mcp.config import Http, ServerConfig, Trust
from tests.tools.mcp.conftest import until

REFUSALS = {
    "the protocol's": (404, "application/json", {"error": {"code": -32001, "message": "Session not found"}}),
    "the Python SDK's": (
        404,
        "application/json",
        {"id": "server-error", "error": {"code": -32600, "message": "Session has been terminated"}},
    ),
    "of a gateway": (404, "text/html", "<html><h1>Not Found</h1></html>"),
    "without a word": (404, "text/plain", ""),
    "the TypeScript SDK's": (
        400,
        "application/json",
        {"error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}},
    ),
    "not an initialize request": (
        400,
        "application/json",
        {"error": {"code": -32000, "message": "No valid session ID or not an initialize request"}},
    ),
    "not initialized": (
        400,
        "application/json",
        {"error": {"code": -32000, "message": "Bad Request: Server not initialized"}},
    ),
    "the Rust SDK's": (401, "text/plain", "Unauthorized: Session not found"),
    "a conflict": (409, "text/plain", "unknown session"),
    "gone": (410, "text/plain", "Gone"),
    "JSON that is no message": (400, "application/json", '{"error": "invalid session id"}'),
    "with a status of 200": (
        200,
        "application/json",
        {
            "id": "yours",
            "error": {"code": -32600, "message": "Unknown session id 's1'; client should reinitialize"},
        },
    ),
    "with the call's own id": (
        404,
        "application/json",
        {"id": "yours", "error": {"code": -32001, "message": "Session not found"}},
    ),
    "in MCP's own words, with the call's own id": (
        400,
        "application/json",
        {"id": "yours", "error": {"code": -32000, "message": "Bad Request: Server not initialized"}},
    ),
}


def at(plain, **parts) -> ServerConfig:
    return ServerConfig("notes", Http(plain.url), **{"trust": Trust.TRUSTED, "prefix": "", **parts})


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_call_at_a_server_that_forgot_its_session_is_made_in_a_new_one(connect, plain, refusal):
    notes = connect(at(plain))
    assert await notes.run("read_note", text="7") == "read_note 7"
    plain.refusal = refusal
    plain.forget()
    assert await notes.run("read_note", text="7") == "read_note 7"
    plain.forget()
    notes.pauses.end_all()
    assert await notes.run("add_note", text="eggs") == "add_note eggs"
    assert plain.done == ["eggs"]


async def test_a_session_that_is_forgotten_between_the_look_and_the_write_is_begun_again(connect, plain):
    notes = connect(at(plain))
    await notes.names()
    pages = plain.page

    def forgetful(cursor):
        plain.page = pages
        plain.forget()
        return pages(cursor)

    plain.page = forgetful
    assert await notes.run("add_note", text="eggs") == "add_note eggs"
    assert plain.done == ["eggs"]
    assert plain.opened == 2


async def test_a_tool_that_is_another_one_in_the_new_session_does_not_run(connect, plain):
    notes = connect(at(plain))
    add = await notes.tool("add_note")
    plain.tools = [{**plain.tools[0], "description": "Add a note, and tell everyone."}]
    plain.forget()
    with pytest.raises(ToolError, match="changed add_note after it was shown"):
        await notes.run_tool(add, text="eggs")
    assert plain.done == []


async def test_a_server_that_refuses_each_session_is_down_and_the_call_says_that_nothing_was_done(
    connect, plain
):
    notes = connect(at(plain))
    await notes.names()
    plain.refuses_all = True
    plain.forget()
    with pytest.raises(ToolError, match=r"notes is unavailable right now .* Nothing was done"):
        await notes.run("add_note", text="eggs")
    assert "session" in (notes.toolset.servers[0].trouble or "")
    plain.refuses_all = False
    notes.pauses.end_all()
    await until(lambda: not notes.toolset.servers[0].trouble)
    assert await notes.run("add_note", text="eggs") == "add_note eggs"
    assert plain.done == ["eggs"]


@pytest.mark.parametrize(
    "instead",
    [
        (500, "text/plain", "Session expired while the note was written"),
        (502, "text/html", "<title>Bad Gateway</title>"),
        (504, "text/plain", ""),
        (200, "application/json", {"id": "yours", "error": {"code": -32000, "message": "Session expired"}}),
        (200, "application/json", {"id": "yours", "error": {"code": -32603, "message": "Session lost"}}),
        (404, "application/json", {"id": "yours", "error": {"code": -32603, "message": "no such index"}}),
        (
            200,
            "application/json",
            {"id": "yours", "error": {"code": -32600, "message": "Session s7 has expired"}},
        ),
        (200, "application/json", {"id": "yours", "error": {"code": -32001, "message": "Request timed out"}}),
        (
            400,
            "application/json",
            {"id": "yours", "error": {"code": -32600, "message": "Session s7 not found"}},
        ),
        (409, "application/json", {"id": "yours", "error": {"code": -32000, "message": "Session expired"}}),
        (410, "application/json", {"id": "yours", "error": {"code": -32001, "message": "Session ended"}}),
        (422, "application/json", {"id": "yours", "error": {"code": -32001, "message": "Invalid session"}}),
    ],
    ids=lambda instead: f"{instead[0]} {str(instead[2])[-40:]}",
)
async def test_a_write_that_may_have_run_is_never_sent_again(connect, plain, instead):
    notes = connect(at(plain))
    await notes.names()
    plain.instead = instead
    with pytest.raises(ToolTimedOut) as caught:
        await notes.run("add_note", text="eggs")
    assert "60 s" not in str(caught.value)
    assert plain.done == ["eggs"]


async def test_a_read_is_made_again_where_the_session_may_be_lost(connect, plain):
    notes = connect(at(plain))
    await notes.names()
    plain.refusal = (
        400,
        "application/json",
        {"id": "yours", "error": {"code": -32600, "message": "Session s1 not found"}},
    )
    plain.forget()
    assert await notes.run("read_note", text="7") == "read_note 7"
    assert plain.opened == 2


async def test_a_tools_own_word_of_a_session_is_told_and_the_server_stays_in_use(connect, plain):
    notes = connect(at(plain))
    await notes.names()
    plain.instead = (
        200,
        "application/json",
        {"id": "yours", "error": {"code": -32600, "message": "Browser session s7 not found"}},
    )
    with pytest.raises(ToolError, match="says: Browser session s7 not found"):
        await notes.run("read_note", text="s7")
    plain.instead = None
    assert await notes.run("read_note", text="7") == "read_note 7"


async def test_a_server_behind_a_gateway_that_is_gone_is_down_and_comes_back(connect, plain):
    notes = connect(at(plain))
    await notes.names()
    plain.instead = (503, "text/html", "<h1>Service Unavailable</h1>")
    with pytest.raises(ToolError, match="503"):
        await notes.run("read_note")
    plain.instead = None
    notes.pauses.end_all()
    await until(lambda: not notes.toolset.servers[0].trouble)
    assert await notes.run("read_note") == "read_note"


async def test_an_address_that_no_one_answers_at_is_told_without_a_call_and_comes_back(connect, plain):
    notes = connect(at(plain))
    await notes.names()
    [server] = notes.toolset.servers
    assert server.trouble is None
    plain.down()
    assert await notes.pauses.begun() <= 20  # the next look
    notes.pauses.end()
    await until(lambda: bool(server.trouble))
    assert "can't be reached" in (await server.status()).trouble
    plain.up()
    notes.pauses.end_all()
    await until(lambda: not server.trouble)
    assert await notes.run("add_note", text="eggs") == "add_note eggs"


async def test_a_server_that_is_down_for_long_is_asked_every_10_seconds(connect, plain):
    plain.down()
    notes = connect(at(plain))
    await notes.names()
    pauses = []
    for _ in range(8):
        pauses.append(await notes.pauses.begun())
        notes.pauses.end()
    assert pauses == [1, 2, 4, 8, 10, 10, 10, 10]
    plain.up()
