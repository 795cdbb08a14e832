"""Real processes, killed at random while people write and press; then what they left is checked."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from bot.agent.transcript import REASON
from tests.fakes.openai_server import OpenAIServer, Reply, ask, say
from tests.torture import checker
from tests.torture.feed import Feed
from tests.torture.figures import Figures
from tests.torture.nods import Nods
from tests.torture.people import People

_TOOLS = {"mark": ["mark"], "pair": ["mark", "mark"], "together": ["mark_together"], "soon": ["mark_soon"]}
_KILLS_PER_RESTART = 20
_RULES = (
    "approvers requester approver",
    "quorum 2 for mark_together",
    "ttl 24h for mark",
    "ttl 24h for mark_together",
)

Restart = Callable[[], Awaitable[None]]


def script(body: dict[str, Any]) -> Reply:
    """The model: it calls what the first word of the newest message says."""
    last = body["messages"][-1]
    first, _, words = str(last.get("content") or "").partition(" ")
    if last["role"] == "user" and first in _TOOLS:
        texts = [words, f"{words} again"]
        calls = zip(_TOOLS[first], texts, strict=False)
        return ask(*((tool, {"text": each, REASON: "They asked."}) for tool, each in calls))
    return say("Done.")


async def _drained(nods: Nods) -> None:
    await nods.until(
        "SELECT 'quiet' WHERE NOT EXISTS (SELECT 1 FROM turn WHERE state = 'wanted') AND NOT EXISTS "
        "(SELECT 1 FROM proposal WHERE state IN ('proposed', 'approved', 'executing'))"
    )


async def torture(
    url: str,
    folder: Path,
    *,
    processes: int,
    kills: int,
    seed: int,
    people: int = 4,
    stories: Sequence[str] = (),
    pause: tuple[float, float] = (0.5, 3.0),
    restart: Restart | None = None,
    minutes: float = math.inf,
) -> Figures:
    """One run on an empty database: so many kills, and as long as they last people write and press.

    ``stories``: what each of them does at least once; all there are if left out. ``restart``: the database
    crashes, too, once for each 20 kills. ``minutes``: at most so long, however many were killed by then.
    """
    dice = random.Random(seed)
    async with (
        OpenAIServer(script=script) as model,
        Nods(url, folder, model.url, processes) as nods,
        People(nods) as crowd,
        Feed(nods) as feed,
    ):
        await crowd.rule(_RULES)
        over = asyncio.Event()
        at_it = [
            asyncio.create_task(crowd.live(n, random.Random(dice.random()), over, stories))
            for n in range(people)
        ]
        try:
            end = time.monotonic() + minutes * 60
            while len(nods.figures.kills) < kills and time.monotonic() < end:
                await nods.kill(dice, pause)
                if restart and nods.figures.outages < len(nods.figures.kills) // _KILLS_PER_RESTART:
                    nods.restarted = True
                    await restart()
                    nods.figures.outages += 1
                for task in at_it:
                    if task.done():
                        task.result()  # raises what went wrong
            over.set()
            await nods.all_ready()
            await asyncio.gather(*at_it)
        finally:
            for task in at_it:
                task.cancel()
            await asyncio.gather(*at_it, return_exceptions=True)
        await _drained(nods)
        nods.figures.faults = checker.faults(nods.url, nods.effects, crowd, nods.figures)
        nods.figures.faults += await feed.faults(checker.versions(nods.url))
        return nods.figures
