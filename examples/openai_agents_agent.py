"""An agent of the OpenAI Agents SDK whose tool asks people. Ended and started again, it continues to wait.

Needs: nod-client, openai-agents, NOD_URL, NOD_TOKEN, OPENAI_API_KEY, and for any compatible server
OPENAI_BASE_URL.

    python examples/openai_agents_agent.py deploy-1.4-of-may
"""

import asyncio
import os
import sys
from pathlib import Path

from agents import Agent, Runner, RunState, function_tool, set_default_openai_api, set_tracing_disabled

from nod_client import AsyncNod
from nod_client.openai_agents import Approvals

KEY = sys.argv[1]  # names this run: what was approved under it stays approved
STORED = Path(f"{KEY}.json")

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
    given = await RunState.from_string(agent, STORED.read_text()) if STORED.exists() else "Deploy 1.4"
    async with AsyncNod() as nod:
        approvals = Approvals(nod, key=KEY)
        result = await Runner.run(agent, given)
        while result.interruptions:
            state = result.to_state()
            STORED.write_text(state.to_string())
            await approvals.decide(state)
            result = await Runner.run(agent, state)
    STORED.unlink(missing_ok=True)
    print(result.final_output)


asyncio.run(main())
