"""Pictures and other files of a tool's answer: an agent is given them, within bounds, and no one else is."""

import base64
import json

import pytest

from bot.domain.files import File
from bot.tools.call import ToolOutput
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from tests.features.agents.kit import SETTINGS, agent_of, call, look, make_agent, press
from tests.features.mcp.test_agents import over_http
from tests.web.conftest import CHIEF, Json, Serve, Served

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC"
)
FILES = (
    File("plot.png", "", PIXEL, "image/png"),
    File("../tone", "", b"RIFF", "audio/wav"),
    File("table.csv", "lamp,color\ndesk,red\n"),
    File("raw.bin", "", b"\0\1"),
)
HUGE = tuple(File(f"{number}.bin", "", b"x" * 900_000) for number in range(3))


def make_tools() -> tuple[Tool, ...]:
    @tool(writes=False)
    async def look_at(which: str) -> ToolOutput:
        """Look at it."""
        return ToolOutput("Here it is.", files=HUGE if which == "huge" else FILES)

    @tool
    async def draw(which: str) -> ToolOutput:
        """Draw it."""
        return ToolOutput("Drawn.", files=HUGE if which == "huge" else FILES)

    return look_at, draw


SERVED = {**SETTINGS, "tools": make_tools()}


def check_files(shown: Json) -> None:
    found = {file["name"]: file for file in shown["files"]}
    assert base64.b64decode(found["plot.png"]["data"]) == PIXEL
    assert [file["media_type"] for file in shown["files"]] == [
        "image/png", "audio/wav", "text/plain", "application/octet-stream",
    ]  # fmt: skip
    assert found["table.csv"]["text"] == "lamp,color\ndesk,red\n"
    assert not any("/" in name for name in found)


async def test_the_files_of_a_read_and_of_a_change_come_with_the_answer(serve: Serve):
    async with serve(**SERVED) as nod, agent_of(nod) as agent:
        check_files(await call(agent, "look_at", which="lamp"))
        made = await call(agent, "draw", which="lamp")
        assert made["files"] == []
        await press(nod, "approve")
        for _ in range(2):  # asked for again, they are still there
            check_files(await look(agent, made))


@pytest.mark.parametrize("name", ["look_at", "draw"])
async def test_what_is_too_much_is_left_out_and_named(serve: Serve, name: str):
    async with serve(**SERVED) as nod, agent_of(nod) as agent:
        shown = await call(agent, name, which="huge")
        if name == "draw":
            await press(nod, "approve")
            shown = await look(agent, shown)
        assert [file["name"] for file in shown["files"]] == ["0.bin", "1.bin"]
        assert "[1 left out: 2.bin (900,000 bytes). At most 8 files of 2,000,000 bytes" in shown["text"]


async def test_who_decides_and_another_agent_get_none_of_them(serve: Serve):
    async with serve(**SERVED) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        made = await call(agent, "draw", which="lamp")
        card = await press(nod, "approve", token=CHIEF)
        assert (await other.get(f"/api/calls/{made['id']}")).status_code == 404
        async with nod.caller(CHIEF) as chief:
            assert (await chief.get(f"/api/proposals/{card['id']}/files")).json()["files"] == []
            shown = (await chief.get(f"/api/proposals/{card['id']}")).text
        assert base64.b64encode(PIXEL).decode()[:40] not in shown


async def read_over_mcp(nod: Served) -> tuple[list[object], list[object]]:
    """The blocks of a read, and of a change that `check_approval` was asked for."""
    async with over_http(nod, await make_agent(nod)) as client:
        read = await client.call_tool("look_at", {"which": "lamp"})
        made = await client.call_tool("draw", {"which": "lamp"})
        await press(nod, "approve")
        done = await client.call_tool("check_approval", {"id": made.structured_content["id"]})
        assert done.structured_content["end"] == "succeeded"
        assert json.loads(done.content[0].text) == done.structured_content
        return read.content, done.content


async def test_over_mcp_they_are_blocks_of_content(serve: Serve):
    async with serve(**SERVED, NOD_AGENT_WAIT=0) as nod:
        for content in await read_over_mcp(nod):
            assert [block.type for block in content] == ["text", "image", "audio", "resource", "resource"]
            _, picture, sound, table, raw = content
            assert (base64.b64decode(picture.data), picture.mime_type) == (PIXEL, "image/png")
            assert base64.b64decode(sound.data) == b"RIFF"
            assert table.resource.text == "lamp,color\ndesk,red\n"
            assert base64.b64decode(raw.resource.blob) == b"\0\1"
