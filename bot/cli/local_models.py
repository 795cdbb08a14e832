"""Language models that answer on this machine, at the ports that their servers have unless told otherwise."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2
from pydantic import BaseModel, ValidationError

from bot.tools.net.intake import bound

_PORTS = {"Ollama": 11434, "LM Studio": 1234, "Jan": 1337, "vLLM": 8000}
"""As their documents give them."""
_SECONDS = 1.0


@dataclass(frozen=True)
class LocalServer:
    name: str
    url: str  # for OPENAI_BASE_URL
    model: str  # the first that it offers


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    data: list[_Model]


async def local_servers(ports: Mapping[str, int] = _PORTS) -> list[LocalServer]:
    """Those that answer within a second and offer a model to talk to."""
    async with httpx2.AsyncClient(
        timeout=_SECONDS, trust_env=False, event_hooks={"response": [bound]}
    ) as client:
        found = await asyncio.gather(*(_ask(client, name, port) for name, port in ports.items()))
    return [each for each in found if each is not None]


async def _ask(client: httpx2.AsyncClient, name: str, port: int) -> LocalServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(_SECONDS):
            offered = _Models.model_validate_json((await client.get(f"{url}/models")).content)
    except (httpx2.HTTPError, httpx2.StreamError, TimeoutError, ValidationError):
        return None
    talking = [model.id for model in offered.data if "embed" not in model.id]
    return LocalServer(name, url, talking[0]) if talking else None
