"""An agent of the OpenAI Agents SDK whose tool asks people.

Needs: nod-client, openai-agents, NOD_URL, NOD_TOKEN, OPENAI_API_KEY, and for any compatible server
OPENAI_BASE_URL.

    python examples/openai_agents_agent.py
"""

import asyncio
import os

from agents import Agent, function_tool, set_default_openai_api, set_tracing_disabled

from nod_client import AsyncNod
from nod_client.openai_agents import Approvals

set_default_openai_api("chat_completions")  # what compatible servers speak
set_tracing_disabled(disabled=True)


@function_tool(needs_approval=True)
async def deploy(version: str) -> str:
    """Deploy a version to production."""
    print(f"deploying {version}")
    return f"{version} is out"


agent = Agent(
    name="deployer",
    instructions="Deploy what you are asked to. Do not try again what people declined.",
    model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
    tools=[deploy],
)


async def main() -> None:
    async with AsyncNod() as nod:
        result = await Approvals(nod).run(agent, "Deploy 1.4")
    print(result.final_output)


asyncio.run(main())
