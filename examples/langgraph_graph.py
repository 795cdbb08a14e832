"""A LangGraph graph whose interrupts go to people. Needs: nod-client, langgraph, NOD_URL and NOD_TOKEN.

python examples/langgraph_graph.py
"""

import asyncio
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from nod_client import AsyncNod
from nod_client.langgraph import Approvals


class Deployment(TypedDict, total=False):
    version: str
    outcome: str


def deploy(state: Deployment) -> Deployment:
    answer = interrupt({"version": state["version"], "to": "production"})
    if not answer["approved"]:
        return {"outcome": f"Not deployed. {answer['told']}"}
    return {"outcome": f"Deployed {answer['value']['version']}. {answer['told']}"}


async def main() -> None:
    graph = StateGraph(Deployment).add_node("deploy", deploy)
    graph = graph.add_edge(START, "deploy").add_edge("deploy", END).compile(checkpointer=InMemorySaver())
    async with AsyncNod() as nod:
        config = {"configurable": {"thread_id": "deployment-1"}}
        result = await Approvals(nod).run(graph, {"version": "1.4"}, config)
    print(result["outcome"])


asyncio.run(main())
