"""How far a message, a press, an HTTP approval, an expiry and a plan travel through the rooms of ``bot/``.

``python -m tests.trips`` makes each trip once over the real core. Of the calls from one module to another it
counts visits (entries into a module), rooms (different modules), returns (entries into one that the trip had
entered before) and calls up the staircase of ``tests/test_staircase.py``.
"""

import asyncio
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Self

import httpx

from bot.app.assembly import build
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.settings import Settings
from tests.kit import FakeClock, Nod, ScriptedModel, World, call, lamp_tools, make_tables, says
from tests.team.conftest import TeamNod, plan
from tests.test_staircase import HEIGHT, _part, modules

RED = {"lamp": "desk", "color": "red"}


@dataclass
class Trip:
    """Counts the calls between modules while it is entered; functions that are resumed do not count again."""

    visits: list[str] = field(default_factory=list)
    up: int = 0
    _seen: dict[int, FrameType] = field(default_factory=dict)

    def __enter__(self) -> Self:
        _under_way.append(self)
        sys.setprofile(_called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        _under_way.remove(self)

    def called(self, frame: FrameType, event: str, _: Any) -> None:
        name = _module(frame)
        if event != "call" or name is None or self._seen.get(id(frame)) is frame:
            return
        self._seen[id(frame)] = frame
        back = frame.f_back
        while back is not None and _module(back) is None:
            back = back.f_back
        caller = _module(back) if back else None
        if caller == name:
            return
        self.visits.append(name)
        if caller and HEIGHT[_part(caller)] < HEIGHT[_part(name)]:
            self.up += 1

    def row(self, name: str) -> str:
        rooms = len(set(self.visits))
        return f"| {name} | {len(self.visits)} | {rooms} | {len(self.visits) - rooms} | {self.up} |"


_under_way: list[Trip] = []


def _called(frame: FrameType, event: str, given: Any) -> None:
    for trip in _under_way:
        trip.called(frame, event, given)


def _module(frame: FrameType) -> str | None:
    name = frame.f_globals.get("__name__", "")
    return name if name in modules() and _part(name) in HEIGHT else None


async def _message(nod: Nod, trip: Trip) -> None:
    nod.model.will(says("I will paint it.", call("paint", RED)))
    with trip:
        await nod.say("paint the desk lamp red")
        await nod.idle()


async def _asked(nod: Nod) -> Proposal:
    [proposal] = await nod.asked(call("paint", RED))
    return proposal


async def _press(nod: Nod, trip: Trip) -> None:
    proposal = await _asked(nod)
    with trip:
        await nod.press(Verb.APPROVE, proposal)
        await nod.idle()


async def _expiry(nod: Nod, trip: Trip) -> None:
    await _asked(nod)
    nod.clock.forward(timedelta(days=2))
    with trip:
        await nod.recovery.expire_due(nod.clock())
        await nod.idle()


async def _plan(nod: TeamNod, trip: Trip) -> None:
    await nod.begin(says("My plan.", plan()), plans=True)
    [proposal] = await nod.plans()
    with trip:
        await nod.press(Verb.APPROVE, proposal)
        await nod.idle()


async def _over_http(folder: Path, clock: FakeClock, trip: Trip) -> None:
    model = ScriptedModel()
    model.will(says("I will paint it.", call("paint", RED)))
    make_tables(url := f"sqlite:///{folder / 'http.db'}")
    settings = Settings.load(NOD_DATABASE_URL=url, NOD_PORT=0)
    app = build(settings, model=model, toolsets=[lamp_tools(World())], clock=clock)
    async with app.running(ticking=False), httpx.AsyncClient(timeout=20) as client:
        at = f"http://127.0.0.1:{app.web.port}/api"
        await client.post(f"{at}/chat", json={"message": "paint the desk lamp red"})
        [proposal] = (await client.get(f"{at}/proposals")).json()["proposals"]
        with trip:
            await client.post(f"{at}/proposals/{proposal['id']}/approve", json={})
            await app.dispatcher.wait_until_idle()


async def _run(folder: Path) -> dict[str, Trip]:
    threading.setprofile(_called)  # the threads that wait for the disk count, too
    clock, trips = FakeClock(), {}
    over_core: dict[str, tuple[type[Nod], Callable[[Any, Trip], Awaitable[None]]]] = {
        "A message": (Nod, _message),
        "A press": (Nod, _press),
        "An expiry": (Nod, _expiry),
        "A plan": (TeamNod, _plan),
    }
    for number, (name, (kind, walk)) in enumerate(over_core.items()):
        nod = kind(f"sqlite:///{folder / f'{number}.db'}", clock)
        trips[name] = Trip()
        await walk(nod, trips[name])
        await nod.close()
    trips["An HTTP approval"] = Trip()
    await _over_http(folder, clock, trips["An HTTP approval"])
    threading.setprofile(None)
    return trips


def walked() -> dict[str, Trip]:
    """Every trip, made once: a message until its card is posted, a press until the model has answered."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_run(Path(folder)))


def main() -> None:
    trips = walked()
    print("| trip | visits | rooms | returns | up |\n|---|---|---|---|---|")  # noqa: T201
    for name, trip in trips.items():
        print(trip.row(name))  # noqa: T201


if __name__ == "__main__":
    main()
