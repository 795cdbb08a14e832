"""A token that ends in the middle of a call: nothing of it is left to be approved."""

import asyncio
from collections.abc import Mapping
from typing import Any

from bot.domain.preview import PreviewField
from bot.testing.control import Hold
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from tests.features.agents.kit import SETTINGS, agent_of, waiting
from tests.web.conftest import Serve


def make_tool(hold: Hold, kept: list[str]) -> Tool:
    async def preview(arguments: Mapping[str, Any]) -> tuple[PreviewField, ...]:
        await hold.wait()
        return (PreviewField("text", None, arguments["text"]),)

    @tool(preview=preview)
    async def keep(text: str) -> str:
        """Keep a note."""
        kept.append(text)
        return "kept"

    return keep


async def test_a_call_that_is_being_drafted_when_its_token_ends_leaves_no_card(serve: Serve):
    hold, kept = Hold(), list[str]()
    async with serve(tools=(make_tool(hold, kept),), **SETTINGS) as nod, agent_of(nod) as agent:
        calling = asyncio.create_task(agent.post("/api/tools/keep/calls", json={"arguments": {"text": "x"}}))
        await hold.reached.wait()
        listed = (await nod.client.get("/api/agents")).json()["agents"]
        assert (await nod.client.delete(f"/api/agents/{listed[0]['label']}")).status_code == 200
        hold.go.set()
        answer = await calling
        assert (answer.status_code, "does not work any longer" in answer.json()["error"]) == (403, True)
        assert await waiting(nod) == []
        assert kept == []
