"""The part that the adapters share: each call of an agent's run is put to people under its own key."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from nod_client.client import AsyncNod, Permission
from nod_client.errors import StillWaiting
from nod_client.request import End, Request

_MAX_KEY_CHARS = 200  # the API allows no more


@dataclass(frozen=True, slots=True)
class Use:
    """A tool's use that an agent wants.

    ``call`` is the model's id for it. Many servers count those from 0 in each answer, so it does not tell one
    use from another: ``moment`` does, the place in the run's history. It is the same after a restart.
    """

    tool_name: str
    input: Mapping[str, Any]
    call: str
    summary: str | None = None
    moment: str = ""

    def digest(self) -> str:
        """Return what tells this use from the run's others, as hexadecimal text."""
        parts = [self.moment, self.call, self.tool_name, dict(self.input)]
        return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class Asker:
    """Asks about the tool calls of one run.

    ``key`` names the run: an agent that was started again under it continues its open questions. Without one
    each run asks afresh. ``wait`` and ``ttl`` in seconds, as in `Nod.ask`. An answer is given out once: the
    same use again is a new question.
    """

    nod: AsyncNod
    key: str | None = None
    wait: float | None = None
    ttl: int | None = None
    _given: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)

    async def ask_about(self, uses: Sequence[Use]) -> list[Request]:
        """How each ended; all are shown before the first is waited for. Raises StillWaiting, CouldNotAsk."""
        digests = [use.digest() for use in uses]
        keys = [self._claim_key(digest) for digest in digests]
        try:
            requests = await asyncio.gather(*map(self._ask, uses, keys))
            for request in requests:
                if request.end is End.WAITING:
                    raise StillWaiting(request)
        except BaseException:
            self._given.subtract(digests)  # nothing was given out, so the next look finds the same questions
            raise
        return requests

    def _claim_key(self, digest: str) -> str | None:
        """Return the idempotency key of this use; the next claim for the same digest gets another."""
        before = self._given[digest]
        self._given[digest] += 1
        if self.key is None:
            return None
        key = f"{self.key}/{digest}/{before}"
        return key if len(key) <= _MAX_KEY_CHARS else sha256(key.encode()).hexdigest()

    async def _ask(self, use: Use, key: str | None) -> Request:
        more = Permission()
        if key is not None:
            more["key"] = key
        if use.summary is not None:
            more["summary"] = use.summary
        if self.ttl is not None:
            more["ttl"] = self.ttl
        return await self.nod.permit(use.tool_name, use.input, wait=self.wait, **more)
