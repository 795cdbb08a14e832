"""What the adapters share: the tool calls of one agent's run are put to people, each under its own key."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from nod_client.client import AsyncNod, Permission
from nod_client.errors import StillWaiting
from nod_client.request import End, Request

_LONGEST_KEY = 200  # characters; the API allows no more


@dataclass(frozen=True, slots=True)
class Use:
    """An agent wants to use a tool. ``call`` tells it from the run's other uses, also after a restart."""

    tool_name: str
    input: Mapping[str, Any]
    call: str
    summary: str | None = None


@dataclass(frozen=True)
class Asker:
    """Asks about the tool calls of one run.

    ``key`` names the run: an agent that was started again under it continues its open questions. Without one
    each run asks afresh. ``wait`` and ``ttl`` in seconds, as in `Nod.ask`.
    """

    nod: AsyncNod
    key: str | None = None
    wait: float | None = None
    ttl: int | None = None

    async def ask_about(self, uses: Sequence[Use]) -> list[Request]:
        """How each ended; all are shown before the first is waited for. Raises StillWaiting, CouldNotAsk."""
        requests = await asyncio.gather(*map(self._ended, uses))
        for request in requests:
            if request.end is End.WAITING:
                raise StillWaiting(request)
        return requests

    async def _ended(self, use: Use) -> Request:
        more = Permission()
        if self.key is not None:
            key = f"{self.key}/{use.call}"
            more["key"] = key if len(key) <= _LONGEST_KEY else sha256(key.encode()).hexdigest()
        if use.summary is not None:
            more["summary"] = use.summary
        if self.ttl is not None:
            more["ttl"] = self.ttl
        return await self.nod.permit(use.tool_name, use.input, wait=self.wait, **more)
