"""LangGraph's interrupts are put to people, with the real library and a real Nod."""

import asyncio
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="the extra adapters is not installed")
pytest.importorskip("langchain", reason="the extra adapters is not installed")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from nod_client import AsyncNod, StillWaiting
from nod_client.langgraph import Approvals
from tests.clients.conftest import House

CONFIG: Any = {"configurable": {"thread_id": "t1"}}


class Deployment(TypedDict, total=False):
    version: str
    told: list[Any]


def graph(*values: Any, saver: Any = None) -> Any:
    """One node that asks about each value in turn and keeps the answers."""

    def deploy(state: Deployment) -> Deployment:
        return {"told": [interrupt(value) for value in values]}

    built = StateGraph(Deployment)
    built.add_node("deploy", deploy)
    built.add_edge(START, "deploy")
    built.add_edge("deploy", END)
    return built.compile(checkpointer=saver or InMemorySaver())


async def test_an_interrupt_returns_what_people_approved(house: House, asking: AsyncNod):
    run = asyncio.create_task(Approvals(asking).run(graph({"version": "1.4"}), {}, CONFIG))
    proposal = await house.card()
    assert [f["field"] for f in proposal["preview"]] == ["Tool", "Version"]
    await house.edit(version="1.3")
    [answer] = (await run)["told"]
    assert answer == {
        "approved": True,
        "value": {"version": "1.3"},
        "told": "ben approved it. ben changed it first.",
    }


async def test_a_refusal_and_silence_come_back_as_what_they_are(house: House, asking: AsyncNod):
    run = asyncio.create_task(Approvals(asking).run(graph("Deploy 1.4?", "Then 1.5?"), {}, CONFIG))
    first = await house.card()
    assert first["description"] == "Deploy 1.4?"
    await house.press("decline", first, reason="Not today")
    await house.card(first["id"])
    await house.expire()
    no, silent = (await run)["told"]
    assert no == {"approved": False, "end": "declined", "told": "ben declined it. Reason: Not today"}
    assert (silent["approved"], silent["end"]) == (False, "expired")


async def test_a_node_that_asks_the_same_twice_is_decided_twice_also_under_one_key(house: House, asking):
    saver = InMemorySaver()
    approvals = Approvals(asking, key="t1")
    run = asyncio.create_task(approvals.run(graph("Again?", "Again?", saver=saver), {}, CONFIG))
    first = await house.press("approve")
    second = await house.card(first["id"])
    run.cancel()  # the agent's process ends here, and another continues the thread
    await asyncio.wait([run])
    run = asyncio.create_task(approvals.run(graph("Again?", "Again?", saver=saver), None, CONFIG))
    assert (await house.card())["id"] == second["id"]
    await house.press("decline", second)
    assert [each["approved"] for each in (await run)["told"]] == [True, False]
    assert len(await house.all()) == 2


async def test_a_restart_of_nod_is_waited_out(house: House, asking: AsyncNod):
    run = asyncio.create_task(Approvals(asking).run(graph("Deploy?"), {}, CONFIG))
    await house.card()
    await house.restart()
    await house.press("approve")
    assert (await run)["told"][0]["approved"]


async def test_who_waits_no_longer_leaves_the_question_open_under_its_key(house: House, asking: AsyncNod):
    saver = InMemorySaver()
    asked = graph("Deploy?", saver=saver)
    with pytest.raises(StillWaiting):
        await Approvals(asking, key="t1", wait=0).run(asked, {}, CONFIG)
    await house.press("approve")
    assert (await Approvals(asking, key="t1").run(asked, None, CONFIG))["told"][0]["approved"]


RAN: list[tuple[str, int]] = []


@tool
def order(what: str, number: int) -> str:
    """Order things."""
    RAN.append((what, number))
    return f"ordered {number} {what}"


def agent(mode: Any, *answers: AIMessage) -> Any:
    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    RAN.clear()
    review = HumanInTheLoopMiddleware({"order": True}, interrupt_mode=mode)
    model = Model(messages=iter(answers))
    return create_agent(model, [order], middleware=[review], checkpointer=InMemorySaver())


def calls(*given: dict[str, Any]) -> AIMessage:
    made = [{"name": "order", "args": each, "id": f"c{at}"} for at, each in enumerate(given)]
    return AIMessage("", tool_calls=made)


@pytest.mark.parametrize("mode", ["batched", "per_call"])
async def test_langchains_own_approvals_run_as_edited_or_not_at_all(house: House, asking, mode):
    made = agent(
        mode, calls({"what": "chairs", "number": 4}, {"what": "desks", "number": 9}), AIMessage("Done")
    )
    given = {"messages": [("user", "Order chairs and desks")]}
    run = asyncio.create_task(Approvals(asking).run(made, given, CONFIG))
    first = await house.card()
    second = await house.card(first["id"])
    both = {each["tool_arguments"]["input"]["what"]: each for each in (first, second)}
    edited = both["chairs"]["tool_arguments"] | {"input": {"what": "chairs", "number": 2}}
    await house.press("approve", both["chairs"], arguments=edited)
    await house.press("decline", both["desks"], reason="No room")
    messages = (await run)["messages"]
    assert RAN == [("chairs", 2)]
    assert any("ben declined it. Reason: No room" in str(each.content) for each in messages)
    assert messages[-1].content == "Done"
