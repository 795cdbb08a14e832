"""`Asker`, the base of ``Approvals`` in the adapters for agent frameworks (``langgraph.py`` and others).

An adapter turns each tool call that its framework holds back into a `Use`. `Asker.ask_about` puts the uses to
people. If the run has a key, each use gets an idempotency key that is the same when the run is started again.
So people are not asked a second time, and their answer still counts.
"""

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
    """A tool's use that an agent wants."""

    tool_name: str
    input: Mapping[str, Any]
    call: str
    """The model's id for it. Many model servers count ids from 0 in each answer, so it is not unique."""
    summary: str | None = None
    moment: str = ""
    """The place in the run's history, by which uses are told apart. It stays the same after a restart."""

    def digest(self) -> str:
        """Return a digest that no other use of the run has, as hexadecimal text."""
        parts = [self.moment, self.call, self.tool_name, dict(self.input)]
        return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class Asker:
    """Asks about the tool calls of an agent's run. An answer counts for one use; a later use asks again."""

    nod: AsyncNod
    key: str | None = None
    """A name of the run: an agent that is started again with it continues its open questions."""
    wait: float | None = None
    """The seconds to wait for people; see `Nod.ask`."""
    ttl: int | None = None
    """The seconds in which people may decide; see `Nod.ask`."""
    _asked_counts: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)
    """The number of uses with each digest that were answered, or are being asked about."""

    async def ask_about(self, uses: Sequence[Use]) -> list[Request]:
        """Return the request about each use, in their order. All are put to people at the same time.

        Raises StillWaiting, CouldNotAsk.
        """
        digests = [use.digest() for use in uses]
        keys = [self._claim_key(digest) for digest in digests]
        try:
            requests = await asyncio.gather(*map(self._ask, uses, keys))
            for request in requests:
                if request.end is End.WAITING:
                    raise StillWaiting(request)
        except BaseException:
            self._asked_counts.subtract(digests)  # no answer was used: the next call asks the same
            raise
        return requests

    def _claim_key(self, digest: str) -> str | None:
        """Return the idempotency key for a use; the next claim for the same digest gets another key."""
        count = self._asked_counts[digest]
        self._asked_counts[digest] += 1
        if self.key is None:
            return None
        key = f"{self.key}/{digest}/{count}"
        return key if len(key) <= _MAX_KEY_CHARS else sha256(key.encode()).hexdigest()

    async def _ask(self, use: Use, key: str | None) -> Request:
        options = Permission()
        if key is not None:
            options["key"] = key
        if use.summary is not None:
            options["summary"] = use.summary
        if self.ttl is not None:
            options["ttl"] = self.ttl
        return await self.nod.permit(use.tool_name, use.input, wait=self.wait, **options)
