"""A pydantic-ai agent whose tool asks people.

Needs: nod-client, pydantic-ai-slim[openai], NOD_URL, NOD_TOKEN, OPENAI_API_KEY, and for any compatible server
OPENAI_BASE_URL.

    python examples/pydantic_ai_agent.py
"""

import asyncio
import os

from pydantic_ai import Agent
from pydantic_ai.capabilities import HandleDeferredToolCalls

from nod_client import AsyncNod
from nod_client.pydantic_ai import Approvals


async def main() -> None:
    async with AsyncNod() as nod:
        agent = Agent(
            f"openai-chat:{os.environ.get('OPENAI_MODEL', 'gpt-5-mini')}",
            instructions="Deploy what you are asked to. Do not try again what people declined.",
            capabilities=[HandleDeferredToolCalls(handler=Approvals(nod))],
        )

        @agent.tool_plain(requires_approval=True)
        def deploy(version: str) -> str:
            """Deploy a version to production."""
            print(f"deploying {version}")
            return f"{version} is out"

        result = await agent.run("Deploy 1.4")
    print(result.output)


asyncio.run(main())
