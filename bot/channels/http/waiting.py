"""Answers that wait for an end: a long poll."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import Query

from bot.channels.http.channel import HttpChannel

LONGEST_WAIT = 60  # seconds

Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="seconds to wait for the end")]
T = TypeVar("T")


async def until(
    http: HttpChannel,
    look: Callable[[], Awaitable[T | None]],
    ended: Callable[[T], bool],
    wait: float,
) -> T | None:
    """The view after the end, or as it is when the wait is over or the server stops."""
    loop = asyncio.get_running_loop()
    last = loop.time() + wait
    while True:
        rings = http.bell.rings
        shown = await look()
        left = last - loop.time()
        if shown is None or ended(shown) or left <= 0 or http.hub.closed:
            return shown
        await http.bell.wait(rings, min(left, http.pace.feed))
