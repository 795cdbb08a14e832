"""An agent's token has the team's tools over MCP; for tasks the test speaks JSON-RPC itself."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from mcp import Client

from bot.approvals.agents import MAX_LOOKS, choose_pause
from bot.tools.decorator import tool
from tests.features.agents.kit import SETTINGS, agent_of, make_agent, press, waiting
from tests.features.mcp.test_agents import over_http, over_stdio
from tests.web.conftest import ANA, CHIEF, Json, Serve, Served

QUESTIONS = {"request_approval", "check_approval", "permission_prompt"}
TASKS = "io.modelcontextprotocol/tasks"
VERSION = "2026-07-28"
WAITING = SETTINGS | {"NOD_AGENT_WAIT": 0}


def speak(way: str, nod: Served, token: str) -> Any:
    if way == "http":
        return over_http(nod, token)
    return over_stdio(nod, NOD_TOKEN=token, NOD_AGENT_WAIT="0")


BOTH = pytest.mark.parametrize("way", ["http", "stdio"])


async def names_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@BOTH
async def test_an_agent_lists_reads_calls_and_gets_the_result(serve: Serve, way: str):
    async with serve(**WAITING) as nod, speak(way, nod, await make_agent(nod)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert QUESTIONS | {"keep", "read"} <= tools.keys()
        assert tools["read"].annotations.read_only_hint is True
        assert tools["keep"].annotations.read_only_hint is False
        assert tools["keep"].output_schema is None
        read = await client.call_tool("read", {})
        assert (read.is_error, read.content[0].text) == (False, "[]")
        made = await client.call_tool("keep", {"text": "milk", "approval_reason": "for tea"})
        assert made.structured_content["end"] == "waiting"
        assert "Call check_approval with this id" in made.content[0].text
        [card] = await waiting(nod)
        assert (card["requester"], card["reason"]) == ("claude-code, for ana", "for tea")
        await press(nod, "approve")
        done = await client.call_tool("check_approval", {"id": made.structured_content["id"]})
        assert (done.structured_content["end"], done.structured_content["result"]) == (
            "succeeded", '{"kept": 1}',
        )  # fmt: skip


async def test_a_token_of_before_has_the_questions_alone(serve: Serve):
    async with serve(**SETTINGS) as nod, over_http(nod, ANA) as client:
        assert await names_of(client) == QUESTIONS
        result = await client.call_tool("keep", {"text": "milk"})
        assert result.is_error
        assert await waiting(nod) == []


async def test_a_call_waits_with_progress_and_is_told_the_result(serve: Serve):
    async with serve(**SETTINGS) as nod, over_http(nod, await make_agent(nod)) as client:
        said: asyncio.Queue[str | None] = asyncio.Queue()

        async def progress(_: float, __: float | None, message: str | None) -> None:
            await said.put(message)

        calling = asyncio.create_task(client.call_tool("keep", {"text": "milk"}, progress_callback=progress))
        words = await said.get()
        assert words == "Waiting for a decision by ana, any approver or any admin. Nothing has been changed"
        await press(nod, "approve")
        done = await calling
        assert (done.is_error, done.structured_content) == (False, {"kept": 1})


async def test_each_end_that_is_not_good_is_an_error_in_words_with_its_name(serve: Serve):
    async with serve(**WAITING) as nod, over_http(nod, await make_agent(nod)) as client:
        await client.call_tool("keep", {"text": "milk"})
        await press(nod, "decline", reason="Not today")
        told = await client.call_tool("keep", {"text": "milk"})
        assert (told.is_error, told.structured_content["end"]) == (True, "declined")
        assert "Not today" in told.content[0].text
        unfit = await client.call_tool("keep", {"lamp": 1})
        assert unfit.is_error
        assert unfit.content[0].text


async def test_no_argument_is_named_as_a_header(serve: Serve):
    @tool
    async def send(region: str) -> str:
        """Send it."""
        return region

    region = {"type": "string", "x-mcp-header": "Region"}
    named = replace(send, parameters={"type": "object", "properties": {"region": region}})
    async with (
        serve(tools=(named,), **SETTINGS) as nod,
        over_http(nod, await make_agent(nod)) as client,
    ):
        [found] = [each for each in (await client.list_tools()).tools if each.name == "send"]
        assert found.input_schema["properties"]["region"] == {"type": "string"}


async def test_the_list_comes_in_pages(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    async with serve(**SETTINGS) as nod, over_http(nod, await make_agent(nod)) as client:
        await names_of(client)
        from bot.features.mcp import calls

        monkeypatch.setattr(calls, "PAGE_TOOLS", 1)
        seen, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            seen += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(seen) == len(set(seen))
        assert QUESTIONS | {"keep", "read"} <= set(seen)


async def test_calls_that_lead_to_calls_are_bounded(serve: Serve):
    async with serve(**SETTINGS) as nod, over_http(nod, await make_agent(nod)) as client:
        deep = await client.call_tool("read", {}, meta={"nod/depth": 4})
        assert deep.is_error
        assert "too deep" in deep.content[0].text


class Raw:
    """JSON-RPC at ``/mcp`` as a client with tasks sends it."""

    def __init__(self, client: httpx.AsyncClient, *, declares: bool = True) -> None:
        self.client, self.declares, self.number = client, declares, 0

    async def ask(self, method: str, headers: dict[str, str] | None = None, **params: Any) -> Json:
        self.number += 1
        capabilities = {"extensions": {TASKS: {}}} if self.declares else {}
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": {**params, "_meta": meta}}
        named = params.get("name") or params.get("taskId")
        given = {
            "Mcp-Method": method,
            "MCP-Protocol-Version": VERSION,
            "Accept": "application/json, text/event-stream",
        }
        given |= {"Mcp-Name": named} if named else {}
        answer = await self.client.post("/mcp", json=body, headers=given | (headers or {}))
        text = answer.text
        if answer.headers["content-type"].startswith("text/event-stream"):
            text = [line[6:] for line in text.splitlines() if line.startswith("data: ")][-1]
        said: Json = json.loads(text)
        return said.get("result") or {"error": said.get("error")}


async def test_a_client_with_tasks_gets_one_and_its_result(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        raw = Raw(agent)
        discovered = await raw.ask("server/discover")
        assert TASKS in discovered["capabilities"]["extensions"]
        task = await raw.ask("tools/call", name="keep", arguments={"text": "milk"})
        assert (task["resultType"], task["status"], len(task["taskId"])) == ("task", "working", 32)
        assert task["pollIntervalMs"] >= 2000
        assert task["ttlMs"] == 48 * 3600 * 1000
        assert "result" not in task
        now = await raw.ask("tasks/get", taskId=task["taskId"])
        assert (now["status"], now["resultType"]) == ("working", "complete")
        assert now["statusMessage"].startswith("Waiting for a decision by ana, any approver or any admin")
        await press(nod, "approve")
        done = await raw.ask("tasks/get", taskId=task["taskId"])
        assert (done["status"], done["result"]["structuredContent"]) == ("completed", {"kept": 1})
        acknowledged = await raw.ask("tasks/cancel", taskId=task["taskId"])
        assert {k: v for k, v in acknowledged.items() if k != "_meta"} == {"resultType": "complete"}
        assert (await raw.ask("tasks/get", taskId=task["taskId"]))["status"] == "completed"


async def test_a_task_is_cancelled_by_its_client_and_withdrawn_by_people(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        raw = Raw(agent)
        task = await raw.ask("tools/call", name="keep", arguments={"text": "1"})
        await raw.ask("tasks/cancel", taskId=task["taskId"])
        assert (await raw.ask("tasks/get", taskId=task["taskId"]))["status"] == "cancelled"
        task = await raw.ask("tools/call", name="keep", arguments={"text": "2"})
        await press(nod, "cancel", token=CHIEF)
        told = await raw.ask("tasks/get", taskId=task["taskId"])
        assert (told["status"], told["result"]["isError"]) == ("completed", True)
        assert told["result"]["structuredContent"]["end"] == "withdrawn"
        task = await raw.ask("tools/call", name="keep", arguments={"text": "3"})
        nod.clock.forward(timedelta(hours=25))
        await nod.app.core.recovery.expire_due(nod.clock())
        told = await raw.ask("tasks/get", taskId=task["taskId"])
        assert (told["status"], told["result"]["structuredContent"]["end"]) == ("completed", "expired")


async def test_tasks_are_for_those_who_declared_them_and_for_their_own_token(serve: Serve):
    async with serve(**WAITING) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        raw, plain = Raw(agent), Raw(agent, declares=False)
        task = await raw.ask("tools/call", name="keep", arguments={"text": "milk"})
        synchronous = await plain.ask("tools/call", name="keep", arguments={"text": "tea"})
        assert (synchronous["resultType"], "taskId" in synchronous) == ("complete", False)
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            refused = await plain.ask(method, taskId=task["taskId"])
            assert refused["error"]["code"] == -32021, method
            unknown = await Raw(other).ask(method, taskId=task["taskId"])
            assert unknown["error"]["code"] == -32602, method
            assert (await raw.ask(method, taskId="0" * 32))["error"]["code"] == -32602
        mismatch = await raw.ask("tasks/get", {"Mcp-Name": "another"}, taskId=task["taskId"])
        assert mismatch["error"]["code"] == -32020
        for removed in ("tasks/result", "tasks/list"):
            assert (await raw.ask(removed, taskId=task["taskId"]))["error"]["code"] == -32601
        reading = await raw.ask("tools/call", name="read", arguments={})
        assert reading["resultType"] == "complete"


def test_an_open_call_is_asked_for_as_long_again_as_it_has_waited_and_later_where_there_are_many():
    assert [choose_pause(waited, 1) for waited in (0, 3, 30, 61, 9999)] == [2, 3, 30, 60, 60]
    assert [choose_pause(0, calls) for calls in (20, 100, 600, 1000)] == [2, 10, 60, 60]
    assert choose_pause(-3600, 1) == 2  # a clock set back


async def test_a_task_says_when_to_ask_again(serve: Serve):
    async with serve(**WAITING) as nod, agent_of(nod) as agent:
        raw = Raw(agent)
        task = await raw.ask("tools/call", name="keep", arguments={"text": "milk"})
        assert task["pollIntervalMs"] == 2_000
        nod.clock.forward(timedelta(seconds=30))
        assert (await raw.ask("tasks/get", taskId=task["taskId"]))["pollIntervalMs"] == 30_000


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_agent_that_asks_too_often_is_told_to_wait_and_its_task_is_not_unknown(serve: Serve):
    async with serve(**WAITING, patience=250) as nod, agent_of(nod) as agent:
        raw = Raw(agent)
        task = await raw.ask("tools/call", name="keep", arguments={"text": "milk"})
        for _ in range(MAX_LOOKS // 40):
            looks = await asyncio.gather(*(agent.get(f"/api/calls/{'0' * 32}") for _ in range(40)))
            assert {each.status_code for each in looks} == {404}
        for path in (f"/api/calls/{task['taskId']}", "/api/tools", "/api/approvals/x"):
            refused = await agent.get(path)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        asked = await raw.ask("tasks/get", taskId=task["taskId"])
        assert (asked["error"]["code"], "Wait a minute" in asked["error"]["message"]) == (-32603, True)
        nod.clock.forward(timedelta(minutes=2))
        assert (await raw.ask("tasks/get", taskId=task["taskId"]))["status"] == "working"


async def test_a_task_is_there_after_a_restart(serve: Serve):
    async with serve(**SETTINGS) as nod:
        token = await make_agent(nod)
        async with nod.caller(token) as agent:
            task = await Raw(agent).ask("tools/call", name="keep", arguments={"text": "milk"})
    async with serve(**SETTINGS) as nod:
        await press(nod, "approve")
        async with nod.caller(token) as agent:
            done = await Raw(agent).ask("tasks/get", taskId=task["taskId"])
        assert (done["status"], done["result"]["isError"]) == ("completed", False)
    assert nod.notes.kept == ["milk"]
