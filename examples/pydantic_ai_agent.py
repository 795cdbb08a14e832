"""A pydantic-ai agent whose tool asks people. Ended and started again, it continues to wait.

Needs: nod-client, pydantic-ai-slim[openai], NOD_URL, NOD_TOKEN, OPENAI_API_KEY, and for any compatible server
OPENAI_BASE_URL.

    python examples/pydantic_ai_agent.py deploy-1.4-of-may
"""

import asyncio
import os
import sys
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter

from nod_client import AsyncNod
from nod_client.pydantic_ai import Approvals

KEY = sys.argv[1]  # names this run: what was approved under it stays approved
STORED = Path(f"{KEY}.json")

agent = Agent(
    f"openai-chat:{os.environ.get('OPENAI_MODEL', 'gpt-5-mini')}",
    instructions="Deploy what you are asked to. Do not try again what people declined.",
    output_type=[str, DeferredToolRequests],
)


@agent.tool_plain(requires_approval=True)
def deploy(version: str) -> str:
    """Deploy a version to production."""
    print(f"deploying {version}")
    return f"{version} is out"


async def main() -> None:
    async with AsyncNod() as nod:
        approvals = Approvals(nod, key=KEY)
        if STORED.exists():
            history = ModelMessagesTypeAdapter.validate_json(STORED.read_bytes())
            result = await agent.run(message_history=history)
        else:
            result = await agent.run("Deploy 1.4")
        while isinstance(result.output, DeferredToolRequests):
            STORED.write_bytes(result.all_messages_json())
            decided = await approvals.results(result.output, result.all_messages())
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decided)
    STORED.unlink(missing_ok=True)
    print(result.output)


asyncio.run(main())
