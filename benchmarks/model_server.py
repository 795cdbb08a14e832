"""The fake OpenAI-compatible server of the tests as a process of its own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.agent.openai.model import OpenAIModel
from bot.domain.named_models import NamedModel

KEY = "test-key"


@asynccontextmanager
async def model_server() -> AsyncIterator[str]:
    """Start it on a free port of loopback; gives the base URL."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.openai_server", stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        yield (await server.stdout.readline()).decode().strip()
    finally:
        server.terminate()
        await server.wait()


def client_of(url: str) -> OpenAIModel:
    """Nod's own client of that server, as shipped."""
    return OpenAIModel(NamedModel("gpt-test", "gpt-test", url, secret=KEY))
