"""Other agents ask their humans through Nod's MCP server, spoken to by the official SDK's client."""

import asyncio
import contextlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from bot.web.schemas.requests import RequestView
from tests.features.requests.test_routes import SETTINGS, press
from tests.web.conftest import ANA, BEN, Json, Serve, Served

ROOT = Path(__file__).parents[3]
Agent = Callable[[Served], AbstractAsyncContextManager[Client]]


@contextlib.asynccontextmanager
async def over_http(nod: Served, token: str | None = ANA) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{nod.url}/mcp", http_client=http)) as client,
    ):
        yield client


@contextlib.asynccontextmanager
async def over_stdio(nod: Served, *words: str, **environment: str) -> AsyncIterator[Client]:
    given = {"NOD_URL": nod.url, "NOD_TOKEN": ANA, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    launch = StdioServerParameters(
        command=sys.executable, args=["-m", "bot.cli.main", "mcp", *words], env=given | environment
    )
    with Path(os.devnull).open("w") as nowhere:  # noqa: ASYNC230 - it has nothing to wait for
        async with Client(stdio_client(launch, errlog=nowhere)) as client:
            yield client


BOTH = pytest.mark.parametrize("agent", [over_http, over_stdio])


async def call(client: Client, tool: str, **arguments: Any) -> Json:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    if result.structured_content is not None:
        said: Json = result.structured_content
        return said.get("result", said)
    return json.loads(result.content[0].text)


async def opened(nod: Served) -> Json:
    """The request that stands open, as soon as there is one."""
    notifier = nod.app.channels["http"].notifier  # type: ignore[attr-defined]
    while True:
        generation = notifier.generation
        found = (await nod.client.get("/api/proposals", params={"state": "proposed"})).json()["proposals"]
        if found:
            return found[0]
        await notifier.wait(generation, 0.05)


async def test_an_agent_is_told_every_end_that_a_request_or_a_call_may_have(serve: Serve):
    ends = {*re.findall(r"`(\w+)`", str(RequestView.model_fields["end"].description))}
    ends_of_calls = {"running", "succeeded", "withdrawn"}
    async with serve(**SETTINGS) as nod, over_http(nod) as client:
        descriptions = {tool.name: tool.description for tool in (await client.list_tools()).tools}
    assert ends | ends_of_calls <= {*re.findall(r"\w+", descriptions["check_approval"] or "")}


@BOTH
async def test_an_agent_asks_waits_and_is_told_what_its_human_pressed(serve: Serve, agent):
    async with serve(**SETTINGS) as nod, agent(nod) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"request_approval", "check_approval", "permission_prompt"}
        asked = await call(client, "request_approval", summary="Send the mail", fields={"to": "all"})
        assert asked["end"] == "waiting"
        waiting = asyncio.create_task(call(client, "check_approval", id=asked["id"], wait_seconds=60))
        await press(nod, asked, "approve")
        done = await waiting
        assert (done["end"], done["decided_by"]) == ("approved", "ben")
        assert done["arguments"] == {"summary": "Send the mail", "details": "", "fields": {"to": "all"}}


@BOTH
async def test_a_permission_prompt_is_allowed_with_what_people_let_through(serve: Serve, agent):
    async with serve(**SETTINGS) as nod, agent(nod) as client:
        given = {"command": "git push", "headers": {"token": "a-true-secret"}}
        prompt = {"tool_name": "Bash", "input": given, "tool_use_id": "t1"}
        asking = asyncio.create_task(call(client, "permission_prompt", **prompt))
        proposal = await opened(nod)
        shown = {f["field"]: f["new_value"] for f in proposal["preview"]}
        assert shown["Command"] == "git push"
        edited = proposal["tool_arguments"]
        edited["input"]["command"] = "git push --dry-run"
        await press(nod, proposal, "approve", arguments=edited)
        assert await asking == {
            "behavior": "allow",
            "updatedInput": {"command": "git push --dry-run", "headers": {"token": "a-true-secret"}},
        }
        # one approval counts once: agents count their uses from 0 again
        asking = asyncio.create_task(call(client, "permission_prompt", **prompt))
        again = await opened(nod)
        assert again["id"] != proposal["id"]
        await press(nod, again, "decline")
        assert (await asking)["behavior"] == "deny"


