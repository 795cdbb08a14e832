"""One of several processes on one PostgreSQL, told what to do by a line of JSON each time.

``python -m benchmarks.together NAME DATABASE_URL MODEL_URL`` answers each line with one of its own; an empty
model URL means the model in this process. `benchmarks/several.py` starts them.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import psycopg

from benchmarks.cycles import rate
from benchmarks.floors import COMMITS, NODS_COMMITS, Calls
from benchmarks.model_server import KEY, client_of
from benchmarks.world import ANA, ASKED, Ear, ScriptedModel, Wire, World, make
from bot.domain.chat import Address, Message
from bot.domain.events import Ending, ProposalOpened, TurnEnded, TurnEvent
from bot.domain.jobs import Job, Peers, Work
from bot.domain.model import Entry, Model, Part, ToolSpec, UserText
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.store import proposals
from bot.store.notifications import build_conninfo
from bot.tools.registry import AvailableTools

_HANGS = "please hang"


class HangingModel(ScriptedModel):
    """The scripted one; a turn that asks for it never ends, where that is wanted."""

    def __init__(self) -> None:
        self.hangs = False
        self.reached = asyncio.Event()

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        last = transcript[-1]
        if self.hangs and isinstance(last, UserText) and _HANGS in last.text:
            self.reached.set()
            await asyncio.Event().wait()
        async for part in super().stream(transcript, tools):
            yield part


class Far:
    """The ear of a conversation that another process began: it is told."""

    def __init__(self, others: Peers, key: str) -> None:
        self._others = others
        self._key = key
        self._opened = ""

    async def send(self, event: TurnEvent) -> None:
        match event:
            case ProposalOpened(proposal):
                self._opened = proposal.id
            case TurnEnded(Ending.WAITING):
                self._others.broadcast("parked", [self._key, self._opened])
            case TurnEnded(_, _, text):
                self._others.broadcast("answered", [self._key, text])


class FarWire(Wire):
    """As `Wire`, for conversations that may be worked on in any process."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: dict[str, asyncio.Future[float]] = {}  # when executions had ended, by proposal
        self._others: Peers | None = None
        self._world: World | None = None
        self._reading: set[asyncio.Task[None]] = set()

    def join(self, world: World, others: Peers) -> None:
        self._world, self._others = world, others
        others.on("parked", self._parked)
        others.on("answered", self._answered)
        others.on("executed", lambda said: self.executed(*said, here=False))

    def open_stream(self, address: Address, requester: Actor) -> Any:  # noqa: ARG002 - Channel's
        assert self._others is not None
        return self.ears.get(address.key) or Far(self._others, address.key)

    def executed(self, ident: str, at: float, *, here: bool = True) -> None:
        if done := self.ended.pop(ident, None):
            done.set_result(at)
        elif here and self._others is not None:
            self._others.broadcast("executed", [ident, at])

    def _parked(self, said: list[str]) -> None:
        if ear := self.ears.get(said[0]):
            reading = asyncio.create_task(self._read(ear, said[1]))
            self._reading.add(reading)
            reading.add_done_callback(self._reading.discard)

    async def _read(self, ear: Ear, ident: str) -> None:
        assert self._world is not None
        found = await self._world.app.database.read(proposals.get, ident)
        assert found is not None
        ear.parked.set_result(found)

    def _answered(self, said: list[str]) -> None:
        if ear := self.ears.get(said[0]):
            ear.answered.set_result(said[1])


class Commits:
    """One small durable row per commit, as those of ``floors.py``, in PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(build_conninfo(url), autocommit=True)
        self._connection.execute("CREATE TABLE IF NOT EXISTS bare (id serial PRIMARY KEY, text text)")

    def commit(self, times: int = COMMITS) -> None:
        for _ in range(times):
            self._connection.execute("INSERT INTO bare (text) VALUES (%s)", (ASKED,))

    def close(self) -> None:
        self._connection.close()


class Same(Calls):
    """As its base, with all the commits that Nod makes on PostgreSQL."""

    def __init__(self, url: str, commits: Commits, available: AvailableTools) -> None:
        super().__init__(url, KEY, commits, available)
        self._bare = commits

    async def cycle(self) -> None:
        self._bare.commit(NODS_COMMITS - COMMITS)
        await super().cycle()


class Process:
    """What one process does of a benchmark; times are those of the one clock that all of them share."""

    def __init__(self, name: str, world: World, wire: FarWire, model: Model, *floors: Calls) -> None:
        """``floors``: the least thinkable, and the one with the same commits."""
        self._name = name
        self._world = world
        self._wire = wire
        self._model = model
        self._floors = floors
        self._proposals: dict[str, Proposal] = {}

    async def cycles(self, at_once: int, each: int) -> float:
        """Cycles per second."""
        found = await rate(self._world.cycle, at_once, each)
        self._world.forget()
        return found

    async def floor(self, at_once: int, each: int) -> float:
        return await rate(self._floors[0].cycle, at_once, each)

    async def same(self, at_once: int, each: int) -> float:
        return await rate(self._floors[1].cycle, at_once, each)

    async def park(self) -> str:
        _, proposal = await self._world.park()
        return proposal.id

    async def press(self, ident: str) -> float:
        """Seconds from a press here until its end is on disk, wherever that is."""
        proposal = await self._world.app.database.read(proposals.get, ident)
        assert proposal is not None
        ended = self._wire.ended[ident] = asyncio.get_running_loop().create_future()
        begun = time.perf_counter()
        await self._world.approve(proposal)
        at: float = await asyncio.wait_for(ended, 60)
        return at - begun

    async def hang(self) -> str:
        """Begin a turn that never ends here; gives its conversation."""
        assert isinstance(self._model, HangingModel)
        self._model.hangs = True
        address = Address("bench", f"{self._name}-hangs")
        message = Message(address, ANA, _HANGS, address.key)
        await self._world.app.core.assistant.handle(message)
        await self._model.reached.wait()
        return address.key

    async def listen(self, key: str) -> float:
        """When the turn of that conversation has parked something here."""
        ear = self._wire.ears[key] = Ear.new()
        await asyncio.wait_for(ear.parked, 120)
        return time.perf_counter()

    async def run(self, job: Job) -> tuple[Job, ...]:
        made = await self._world.app.core.assistant.run(job)
        if job.work is Work.EXECUTE:
            self._wire.executed(job.key, time.perf_counter())
        return made


async def _serve(name: str, url: str, model_url: str, works: str) -> None:
    async with AsyncExitStack() as stack:
        model: Model = HangingModel()
        if model_url:
            model = client_of(model_url)
        wire = FarWire()
        world = make(url, model, wire=wire, name=name, works=works == "works")
        others = world.app.cluster.peers
        assert others is not None
        wire.join(world, others)
        await stack.enter_async_context(world.app.running())
        floors: list[Calls] = []
        if model_url:
            commits = Commits(url)
            stack.callback(commits.close)
            available = await world.available()
            floors = [Calls(model_url, KEY, commits, available), Same(model_url, commits, available)]
            for each in floors:
                stack.push_async_callback(each.close)
        process = Process(name, world, wire, model, *floors)
        world.app.dispatcher.start(process.run, world.app.core.assistant.queue_of)
        gc.freeze()  # as `nod run` does once it is up
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        print(json.dumps("ready"), flush=True)
        while line := await reader.readline():
            what, *given = json.loads(line)
            print(json.dumps(await getattr(process, what)(*given)), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
