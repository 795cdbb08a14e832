"""Servers of language models on this machine, at their usual ports."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2
from pydantic import BaseModel, ValidationError

from bot.tools.response_bounds import bound_response

_SERVER_PORTS = {"Ollama": 11434, "LM Studio": 1234, "Jan": 1337, "vLLM": 8000}
"""The default ports of local model servers, by their documentation."""
_PROBE_SECONDS = 1.0


@dataclass(frozen=True)
class LocalServer:
    """A server of language models on this machine."""

    name: str
    url: str  # the value of OPENAI_BASE_URL
    model: str  # the first model that the server offers


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    """The answer of a server to ``GET /v1/models``."""

    data: list[_Model]


async def find_local_servers(ports: Mapping[str, int] = _SERVER_PORTS) -> list[LocalServer]:
    """Return the local model servers that answer within a second and offer a model for chats."""
    async with httpx2.AsyncClient(
        timeout=_PROBE_SECONDS, trust_env=False, event_hooks={"response": [bound_response]}
    ) as client:
        found = await asyncio.gather(*(_probe(client, name, port) for name, port in ports.items()))
    return [server for server in found if server is not None]


async def _probe(client: httpx2.AsyncClient, name: str, port: int) -> LocalServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            offered = _Models.model_validate_json((await client.get(f"{url}/models")).content)
    except (httpx2.HTTPError, httpx2.StreamError, TimeoutError, ValidationError):
        return None
    chat_models = [model.id for model in offered.data if "embed" not in model.id]
    if chat_models:
        return LocalServer(name, url, chat_models[0])
    return None
