"""What every suite builds with: hand-written ports, a small world with tools, the real core over them.

`Nod` is the core as ``bot/app.py`` makes it, over a database file: people `say` and `press`, `idle` lets the
work end, `restart` and `crash` build it anew over the same rows. Nothing of our own code is replaced.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field
from sqlmodel import SQLModel

from bot.agent.gate import Gate
from bot.agent.loop import Limits, Loop
from bot.agent.model import (
    AssistantText,
    Entry,
    Finished,
    Part,
    Stop,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.assistant import Assistant
from bot.boards import Boards
from bot.delivery import Bell, Delivery
from bot.desk import CoreDesk
from bot.domain.cards import Card
from bot.domain.chat import Address, Command, Desk, Inbox, Message, Press, Reply, Verb
from bot.domain.conversations import Transcript
from bot.domain.events import TextDelta, TextRestarted, TurnEvent, TurnFailed
from bot.domain.jobs import Job
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposals import TRANSITIONS, PreviewField, Proposal, State
from bot.domain.similarity import Lasting, Rung
from bot.domain.teams import Board
from bot.errors import ChannelError, CopyGone, ToolError
from bot.jobs.embedded import EmbeddedDispatcher
from bot.presses import Presses
from bot.store import audit, conversations, proposals
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.builtin.team import team_tools
from bot.tools.registry import Registry
from bot.tools.tool import CallContext, FixedToolset, ToolOutput, tool
from tests.conftest import FakeClock

ANA = Actor("chat", "ana", "Ana")
BEN = Actor("chat", "ben", "Ben")
EVE = Actor("chat", "eve", "Eve")  # may decide nothing
ADA = Actor("chat", "ada", "Ada")  # an admin where a test says so
ROOM = Address("chat", "room")
WALL = Address("wall", "approvals")  # another channel, where cards may be routed to


class Hold:
    """A place where work stops: `reached` says that it did, `go` lets it on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.go.wait()


# --- the model


@dataclass(frozen=True)
class Scripted:
    """One answer: text in pieces, calls, and how it stops; or a fault, after the text if there is some."""

    pieces: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = Stop.FINISHED
    fault: Exception | None = None
    hold: Hold | None = None  # before the first piece


_call_ids = count(1)


def call(name: str, arguments: Mapping[str, Any] | str | None = None, /, **named: Any) -> ToolCall:
    """A tool call; ``arguments`` as a string is the raw text the model sends."""
    text = arguments if isinstance(arguments, str) else json.dumps({**(arguments or {}), **named})
    return ToolCall(f"call_{next(_call_ids)}", name, text)


def says(text: str, *calls: ToolCall, stop: Stop = Stop.FINISHED, hold: Hold | None = None) -> Scripted:
    """The text comes in two pieces, as streams do."""
    half = len(text) // 2
    return Scripted(tuple(p for p in (text[:half], text[half:]) if p), calls, stop, hold=hold)


def breaks(fault: Exception, after: str = "", hold: Hold | None = None) -> Scripted:
    return Scripted((after,) if after else (), fault=fault, hold=hold)