async def test_a_permission_prompt_tells_a_refusal_from_silence(serve: Serve):
    async with serve(**SETTINGS) as nod, over_http(nod) as client:
        prompt = {"tool_name": "Bash", "input": {"command": "git push"}}
        asking = asyncio.create_task(call(client, "permission_prompt", **prompt))
        await press(nod, await opened(nod), "decline", reason="Not today")
        assert await asking == {"behavior": "deny", "message": "ben said no. Reason: Not today"}
        asking = asyncio.create_task(call(client, "permission_prompt", **prompt))
        await opened(nod)
        nod.clock.forward(timedelta(minutes=11))
        await nod.app.core.recovery.expire_due(nod.clock())
        silent = await asking
        assert silent["behavior"] == "deny"
        assert "No one decided in time" in silent["message"]


async def test_a_permission_prompt_that_cannot_be_asked_is_denied_and_says_why(serve: Serve):
    alone = SETTINGS | {"NOD_ADMINS": ("http:ana",), "NOD_APPROVERS": ()}
    async with serve(**alone) as nod, over_http(nod) as client:
        denied = await call(client, "permission_prompt", tool_name="Bash", input={})
        assert denied["behavior"] == "deny"
        assert "no one may decide this here" in denied["message"]


async def test_who_has_no_valid_token_does_not_get_in(serve: Serve):
    async with serve(**SETTINGS) as nod:
        for token in (None, "wrong-0123456789abcdef"):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            for method in ("GET", "POST", "DELETE"):
                async with nod.caller() as stranger:
                    answer = await stranger.request(method, "/mcp", headers=headers, json={})
                assert answer.status_code == 401
        elsewhere = await nod.client.post("/mcp", headers={"Origin": "https://evil.example"}, json={})
        assert elsewhere.status_code == 403


async def test_an_agent_sees_only_its_own_requests(serve: Serve):
    async with serve(**SETTINGS) as nod, over_http(nod) as client:
        async with nod.caller(BEN) as ben:
            theirs = (await ben.post("/api/approvals", json={"summary": "Ben's"})).json()["proposal"]
        for ident in (theirs["id"], "../me", "nothing"):
            result = await client.call_tool("check_approval", {"id": ident})
            assert result.is_error
            assert "There is no such request" in result.content[0].text


async def test_over_stdio_with_a_wrong_token_the_agent_is_told_which_setting_to_fix(serve: Serve):
    async with serve(**SETTINGS) as nod, over_stdio(nod, NOD_TOKEN="wrong-0123456789abcdef") as client:
        result = await client.call_tool("request_approval", {"summary": "Send"})
        assert result.is_error
        assert "nod token new NAME" in result.content[0].text


@BOTH
async def test_an_empty_summary_is_refused_in_words(serve: Serve, agent: Agent):
    async with serve(**SETTINGS) as nod, agent(nod) as client:
        for summary in ("", "\u200b"):
            result = await client.call_tool("request_approval", {"summary": summary})
            assert result.is_error
            assert "This is empty. Write something." in result.content[0].text


async def test_over_stdio_without_a_running_nod_the_agent_is_told_what_to_do(serve: Serve):
    async with serve(**SETTINGS) as nod, over_stdio(nod, NOD_URL="http://127.0.0.1:9") as client:
        result = await client.call_tool("request_approval", {"summary": "Send"})
        assert result.is_error
        assert "Is `nod run` up, and NOD_URL right?" in result.content[0].text
        denied = await call(client, "permission_prompt", tool_name="Bash", input={})
        assert denied["behavior"] == "deny"
        assert "Nod could not ask anyone" in denied["message"]


@contextlib.asynccontextmanager
async def over_older_http(nod: Served) -> AsyncIterator[Client]:
    """As clients speak that know no version after 2025: their call ends with its connection."""
    headers = {"Authorization": f"Bearer {ANA}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{nod.url}/mcp", http_client=http), mode="legacy") as client,
    ):
        yield client


