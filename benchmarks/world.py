"""A Nod wired as shipped over a temporary SQLite file, with one write tool, driven through its Python API.

All of `App.running` is up: web server, feed of changes, dispatcher, scheduler. One thing is added: an
in-process channel, which is how the driver hears what a turn says after it was committed.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from bot.app.app import App
from bot.app.assembly import build
from bot.channels.base import Lookup
from bot.domain.chat import Address, Answer, Inbox, Message, Press
from bot.domain.events import Ending, ProposalOpened, TurnEnded, TurnEvent
from bot.domain.jobs import Job, Peers, Work
from bot.domain.model import Entry, Finished, Model, Part, StopReason, Text, ToolCall, ToolSpec, UserText
from bot.domain.people import Actor, Membership
from bot.domain.proposals import Proposal
from bot.domain.teams import TeamStatus
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.telemetry import logs
from bot.tools.decorator import tool
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

ASKED = "please add a note that says hello"
CALL = {"text": "hello", "approval_reason": "asked"}
ANSWER = "All done."
PEOPLE = tuple(Actor("bench", f"p{number}", "Ana") for number in range(50))
ANA = PEOPLE[0]
_PATIENCE = 60.0  # seconds for one step of a conversation


class ScriptedModel:
    """Implements `Model` in this process: one ``note_add`` call, then a word to close with."""

    name = "scripted"

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:  # noqa: ARG002 - Model's
        if isinstance(transcript[-1], UserText):
            yield Finished(StopReason.FINISHED, (ToolCall("call_1", "note_add", json.dumps(CALL)),), 12, 5)
        else:
            yield Text(ANSWER)
            yield Finished(StopReason.FINISHED, (), 12, 5)

    async def close(self) -> None: ...


@dataclass
class Ear:
    """Hears one conversation: its proposal once it is parked on disk, its answer once that is on disk."""

    parked: asyncio.Future[Proposal]
    answered: asyncio.Future[str]
    _opened: list[Proposal] = field(default_factory=list)

    @classmethod
    def new(cls) -> "Ear":
        loop = asyncio.get_running_loop()
        return cls(loop.create_future(), loop.create_future())

    async def send(self, event: TurnEvent) -> None:
        match event:
            case ProposalOpened(proposal):
                self._opened.append(proposal)
            case TurnEnded(Ending.WAITING):
                self.parked.set_result(self._opened[-1])
            case TurnEnded(_, _, text):
                self.answered.set_result(text)


class Wire:
    """The in-process `Channel` of the benchmark; like the web, people there read rows themselves."""

    name = "bench"

    def __init__(self) -> None:
        self.ears: dict[str, Ear] = {}

    async def start(
        self, inbox: Inbox, lookup: Lookup, *, receives: bool = True, others: Peers | None = None
    ) -> None: ...

    async def stop(self) -> None: ...

    def open_stream(self, address: Address, requester: Actor) -> Ear:  # noqa: ARG002 - Channel's
        return self.ears.get(address.key) or Ear.new()

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:  # noqa: ARG002 - Channel's
        return team.lead_id

    async def changed(self) -> None: ...

    async def standing(self, actor: Actor, address: Address) -> Membership | None:  # noqa: ARG002 - as in `Channel`
        return Membership.MEMBER


class World:
    """The running Nod and its driver."""

    def __init__(self, app: App, wire: Wire, notes: list[str], name: str = "c") -> None:
        self.app = app
        self._name = name
        self.notes = notes
        self._wire = wire
        self._count = 0
        self._executed: dict[str, asyncio.Future[float]] = {}

    async def available(self) -> AvailableTools:
        """What the model is offered."""
        return (await self.app.registry.load_tools()).model_tools

    async def park(self) -> tuple[Ear, Proposal]:
        """A person, another each time, starts a conversation; returns once its proposal is parked on disk."""
        self._count += 1
        address = Address("bench", f"{self._name}{self._count}")
        ear = self._wire.ears[address.key] = Ear.new()
        who = PEOPLE[self._count % len(PEOPLE)]
        reply = await self.app.core.assistant.handle(Message(address, who, ASKED, address.key))
        assert reply.answer is Answer.ACCEPTED, reply.text
        return ear, await asyncio.wait_for(ear.parked, _PATIENCE)

    async def approve(self, proposal: Proposal) -> None:
        """Who asked presses the button; returns once the decision is on disk."""
        who = proposal.requester
        press = Press(who, Verb.APPROVE, proposal.id, round=proposal.round, digest=proposal.digest)
        reply = await self.app.core.assistant.handle(press)
        assert reply.answer is Answer.ACCEPTED, reply.text

    async def cycle(self) -> float:
        """Message → write call → parked on disk → approve → executed → final text on disk.

        Returns when it was approved, as `perf_counter` says.
        """
        ear, proposal = await self.park()
        pressed = perf_counter()
        await self.approve(proposal)
        assert await asyncio.wait_for(ear.answered, _PATIENCE) == ANSWER
        return pressed

    async def approve_and_time(self, proposal: Proposal) -> float:
        """Seconds from the press until the tool has run and its end is on disk."""
        done = self._executed[proposal.id] = asyncio.get_running_loop().create_future()
        begun = perf_counter()
        await self.approve(proposal)
        ended: float = await asyncio.wait_for(done, _PATIENCE)
        return ended - begun

    def forget(self) -> None:
        """Let go of the driver's own memory of conversations."""
        self._wire.ears.clear()

    async def run(self, job: Job) -> tuple[Job, ...]:
        """What the dispatcher calls: the assistant, and a note of when an execution had ended."""
        made = await self.app.core.assistant.run(job)
        if job.work is Work.EXECUTE and (done := self._executed.pop(job.key, None)):
            done.set_result(perf_counter())
        return made


def note_add(notes: list[str]) -> Tool:
    @tool(summary="Add the note “{text}”")
    async def note_add(text: str) -> str:
        """Add a note.

        Args:
            text: what the note says

        """
        notes.append(text)
        return "added"

    return note_add


def make(
    database: Path | str,
    model: Model | None = None,
    *,
    wire: Wire | None = None,
    name: str = "c",
    works: bool = True,
    notes: list[str] | None = None,
) -> World:
    """Build the app over a file or what a URL names; nothing runs yet. ``works`` is as in `build`."""
    logs.configure("warning")
    settings = Settings.load(
        _env_file=None,
        NOD_DATABASE_URL=f"sqlite:///{database}" if isinstance(database, Path) else database,
        NOD_HOST="127.0.0.1",
        NOD_PORT=0,
        NOD_APPROVAL_POLICY="writes",
        NOD_HTTP_TOKENS=(),
    )
    notes = [] if notes is None else notes
    wire = wire or Wire()
    app = build(
        settings,
        model=model or ScriptedModel(),
        toolsets=[FixedToolset("notes", (note_add(notes),))],
        works=works,
    )
    app.channels[wire.name] = wire
    return World(app, wire, notes, name)


@asynccontextmanager
async def running(database: Path | str, model: Model | None = None) -> AsyncIterator[World]:
    """A world that is up."""
    world = make(database, model)
    async with world.app.running():
        world.app.dispatcher.start(world.run, world.app.core.assistant.queue_of)
        yield world