class ScriptedModel:
    """Implements `Model`: gives queued answers, then what its rule says; remembers what it was shown."""

    name = "scripted"

    def __init__(self) -> None:
        self.answers: deque[Scripted] = deque()
        self.rule: Callable[[Sequence[Entry]], Scripted] = lambda _: says("OK.")
        self.transcripts: list[tuple[Entry, ...]] = []
        self.offered: list[tuple[ToolSpec, ...]] = []
        self.faults: list[str] = []

    def will(self, *answers: Scripted) -> None:
        self.answers.extend(answers)

    @property
    def heard(self) -> list[str]:
        """What people and notes said in the last transcript."""
        return [e.text for e in self.transcripts[-1] if isinstance(e, UserText)]

    @property
    def results(self) -> list[str]:
        """The tool results of the last transcript."""
        return [e.text for e in self.transcripts[-1] if isinstance(e, ToolResult)]

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of the last transcript."""
        return [c for e in self.transcripts[-1] if isinstance(e, AssistantText) for c in e.calls]

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        self.transcripts.append(tuple(transcript))
        self.offered.append(tuple(tools))
        self.faults += history_faults(transcript)
        answer = self.answers.popleft() if self.answers else self.rule(transcript)
        if answer.hold:
            await answer.hold.wait()
        for piece in answer.pieces:
            yield Text(piece)
        if answer.fault:
            raise answer.fault
        yield Finished(answer.stop, answer.calls, 10, 5)

    async def close(self) -> None: ...


def history_faults(transcript: Sequence[Entry]) -> list[str]:
    """What a server would refuse: calls not followed by their results, in order, each with JSON arguments."""
    faults = []
    expected: list[str] = []
    for entry in transcript:
        if isinstance(entry, ToolResult):
            if not expected or expected.pop(0) != entry.call_id:
                faults.append(f"the result of {entry.call_id} stands where it does not belong")
            continue
        if expected:
            faults.append(f"{type(entry).__name__} stands before the results of {expected}")
            expected = []
        if isinstance(entry, AssistantText):
            expected = [c.id for c in entry.calls]
            broken = [c.id for c in entry.calls if not isinstance(json.loads(c.arguments), dict)]
            faults += [f"the arguments of {ident} are no object" for ident in broken]
    return faults + ([f"no results for {expected}"] if expected else [])


# --- a channel


@dataclass
class RecordingStream:
    channel: "RecordingChannel"
    address: Address
    events: list[TurnEvent] = field(default_factory=list)

    async def send(self, event: TurnEvent) -> None:
        self.channel.maybe_refuse("send")
        self.events.append(event)

    @property
    def text(self) -> str:
        """What stands there in the end."""
        text = ""
        for event in self.events:
            if isinstance(event, TextRestarted):
                text = ""
            elif isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, TurnFailed):
                text += event.explanation
        return text


class RecordingChannel:
    """Implements `Channel`: a platform whose posts and cards can be looked at, and that can refuse."""

    def __init__(self, name: str = "chat", *, pulls: bool = False) -> None:
        self.name = name
        self.pulls = pulls
        self.inbox: Inbox | None = None
        self.texts: list[tuple[Address, str]] = []
        self.files: list[tuple[Address, str, str]] = []  # where, name, text
        self.streams: list[RecordingStream] = []
        self.cards: dict[str, Card] = {}  # what each copy shows now, by its reference
        self.places: dict[str, Address] = {}
        self.boards: dict[str, Board] = {}  # what each shows now, by its reference
        self.refusals: dict[str, ChannelError] = {}  # by what is asked: send, post, post_card, redraw_card
        self.changes = 0

    async def start(self, inbox: Inbox, desk: Desk) -> None:
        self.inbox = inbox

    async def stop(self) -> None:
        self.inbox = None

    def open_stream(self, address: Address, requester: Actor) -> RecordingStream:
        self.streams.append(RecordingStream(self, address))
        return self.streams[-1]

    async def post(self, address: Address, markdown: str) -> None:
        self.maybe_refuse("post")
        self.texts.append((address, markdown))

    async def post_card(self, address: Address, card: Card) -> str:
        self.maybe_refuse("post_card")
        ref = f"{self.name}-{len(self.places) + 1}"
        self.cards[ref] = card
        self.places[ref] = address
        return ref

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:
        self.maybe_refuse("redraw_card")
        if ref not in self.cards:
            raise CopyGone
        self.cards[ref] = card

    async def post_file(self, address: Address, name: str, text: str) -> None:
        self.maybe_refuse("post_file")
        self.files.append((address, name, text))

    async def post_board(self, address: Address, board: Board) -> str:
        self.maybe_refuse("post_board")
        ref = f"{self.name}-board-{len(self.boards) + 1}"
        self.boards[ref] = board
        return ref

    async def redraw_board(self, address: Address, ref: str, board: Board) -> None:
        self.maybe_refuse("redraw_board")
        if ref not in self.boards:
            raise CopyGone
        self.boards[ref] = board

    async def changed(self) -> None:
        self.changes += 1

    def maybe_refuse(self, what: str) -> None:
        if error := self.refusals.get(what):
            raise error

    @property
    def shown(self) -> str:
        """All that people can read there, in the order of streams and posts."""
        return "\n".join([*(s.text for s in self.streams), *(text for _, text in self.texts)])

    def card_of(self, proposal: Proposal) -> Card:
        """What its newest copy shows; one posted right before a crash may be there twice."""
        return [card for card in self.cards.values() if card.proposal_id == proposal.id][-1]


# --- a world with tools


@dataclass(frozen=True)
class Run:
    """A tool that changed the world, with what it was given."""

    tool: str
    arguments: Mapping[str, Any]
    key: str


@dataclass
class World:
    """What tools change. It is outside: a crash of Nod does not touch it."""

    lamps: dict[str, str] = field(default_factory=lambda: {"desk": "white", "door": "white", "roof": "white"})
    paid: dict[str, int] = field(default_factory=dict)  # by idempotency key
    runs: list[Run] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    before: dict[str, Hold] = field(default_factory=dict)  # by tool name: before it changes anything
    after: dict[str, Hold] = field(default_factory=dict)  # after that, before it answers
    broken: Exception | None = None  # what the next runs raise

    @contextlib.asynccontextmanager
    async def running(self, name: str, context: CallContext, /, **arguments: Any) -> AsyncIterator[None]:
        if hold := self.before.get(name):
            await hold.wait()
        self.runs.append(Run(name, arguments, context.idempotency_key))
        if self.broken:
            raise self.broken
        yield
        if hold := self.after.get(name):
            await hold.wait()

    def lamp(self, name: str) -> str:
        if name not in self.lamps:
            raise ToolError(f"There is no lamp {name}.")
        return self.lamps[name]

    def runs_of(self, proposal: Proposal) -> list[Run]:
        return [run for run in self.runs if run.key == proposal.idempotency_key]


Secret = Annotated[str, Field(json_schema_extra={"writeOnly": True})]


def lamp_tools(world: World, version: str = "1") -> FixedToolset:
    """Lamps to look at, paint and smash; a till; and tools that misbehave."""

    async def old_and_new(arguments: Mapping[str, Any]) -> list[PreviewField]:
        return [PreviewField(arguments["lamp"], world.lamp(arguments["lamp"]), arguments.get("color"))]

    @tool(writes=False)
    async def look(lamp: str) -> str:
        """Tell the color of a lamp."""
        world.reads.append(lamp)
        if hold := world.before.get("look"):
            await hold.wait()
        return world.lamp(lamp)

    @tool(summary="Paint lamp {lamp} {color}", preview=old_and_new, key=("lamp",), version=version)
    async def paint(lamp: str, color: str, context: CallContext, coats: int = 1) -> ToolOutput:
        """Paint a lamp."""
        async with world.running("paint", context, lamp=lamp, color=color, coats=coats):
            world.lamps[lamp] = color
        return ToolOutput(f"{lamp} is {color}", f"https://lamps.example/{lamp}")

    @tool(destructive=True, summary="Smash lamp {lamp}", preview=old_and_new)
    async def smash(lamp: str, context: CallContext) -> str:
        """Smash a lamp."""
        async with world.running("smash", context, lamp=lamp):
            del world.lamps[lamp]
        return f"{lamp} is gone"

    @tool(idempotent=True)
    async def pay(amount: int, context: CallContext) -> str:
        """Pay, once for each key."""
        async with world.running("pay", context, amount=amount):
            world.paid.setdefault(context.idempotency_key, amount)
        return f"paid {amount}"

    @tool()
    async def trip(context: CallContext) -> str:
        """Raise what no tool should raise."""
        async with world.running("trip", context):
            raise RuntimeError("secret detail of the inside")

    @tool(timeout=0.01)
    async def hang(context: CallContext) -> str:
        """Never answer."""
        async with world.running("hang", context):
            await asyncio.Event().wait()
        return "never"

    @tool()
    async def vanish(context: CallContext) -> str:
        """Cancel itself, as clients with cancel scopes of their own do."""
        async with world.running("vanish", context):
            raise asyncio.CancelledError

    @tool()
    async def enroll(
        name: str, code: Secret, context: CallContext, extra: dict[str, str] | None = None
    ) -> str:
        """Take a secret."""
        async with world.running("enroll", context, name=name, code=code, extra=extra):
            pass
        return f"{name} is in"

    @tool(writes=False, timeout=0.01)
    async def stare() -> str:
        """Read for ever."""
        await asyncio.Event().wait()
        return "never"

    return FixedToolset("lamps", (look, paint, smash, pay, trip, hang, vanish, enroll, stare))


# --- the whole


class Valve:
    """Implements `Dispatcher` before the real one: while shut, what is woken only waits to be looked at."""

    def __init__(self, real: EmbeddedDispatcher) -> None:
        self.real = real
        self.shut = False
        self.held: list[Job] = []

    async def wake(self, *jobs: Job) -> None:
        if self.shut:
            self.held.extend(jobs)
        else:
            await self.real.wake(*jobs)

    async def stop_turn(self, conversation_id: str) -> None:
        await self.real.stop_turn(conversation_id)


class FusedDatabase(Database):
    """The real one, in a process that dies at a chosen write: before its commit, or right after it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.writes = 0
        self.fuse: int | None = None  # die at this write, counted from 1
        self.dies_after_commit = False
        self.dead = asyncio.Event()

    async def write(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._fused(super().write, function, *args, **kwargs)

    async def write_aside(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._fused(super().write_aside, function, *args, **kwargs)

    async def _fused(
        self, write: Callable[..., Any], function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        self.writes += 1
        dying = self.writes == self.fuse
        if dying and not self.dies_after_commit:
            self.dead.set()
        if self.dead.is_set():
            await asyncio.Event().wait()
        value = await write(function, *args, **kwargs)
        if dying:
            self.dead.set()
            await asyncio.Event().wait()  # whoever asked never hears of it
        return value


AnyNod = TypeVar("AnyNod", bound="Nod")


@contextlib.asynccontextmanager
async def cores(
    kind: Callable[..., AnyNod], folder: Path, clock: FakeClock
) -> AsyncIterator[Callable[..., AnyNod]]:
    """A factory of cores, each over a file of its own; the rules that always hold are checked at the end."""
    made: list[AnyNod] = []

    def make(**parts: Any) -> AnyNod:
        made.append(kind(f"sqlite:///{folder / f'{len(made)}.db'}", clock, **parts))
        return made[-1]

    yield make
    for nod in made:
        await nod.check()
        await nod.close()


class Nod:
    """The core over one database, with people to say and press things."""

    def __init__(
        self,
        url: str,
        clock: FakeClock,
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        channels: Sequence[RecordingChannel] | None = None,
        routes: Sequence[Address] = (),
        admins: Sequence[Actor] = (),
        team: bool = False,
    ) -> None:
        self.url = url
        self.with_team = team
        self.clock = clock
        self.policy = policy or Policy()
        self.limits = limits or Limits()
        self.model = ScriptedModel()
        self.world = World()
        self.toolset = lamp_tools(self.world)
        self.channels = {c.name: c for c in channels or (RecordingChannel(),)}
        self.routes = routes
        self.admins = admins
        self._events = count(1)
        self._build()
        SQLModel.metadata.create_all(self.database.engine)

    @property
    def chat(self) -> RecordingChannel:
        return self.channels["chat"]

    def _build(self) -> None:
        clock = self.clock
        self.database = FusedDatabase(self.url)
        self.dispatcher = EmbeddedDispatcher()
        self.valve = Valve(self.dispatcher)
        accounts = frozenset(str(admin) for admin in self.admins)
        policies = Policies(replace(self.policy, admins=self.policy.admins | accounts))
        team = [team_tools(policies, self.limits.team)] if self.with_team else []
        registry = Registry([self.toolset, *team])
        self.delivery = Delivery(
            self.channels, registry, self.database, policies, clock, Bell(), routes=self.routes
        )
        self.gate = gate = Gate(registry, policies, self.database, clock)
        loop = Loop(self.model, gate, self.database, clock, self.limits)
        boards = Boards(self.channels, self.database)
        presses = Presses(self.database, gate, clock)
        self.assistant = Assistant(
            self.database, gate, presses, loop, self.delivery, boards, self.valve, clock
        )
        self.desk = CoreDesk(self.database, self.delivery, presses, policies)
        self.dispatcher.start(self.assistant.run)

    # people

    async def say(
        self,
        text: str = "please",
        *,
        by: Actor = ANA,
        at: Address = ROOM,
        event: str | None = None,
        private: bool = True,
    ) -> Reply:
        event = event or f"event-{next(self._events)}"
        return await self.assistant.handle(Message(at, by, text, event, private=private))

    async def press(
        self,
        verb: Verb,
        proposal: Proposal,
        *,
        by: Actor = ANA,
        round_shown: int | None = None,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        digest: str | None = None,
        at: Address | None = None,
        rung: Rung | None = None,
        lasting: Lasting | None = None,
    ) -> Reply:
        return await self.assistant.handle(
            Press(by, verb, proposal.id, round_shown, reason, arguments, digest, at, rung, lasting)
        )

    async def command(self, text: str, *, by: Actor = ANA, at: Address = ROOM) -> Reply:
        """``/nod status`` as a person types it."""
        name, _, rest = text.removeprefix("/").partition(" ")
        return await self.assistant.handle(Command(by, name, rest, at))

    async def asked(
        self,
        *calls: ToolCall,
        text: str = "please",
        by: Actor = ANA,
        at: Address = ROOM,
        private: bool = True,
    ) -> list[Proposal]:
        """A person asks, the model answers with these calls; gives what was proposed."""
        before = {p.id for p in await self.proposals()}
        self.model.will(says("I will.", *calls))
        await self.say(text, by=by, at=at, private=private)
        await self.idle()
        return [p for p in await self.proposals() if p.id not in before]

    async def approve(self, proposal: Proposal, *, by: Actor = ANA) -> Proposal:
        """Press Approve and let everything happen."""
        await self.press(Verb.APPROVE, proposal, by=by)
        await self.idle()
        return await self.now(proposal)

    # time

    async def idle(self) -> None:
        await self.dispatcher.idle()

    async def tick(self, passed: timedelta = timedelta()) -> None:
        """Time passes and the scheduler's sweeps run."""
        self.clock.forward(passed)
        await self.assistant.expire_due(self.clock())
        await self.assistant.remind(self.clock())
        await self.assistant.recover(self.clock())
        await self.idle()

    async def close(self) -> None:
        await self.dispatcher.close(0)
        self.database.close()

    async def restart(self) -> None:
        """Down in good order, and up again."""
        await self.close()
        await self._up()

    async def crash(self, *, wait: bool = True) -> None:
        """Dead at once: what runs gets to do nothing more. And up again; ``wait`` until it is idle."""
        tasks = list(self.dispatcher._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.database.close()
        await self._up(wait=wait)

    async def dies_in(self, story: Coroutine[Any, Any, None], fuse: int, *, after_commit: bool) -> None:
        """Tell a story until it ends or the process dies at its ``fuse``-th write; then be up again."""
        self.database.fuse, self.database.dies_after_commit = fuse, after_commit
        telling = asyncio.create_task(story)
        death = asyncio.create_task(self.database.dead.wait())
        await asyncio.wait((telling, death), return_when=asyncio.FIRST_COMPLETED)
        telling.cancel()
        death.cancel()
        await asyncio.gather(telling, death, return_exceptions=True)
        await self.crash()

    async def _up(self, *, wait: bool = True) -> None:
        self._build()
        await self.assistant.take_over(self.clock())
        await self.assistant.expire_due(self.clock())
        await self.assistant.recover(self.clock(), starting=True)
        if wait:
            await self.idle()

    # looking

    async def proposals(self) -> list[Proposal]:
        """All there are, in the order they were asked for."""
        found = await self.database.read(proposals.in_states, list(State), 10_000)
        return sorted(found, key=lambda p: (p.message_id, p.position))

    async def now(self, proposal: Proposal) -> Proposal:
        found = await self.database.read(proposals.get, proposal.id)
        assert found is not None
        return found

    async def transcript(self, at: Address = ROOM) -> Transcript:
        conversation = await self.database.read(conversations.open_conversation, at)
        assert conversation is not None
        found = await self.database.read(conversations.read_transcript, conversation.id)
        assert found is not None
        return found

    async def said(self, at: Address = ROOM) -> list[str]:
        """The texts of a conversation's lines, in reading order."""
        return [line.text for line in (await self.transcript(at)).lines]

    async def check(self) -> None:
        """What must hold at any time: valid histories, whole audit chains, legal moves, no run unapproved."""
        assert self.model.faults == []
        for proposal in await self.proposals():
            assert await self.database.read(audit.first_break, proposal.id) is None
            history = await self.database.read(audit.history, proposal.id)
            for before, after in pairwise(history):
                moved = after.state != before.state
                assert not moved or State(after.state) in TRANSITIONS[State(before.state)], history
            claims = sum(1 for entry in history if entry.by.verb == "execute")
            assert len(self.world.runs_of(proposal)) <= claims
