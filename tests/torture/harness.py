"""Real processes, killed at random while people write and press; then what they left is checked."""

import asyncio
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from bot.domain.outcomes import REASON_PARAMETER
from tests.fakes.openai_server import OpenAIServer, Reply, ask, say
from tests.torture import accounts, cards, checker
from tests.torture.chats import Chats
from tests.torture.feed import Feed
from tests.torture.figures import Figures
from tests.torture.nods import Nods
from tests.torture.people import People

_TOOLS = {
    "mark": ["mark"],
    "pair": ["mark", "mark"],
    "batch": ["mark"] * 5,
    "together": ["mark_together"],
    "soon": ["mark_soon"],
    "back": ["mark_back"],
    "tried": ["mark_tried"],
}
_KILLS_PER_RESTART = 20
_KILLS_PER_REPORT = 50
SPEAKER = re.compile(r"^\w+: ")  # where several may write
_TASK = re.compile(r"Your task: (.+)")
_ANSWERED = re.compile(r"ANSWERED by .+?: “(.+?)”")
_IN_FILES = re.compile(r"^\| (.+)$", re.MULTILINE)
_PRICE = "0,200000"  # of a million tokens: 1 USD for an answer
_RULES = (
    "approvers requester approver",
    "quorum 2 for mark_together",
    "ttl 24h for mark",
    "ttl 24h for mark_together",
    "ttl 24h for plan_submit",
    "ttl 24h for ask_person",
    "ttl 24h for remember",
    "ttl 24h for desk_*",
)

Restart = Callable[[], Awaitable[None]]


def script(body: dict[str, Any]) -> Reply:
    """The model: it calls what the first word of the newest message says."""
    last = body["messages"][-1]
    if task := _TASK.search(str(body["messages"][0]["content"])):
        return _as_teammate(body, task[1])
    words = SPEAKER.sub("", str(last.get("content") or ""))
    first, _, words = words.partition(" ")
    if last["role"] == "user" and first == "team":
        return ask(("spawn_teammate", {"role": "marker", "task": words, "require_plan_approval": True}))
    if last["role"] == "user" and first == "later":
        daily = {"task": words, "at": "tomorrow 9:00", "every": "day", REASON_PARAMETER: "They asked."}
        return ask(("schedule_task", daily))
    if last["role"] == "user" and first == "ask":
        return ask(("ask_person", {"question": words, "choices": ["yes", "no"]}))
    if last["role"] == "user" and first == "keep":
        return ask(("remember", {"fact": words, "about": "person", REASON_PARAMETER: "They asked."}))
    if last["role"] == "user" and first == "read":
        told = "\n".join(str(each.get("content")) for each in body["messages"])
        return say(f"I read: {', '.join(_IN_FILES.findall(told)) or 'nothing'}")
    if answer := _ANSWERED.search(str(last.get("content"))):
        return say(f"I heard: {answer[1]}")
    if last["role"] == "user" and first == "account":
        return ask(accounts.call_of(words))
    if last["role"] == "user" and first in _TOOLS:
        texts = [words, *(f"{words} again{'' if n == 1 else f' {n}'}" for n in range(1, 5))]
        calls = zip(_TOOLS[first], texts, strict=False)
        return ask(*((tool, {"text": each, REASON_PARAMETER: "They asked."}) for tool, each in calls))
    return say("Done.")


def _as_teammate(body: dict[str, Any], task: str) -> Reply:
    """It plans, then does what it was told, and says so; all of it follows from what it was told alone."""
    told = "\n".join(str(each.get("content")) for each in body["messages"][1:])
    if "DECLINED" in told or "Marked" in told or "OUTCOME UNKNOWN" in told:
        return say("That is all.")
    if "The tools are unlocked" in told:
        return ask(("mark", {"text": task, REASON_PARAMETER: "It is the plan."}))
    steps = [{"description": f"Mark {task}", "tools": ["mark"]}]
    return ask(("plan_submit", {"summary": task, "steps": steps, REASON_PARAMETER: "I was asked to plan."}))


async def _drained(nods: Nods) -> None:
    await nods.until(
        "SELECT 'quiet' WHERE NOT EXISTS (SELECT 1 FROM turn WHERE state = 'wanted') AND NOT EXISTS "
        "(SELECT 1 FROM proposal WHERE state IN ('proposed', 'approved', 'executing')) AND NOT EXISTS "
        "(SELECT 1 FROM copy WHERE rendered < wanted AND gone = false) AND NOT EXISTS "
        "(SELECT 1 FROM message WHERE delivered = false)"
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
    rolls: int = 0,
    report: Callable[[Figures], None] = lambda _: None,
) -> Figures:
    """One run on an empty database: so many kills, and as long as they last people write and press.

    ``stories``: what each of them does at least once; all there are if left out. ``restart``: the database
    crashes, too, once for each 20 kills. ``minutes``: at most so long, however many were killed by then.
    ``rolls``: so often each process then ends by SIGTERM and starts again, one after the other.
    ``report`` is told every 50 kills how far it is.
    """
    dice = random.Random(seed)
    async with (
        OpenAIServer(script=script) as model,
        Chats(random.Random(dice.random())) as chats,
        accounts.Accounts(folder) as desk,
        Nods(
            url,
            folder,
            processes,
            {
                "OPENAI_BASE_URL": model.url,
                "NOD_MODEL_PRICE": _PRICE,
                **chats.environment,
                **desk.environment,
            },
            random.Random(dice.random()) if kills else None,
        ) as nods,
        People(nods, chats, desk) as crowd,
        Feed(nods) as feed,
    ):
        chats.slack.port = nods.port
        await crowd.rule(_RULES)
        over = asyncio.Event()
        at_it = [
            asyncio.create_task(crowd.live(n, random.Random(dice.random()), over, stories))
            for n in range(people)
        ]

        def check() -> None:
            for task in at_it:
                if task.done():
                    task.result()  # raises what went wrong

        try:
            end, told = time.monotonic() + minutes * 60, 0
            while len(nods.figures.kills) < kills and time.monotonic() < end:
                await nods.kill(dice, pause)
                if restart and nods.figures.outages < len(nods.figures.kills) // _KILLS_PER_RESTART:
                    nods.restarted = True
                    await restart()
                    nods.figures.outages += 1
                check()
                if len(nods.figures.kills) // _KILLS_PER_REPORT > told:
                    told = len(nods.figures.kills) // _KILLS_PER_REPORT
                    report(nods.figures)
            await nods.calm()
            while nods.figures.rolls < rolls and time.monotonic() < end:
                await asyncio.sleep(dice.uniform(*pause))
                await nods.roll()
                check()
            over.set()
            await asyncio.gather(*at_it)
        finally:
            for task in at_it:
                task.cancel()
            await asyncio.gather(*at_it, return_exceptions=True)
        report(nods.figures)
        try:
            await crowd.leave(dice)
            await _drained(nods)
            await crowd.see_every_answer()
            await _drained(nods)
        except AssertionError as fault:
            nods.check()
            nods.figures.faults.append(str(fault))
        nods.figures.conflicts = chats.telegram.conflicts
        nods.figures.faults += checker.faults(nods.url, nods.effects, crowd, nods.figures)
        nods.figures.faults += cards.faults(nods.url, chats)
        nods.figures.faults += desk.faults(nods.url)
        nods.figures.signed_in = desk.connected
        nods.figures.faults += await feed.faults(checker.versions(nods.url))
        return nods.figures
