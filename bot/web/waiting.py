"""Answers that wait for an end: a long poll."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request

from bot.web.site import Caller, Here, Site

LONGEST_WAIT = 60  # seconds

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LongPoll:
    """A request that waits, ``seconds`` at most, for as long as its caller's token counts."""

    request: Request
    site: Site
    seconds: float

    async def until(self, look: Callable[[], Awaitable[T | None]], ended: Callable[[T], bool]) -> T | None:
        """The view after the end, or as it is when the wait is over or the server stops.

        Raises Unauthenticated where the caller's token is revoked while it waits.
        """
        http = self.site.channel
        loop = asyncio.get_running_loop()
        last, first = loop.time() + self.seconds, True
        while True:
            rings = http.notifier.rings
            shown = await look()
            if not first:  # after the look: what is shown may have happened since the token was revoked
                await self.site.doorkeeper(self.request)
            first, left = False, last - loop.time()
            if shown is None or ended(shown) or left <= 0 or http.hub.closed:
                return shown
            await http.notifier.wait(rings, min(left, http.pace.feed))

    def at_once(self) -> "LongPoll":
        """The same without waiting."""
        return replace(self, seconds=0)


async def _waiting(
    request: Request,
    actor: Caller,
    site: Here,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="seconds to wait for the end")] = 0,
) -> AsyncIterator[LongPoll]:
    poll = LongPoll(request, site, wait)
    if not wait:
        yield poll
        return
    with site.waiting.place(str(actor)):
        yield poll


Waiting = Annotated[LongPoll, Depends(_waiting)]
"""``?wait=``: how long the caller waits."""