async def ended(nod: Served, proposal: Json) -> Json:
    """The request, as soon as it isn't open."""
    notifier = nod.app.channels["http"].notifier  # type: ignore[attr-defined]
    while True:
        generation = notifier.generation
        shown = (await nod.client.get(f"/api/proposals/{proposal['id']}")).json()["proposal"]
        if shown["state"] != "proposed":
            return shown
        await notifier.wait(generation, 0.05)


PROMPT = {"tool_name": "Bash", "input": {"command": "git push"}, "tool_use_id": "call_0"}
ASK = {"summary": "Send the mail", "wait_seconds": 60}


@BOTH
@pytest.mark.parametrize(("tool", "given"), [("permission_prompt", PROMPT), ("request_approval", ASK)])
async def test_a_cancelled_call_withdraws_its_card(serve: Serve, agent: Agent, tool: str, given: Json):
    async with serve(**SETTINGS) as nod, agent(nod) as client:
        asking = asyncio.create_task(call(client, tool, **given))
        proposal = await opened(nod)
        asking.cancel()
        shown = await ended(nod, proposal)
        assert (shown["state"], shown["decline_reason"]) == ("cancelled", "The agent stopped waiting")
        assert shown["outcome"] == "Withdrawn by ana: The agent stopped waiting."


@pytest.mark.parametrize("agent", [over_http, over_older_http, over_stdio])
async def test_an_agent_that_leaves_withdraws_what_it_waits_for(serve: Serve, agent: Agent):
    async with serve(**SETTINGS) as nod:
        async with agent(nod) as client:
            asking = asyncio.create_task(call(client, "permission_prompt", **PROMPT))
            proposal = await opened(nod)
        await asyncio.wait([asking])
        assert asking.exception() is not None
        assert (await ended(nod, proposal))["state"] == "cancelled"


async def test_what_is_only_looked_at_stays_open_when_the_look_ends(serve: Serve):
    async with serve(**SETTINGS) as nod, over_http(nod) as client:
        asked = await call(client, "request_approval", summary="Send the mail")
        told = asyncio.Event()

        async def progress(*_: object) -> None:
            told.set()

        looking = asyncio.create_task(
            client.call_tool(
                "check_approval", {"id": asked["id"], "wait_seconds": 60}, progress_callback=progress
            )
        )
        await told.wait()
        looking.cancel()
        await asyncio.wait([looking])
        await press(nod, asked, "approve")
        assert (await call(client, "check_approval", id=asked["id"]))["end"] == "approved"


@BOTH
async def test_while_people_decide_the_agent_is_told_of_progress(serve: Serve, agent: Agent):
    async with serve(**SETTINGS) as nod, agent(nod) as client:
        said: asyncio.Queue[str | None] = asyncio.Queue()

        async def progress(_: float, __: float | None, message: str | None) -> None:
            await said.put(message)

        asking = asyncio.create_task(
            client.call_tool("permission_prompt", PROMPT, progress_callback=progress)
        )
        assert await said.get() == "Waiting for a person to decide"
        await press(nod, await opened(nod), "approve")
        assert not (await asking).is_error


async def test_the_same_id_in_two_sessions_is_two_uses(serve: Serve):
    async with serve(**SETTINGS) as nod, over_http(nod) as client, over_http(nod) as other:
        first = asyncio.create_task(call(client, "permission_prompt", **PROMPT))
        proposal = await opened(nod)
        second = asyncio.create_task(call(other, "permission_prompt", **PROMPT))
        while True:
            found = await nod.client.get("/api/proposals", params={"state": "proposed"})
            if len(found.json()["proposals"]) > 1 or second.done():
                break
            await asyncio.sleep(0.01)
        await press(nod, proposal, "approve")
        assert (await first)["behavior"] == "allow"
        await press(nod, await opened(nod), "decline")
        assert (await second)["behavior"] == "deny"
