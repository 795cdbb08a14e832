"""Approvals of the OpenAI Agents SDK are put to people, with the real library and a real Nod."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("agents", reason="the extra adapters is not installed")

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    RunState,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from nod_client import AsyncNod, StillWaiting, needs_approval
from nod_client.openai_agents import Approvals
from tests.clients.conftest import House

set_tracing_disabled(disabled=True)


class Scripted(Model):
    """Makes these calls of ``deploy`` one after the other, then says what came of the last."""

    def __init__(self, *versions: str) -> None:
        self.versions = list(versions)
        self.told: list[str] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002
        self.told = [str(each["output"]) for each in input if each.get("type") == "function_call_output"]
        if self.versions:
            made: Any = ResponseFunctionToolCall(
                type="function_call",
                name="deploy",
                call_id=f"c{len(self.told)}",
                arguments=json.dumps({"version": self.versions.pop(0)}),
            )
        else:
            text = ResponseOutputText(type="output_text", text=self.told[-1], annotations=[])
            made = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[made], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def agent(ran: list[str], model: Model) -> Agent[None]:
    @function_tool(needs_approval=True)
    async def deploy(version: str) -> str:
        """Deploy a version."""
        ran.append(version)
        return f"{version} is out"

    return Agent(name="deployer", tools=[deploy], model=model)


async def test_a_call_runs_once_people_approved_it(house: House, asking: AsyncNod):
    ran: list[str] = []
    run = asyncio.create_task(Approvals(asking).run(agent(ran, Scripted("1.4")), "Deploy 1.4"))
    proposal = await house.card()
    assert [f["new_value"] for f in proposal["preview"]] == ["1.4"]
    assert ran == []
    await house.press("approve", proposal)
    assert (await run).final_output == "1.4 is out"
    assert ran == ["1.4"]


async def test_the_model_is_told_who_declined_and_why_and_when_no_one_did(house: House, asking: AsyncNod):
    ran: list[str] = []
    run = asyncio.create_task(Approvals(asking).run(agent(ran, Scripted("1.4")), "Deploy 1.4"))
    await house.press("decline", reason="Not today")
    assert (await run).final_output == "ben declined it. Reason: Not today"
    run = asyncio.create_task(Approvals(asking).run(agent(ran, Scripted("1.4")), "Deploy 1.4"))
    await house.expire()
    assert (await run).final_output == "No one decided in time. No one refused it."
    assert ran == []


async def test_what_people_edited_runs_unasked_once_the_model_calls_it_like_that_and_only_once(house, asking):
    ran: list[str] = []
    model = Scripted("1.4", "1.3", "1.3")
    run = asyncio.create_task(Approvals(asking).run(agent(ran, model), "Deploy 1.4"))
    edited = await house.edit(version="1.3")
    again = await house.card(edited["id"])
    assert ran == ["1.3"]
    assert model.told[0].endswith('Call deploy with exactly these: {"version": "1.3"}')
    await house.press("decline", again, reason="Once is enough")
    assert (await run).final_output == "ben declined it. Reason: Once is enough"
    assert ran == ["1.3"]


async def test_under_needs_approval_the_function_itself_takes_the_edit(house: House, asking: AsyncNod):
    ran: list[str] = []

    @function_tool
    @needs_approval(summary="Deploy {version}", nod=asking)
    async def deploy(version: str) -> str:
        """Deploy a version."""
        ran.append(version)
        return f"{version} is out"

    made: Agent[None] = Agent(name="deployer", tools=[deploy], model=Scripted("1.4"))
    run = asyncio.create_task(Runner.run(made, "Deploy 1.4"))
    await house.edit(version="1.3")
    assert (await run).final_output == "1.3 is out"


async def test_a_stored_run_continues_in_another_process_and_after_a_restart_of_nod(house: House, asking):
    ran: list[str] = []
    first = agent(ran, Scripted("1.4"))
    state = (await Runner.run(first, "Deploy 1.4")).to_state()
    with pytest.raises(StillWaiting):
        await Approvals(asking, key="run-7", wait=0).decide(state)
    proposal = await house.card()
    await house.restart()
    second = agent(ran, Scripted())
    stored = await RunState.from_string(second, state.to_string())
    run = asyncio.create_task(Approvals(asking, key="run-7").run(second, stored))
    await house.press("approve", proposal)
    assert (await run).final_output == "1.4 is out"
    assert len(await house.all()) == 1
