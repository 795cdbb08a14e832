"""The real Nod with a scripted model and tools that note what they did; a channel's driver is put on top."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from bot.app import App, build
from bot.channels.base import Channel
from bot.domain.chat import Clock
from bot.domain.model import (
    AssistantText,
    Entry,
    Finished,
    Part,
    Stop,
    SystemText,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from bot.errors import ModelError
from bot.settings import Settings
from bot.store import migrations
from bot.store.database import Database
from bot.testing.control import FakeClock, Hold
from bot.testing.notebook import notebook
from bot.tools.mcp.base import Question
from bot.tools.tool import CallContext, FixedToolset, tool

PATIENCE = 10.0


@dataclass(frozen=True)
class Says:
    """One answer of the model: words, then calls by tool name and arguments."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    hold: Hold | None = None  # where it waits before its first word
    fails: bool = False  # gives no answer after these words


class ScriptedModel:
    """Gives the answers it was told, then "Noted."; keeps every transcript it saw."""

    name = "scripted"

    def __init__(self) -> None:
        self.answers: deque[Says] = deque()
        self.of_teammates: dict[str, deque[Says]] = {}  # by name
        self.seen: list[Sequence[Entry]] = []
        self._ids = 0

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        self.seen.append(tuple(transcript))
        answers = next((a for n, a in self.of_teammates.items() if _is(n, transcript)), self.answers)
        says = answers.popleft() if answers else Says("Noted.")
        if says.hold is not None:
            await says.hold.wait()
        for word in says.text.split(" "):
            yield Text(f"{word} ")
        if says.fails:
            raise ModelError
        calls = []
        for name, arguments in says.calls:
            self._ids += 1
            calls.append(ToolCall(f"call-{self._ids}", name, json.dumps(arguments)))
        yield Finished(Stop.FINISHED, tuple(calls))

    async def close(self) -> None: ...

    def was_told(self) -> str:
        """Everything the last transcript says after the model's own calls."""
        parts = [e.text for e in self.seen[-1] if not isinstance(e, AssistantText)]
        return "\n".join(parts)

    def results(self) -> list[str]:
        return [e.text for e in self.seen[-1] if isinstance(e, ToolResult)]


def _is(name: str, transcript: Sequence[Entry]) -> bool:
    """Tell if a transcript is that of the teammate with this name."""
    return isinstance(transcript[0], SystemText) and f"\nYour name: {name}\n" in transcript[0].text


def _upgrade(url: str) -> None:
    database = Database(url)
    try:
        migrations.upgrade(database.engine)
    finally:
        database.close()


@dataclass
class World:
    """One database, one script, one notebook; ``start`` and ``restart`` run Nod over them.

    ``app`` is the process that people reach.
    """

    settings: Callable[[], Settings]
    add_channel: Callable[[App], Channel | None]
    clock: Clock = field(default_factory=FakeClock)
    prepare: Callable[[str], None] = _upgrade  # makes the tables of a new database, given its URL
    elsewhere: bool = False  # another process does the work (PostgreSQL)
    model: ScriptedModel = field(default_factory=ScriptedModel)
    notes: list[str] = field(default_factory=list)
    trial: Hold | None = None  # where a trial waits
    _stack: AsyncExitStack | None = None
    _app: App | None = None
    _worker: App | None = None

    @property
    def app(self) -> App:
        assert self._app is not None
        return self._app

    def asking(self) -> FixedToolset:
        @tool(writes=False)
        async def inquire(context: CallContext) -> str:
            """Ask the person a question back, as an MCP server may in the middle of a call."""
            schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
            question = Question(
                "lamps",
                "Which color?",
                context.conversation_id,
                context.requested_by,
                schema,
                agent=context.agent,
            )
            assert self._worker is not None
            answer = await self._worker.questions.ask(question)
            return f"{answer.action}: {answer.content.get('color', 'nothing')}"

        @tool(writes=True)
        async def paint_as_asked(context: CallContext) -> str:
            """Paint it in the color that the person is asked for."""
            assert inquire.run is not None
            return str(await inquire.run({}, context))

        return FixedToolset("asking", (inquire, paint_as_asked))

    @cached_property
    def _settings(self) -> Settings:
        return self.settings()

    async def start(self) -> None:
        self.prepare(self._settings.database_url)
        await self._start()

    async def _start(self) -> None:
        self._stack = AsyncExitStack()
        self._app = self._build(works=not self.elsewhere)
        self._worker = self._build(receives=False) if self.elsewhere else self._app
        await self._stack.enter_async_context(self._app.running(ticking=False))
        if self.elsewhere:
            await self._stack.enter_async_context(self._worker.running())

    def _build(self, **how: bool) -> App:
        toolsets = [notebook(self.notes, self._in_trial), self.asking()]
        app = build(self._settings, model=self.model, toolsets=toolsets, clock=self.clock, **how)
        channel = self.add_channel(app)
        if channel is not None:
            app.channels[channel.name] = channel
        return app

    async def _in_trial(self) -> None:
        if self.trial is not None:
            await self.trial.wait()

    async def stop(self) -> None:
        if self._stack is not None:
            await self._stack.aclose()
            self._stack = self._app = self._worker = None

    async def restart(self) -> None:
        await self.stop()
        await self._start()

    async def let_pass(self, time: timedelta) -> None:
        """When all that is under way has ended, move the clock and do what the scheduler does then."""
        assert isinstance(self.clock, FakeClock), "time passes only by a clock that a test moves"
        await self.app.dispatcher.idle()
        self.clock.forward(time)
        await self.app.core.recovery.expire_due(self.clock())
        await self.app.core.recovery.retry(self.clock())
        for sweep in self.app.sweeps:
            await sweep.run(self.clock())
        await self.app.core.recovery.recover(self.clock())

    def script_teammate(self, name: str, *answers: Says) -> None:
        self.model.of_teammates.setdefault(name, deque()).extend(answers)

    def script(self, *answers: Says) -> None:
        self.model.answers.extend(answers)


async def eventually(true: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Wait until something is so; what it gave is returned."""
    try:
        async with asyncio.timeout(patience):
            while not (found := true()):  # noqa: ASYNC110 - the fakes of all channels are asked alike
                await asyncio.sleep(0.01)
            return found
    except TimeoutError:
        raise AssertionError(f"never came: {what}") from None
