"""pydantic-ai's tools that need approval are put to people, with the real library and a real Nod."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra adapters is not installed")

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from nod_client import AsyncNod, StillWaiting
from nod_client.pydantic_ai import Approvals
from tests.clients.conftest import House


def told(messages: list[ModelMessage]) -> list[str]:
    """What the model was told of its calls."""
    parts = [part for each in messages if isinstance(each, ModelRequest) for part in each.parts]
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Asks to deploy, then says what came of it."""
    if results := told(messages):
        return ModelResponse([TextPart("; ".join(results))])
    return ModelResponse([ToolCallPart("deploy", {"version": "1.4"}, tool_call_id="call_0")])


def agent(ran: list[str], **more: Any) -> Agent[None, Any]:
    made: Agent[None, Any] = Agent(FunctionModel(model), **more)

    @made.tool_plain(requires_approval=True)
    def deploy(version: str) -> str:
        """Deploy a version."""
        ran.append(version)
        return f"{version} is out"

    return made


def inline(ran: list[str], asking: AsyncNod) -> Agent[None, Any]:
    return agent(ran, capabilities=[HandleDeferredToolCalls(handler=Approvals(asking))])


async def test_a_call_runs_as_people_edited_it(house: House, asking: AsyncNod):
    ran: list[str] = []
    run = asyncio.create_task(inline(ran, asking).run("Deploy 1.4"))
    proposal = await house.card()
    assert proposal["description"] == "deploy: 1.4"
    await house.edit(version="1.3")
    assert (await run).output == "1.3 is out"
    assert ran == ["1.3"]


async def test_the_model_is_told_who_declined_and_why_and_when_no_one_did(house: House, asking: AsyncNod):
    ran: list[str] = []
    run = asyncio.create_task(inline(ran, asking).run("Deploy 1.4"))
    await house.press("decline", reason="Not today")
    assert (await run).output == "ben declined it. Reason: Not today"
    run = asyncio.create_task(inline(ran, asking).run("Deploy 1.4"))
    await house.expire()
    assert (await run).output == "No one decided in time. No one refused it."
    assert ran == []


async def test_the_same_call_of_a_later_run_asks_again_though_the_model_repeats_its_ids(house: House, asking):
    ran: list[str] = []
    for _ in range(2):
        run = asyncio.create_task(inline(ran, asking).run("Deploy 1.4"))
        await house.press("approve")
        await run
    assert (ran, len(await house.all())) == (["1.4", "1.4"], 2)


async def test_a_run_that_ended_waiting_continues_in_another_process_and_after_a_restart_of_nod(
    house: House, asking
):
    ran: list[str] = []
    paused = agent(ran, output_type=[str, DeferredToolRequests])
    first = await paused.run("Deploy 1.4")
    with pytest.raises(StillWaiting):
        await Approvals(asking, key="order-7", wait=0).results(first.output, first.all_messages())
    proposal = await house.card()
    await house.restart()
    stored = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
    deciding = asyncio.create_task(Approvals(asking, key="order-7").results(first.output, stored))
    await house.press("approve", proposal)
    done = await paused.run(message_history=first.all_messages(), deferred_tool_results=await deciding)
    assert (done.output, ran) == ("1.4 is out", ["1.4"])


def same_call_twice(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Deploys the same version two times, under one id: servers that count calls from 0 do that."""
    if len(results := told(messages)) == 2:
        return ModelResponse([TextPart("; ".join(results))])
    return ModelResponse([ToolCallPart("deploy", {"version": "1.4"}, tool_call_id="call_0")])


async def test_a_second_call_with_the_id_and_arguments_of_the_first_is_a_question_of_its_own(
    house: House, asking
):
    ran: list[str] = []
    approvals = Approvals(asking, key="order-7")
    made = agent(ran, capabilities=[HandleDeferredToolCalls(handler=approvals)])
    with made.override(model=FunctionModel(same_call_twice)):
        run = asyncio.create_task(made.run("Deploy 1.4 twice"))
        first = await house.press("approve")
        await house.press("decline", await house.card(first["id"]), reason="Once is enough")
        assert (await run).output == "1.4 is out; ben declined it. Reason: Once is enough"
    assert ran == ["1.4"]


async def test_between_two_runs_the_history_tells_a_continuation_from_a_new_call(
    house: House, asking: AsyncNod
):
    ran: list[str] = []
    paused = agent(ran, output_type=[str, DeferredToolRequests])
    with paused.override(model=FunctionModel(same_call_twice)):
        result = await paused.run("Deploy 1.4 twice")
        for verb in ("approve", "decline"):
            approvals = Approvals(asking, key="order-7")  # as a process that was started again
            deciding = asyncio.create_task(approvals.results(result.output, result.all_messages()))
            await house.press(verb)
            result = await paused.run(
                message_history=result.all_messages(), deferred_tool_results=await deciding
            )
    assert (result.output, ran) == ("1.4 is out; ben declined it.", ["1.4"])


async def test_a_key_without_the_history_is_refused_before_anyone_is_asked(house: House, asking: AsyncNod):
    paused = agent([], output_type=[str, DeferredToolRequests])
    result = await paused.run("Deploy 1.4")
    with pytest.raises(ValueError, match="all_messages"):
        await Approvals(asking, key="order-7").results(result.output)
    assert await house.pending() == []


async def test_two_calls_with_one_id_in_one_answer_run_neither(house: House, asking: AsyncNod):
    def twins(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        versions = ({"version": "1.4"}, {"version": "1.5"})
        return ModelResponse([ToolCallPart("deploy", given, tool_call_id="call_0") for given in versions])

    ran: list[str] = []
    for made in (inline(ran, asking), agent(ran, output_type=[str, DeferredToolRequests])):
        with (
            made.override(model=FunctionModel(twins)),
            pytest.raises(UnexpectedModelBehavior, match="unique"),
        ):
            await made.run("Deploy both")
    assert (ran, await house.pending()) == ([], [])
