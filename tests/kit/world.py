"""A small world of lamps, and tools that change it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any

from pydantic import Field

from bot.domain.preview import PreviewField
from bot.domain.proposals import Proposal
from bot.errors import ToolError
from bot.testing.control import Hold
from bot.tools.call import CallContext, ToolOutput
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset

_call_ids = count(1)


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
        return f"{name} is in, with {code}"

    @tool(writes=False, timeout=0.01)
    async def stare() -> str:
        """Read permanently."""
        await asyncio.Event().wait()
        return "never"

    return FixedToolset("lamps", (look, paint, smash, pay, trip, hang, vanish, enroll, stare))
