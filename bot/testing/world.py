"""A real Nod for tests, with a model that says what the test has scripted, and tools that write down notes.

`World` runs Nod on a database, and can restart it. A test scripts the model's answers as `Says`, acts through
the driver of a channel (`driver.py`), and then looks at the notes (`notebook.py`) and at what the model was
told.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from bot.app.app import App
from bot.app.assembly import build
from bot.channels.base import Channel
from bot.domain.chat import Clock
from bot.domain.model import (
    AssistantText,
    Entry,
    Finished,
    Part,
    StopReason,
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
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.tools.mcp.interface import Question
from bot.tools.toolset import FixedToolset

PATIENCE = 10.0
"""The seconds for which `eventually` waits."""


@dataclass(frozen=True)
class Says:
    """One scripted answer of the model: a text, then calls of tools."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()  # each by the tool's name and the arguments
    hold: Hold | None = None  # the model waits before its first word until the test releases this
    fails: bool = False  # the model fails after these words, and makes no calls


class ScriptedModel:
    """A model that gives the scripted answers in order, and then "Noted.". It keeps all transcripts."""

    name = "scripted"

    def __init__(self) -> None:
        self.answers: deque[Says] = deque()
        self.of_teammates: dict[str, deque[Says]] = {}  # the answers as a teammate, by the teammate's name
        self.seen: list[Sequence[Entry]] = []  # the transcripts, one for each call of the model
        self._ids = 0

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        self.seen.append(tuple(transcript))
        answers = self._choose_answers(transcript)
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
        yield Finished(StopReason.FINISHED, tuple(calls))

    async def close(self) -> None: ...

    def was_told(self) -> str:
        """Return all texts of the last transcript but those of the model itself."""
        return "\n".join(entry.text for entry in self.seen[-1] if not isinstance(entry, AssistantText))

    def results(self) -> list[str]:
        """Return the results of tools in the last transcript."""
        return [entry.text for entry in self.seen[-1] if isinstance(entry, ToolResult)]

    def _choose_answers(self, transcript: Sequence[Entry]) -> deque[Says]:
        """Return the answers of the teammate whose transcript this is, else those of the lead agent."""
        for name, answers in self.of_teammates.items():
            if _is_of_teammate(name, transcript):
                return answers
        return self.answers


def _is_of_teammate(name: str, transcript: Sequence[Entry]) -> bool:
    return isinstance(transcript[0], SystemText) and f"\nYour name: {name}\n" in transcript[0].text


def _upgrade(url: str) -> None:
    """Make the tables of the database at ``url``."""
    database = Database(url)
    try:
        migrations.upgrade(database.engine)
    finally:
        database.close()


@dataclass
class World:
    """A Nod over one database, one script and one list of notes; `start` and `restart` run it."""

    settings: Callable[[], Settings]
    add_channel: Callable[[App], Channel | None]  # makes the channel under test, unless Nod has it already
    clock: Clock = field(default_factory=FakeClock)
    prepare: Callable[[str], None] = _upgrade  # makes the tables of a new database, given its URL
    elsewhere: bool = False  # a second App works, like a worker process; `app` only receives (PostgreSQL)
    model: ScriptedModel = field(default_factory=ScriptedModel)
    notes: list[str] = field(default_factory=list)
    trial: Hold | None = None  # a trial of the tool `tidy` waits until the test releases this
    _stack: AsyncExitStack | None = None
    _app: App | None = None
    _worker: App | None = None  # the App that does the work: `app`, unless ``elsewhere``

    @property
    def app(self) -> App:
        """The App that people reach. It must have been started."""
        assert self._app is not None
        return self._app

    def asking(self) -> FixedToolset:
        """Return tools that ask the person a question in the middle of a call."""

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
        """Make the tables, and start Nod."""
        self.prepare(self._settings.database_url)
        await self._start()

    async def _start(self) -> None:
        self._stack = AsyncExitStack()
        self._app = self._build(works=not self.elsewhere)
        self._worker = self._build(receives=False) if self.elsewhere else self._app
        await self._stack.enter_async_context(self._app.running(ticking=False))
        if self.elsewhere:
            await self._stack.enter_async_context(self._worker.running())

    def _build(self, **roles: bool) -> App:
        """Return an App, which stands for a process. ``roles``: ``works`` and ``receives`` of `build`."""
        toolsets = [notebook(self.notes, self._wait_in_trial), self.asking()]
        app = build(self._settings, model=self.model, toolsets=toolsets, clock=self.clock, **roles)
        channel = self.add_channel(app)
        if channel is not None:
            app.channels[channel.name] = channel
        return app

    async def _wait_in_trial(self) -> None:
        if self.trial is not None:
            await self.trial.wait()

    async def stop(self) -> None:
        """Stop Nod, if it runs."""
        if self._stack is not None:
            await self._stack.aclose()
            self._stack = None
            self._app = None
            self._worker = None

    async def restart(self) -> None:
        """Stop Nod, and start it again over the same database."""
        await self.stop()
        await self._start()

    async def let_pass(self, time: timedelta) -> None:
        """Wait for the work under way, move the clock, and run the jobs of the scheduler once."""
        assert isinstance(self.clock, FakeClock), "time passes only by a clock that a test moves"
        await self.app.dispatcher.wait_until_idle()
        self.clock.forward(time)
        await self.app.core.recovery.expire_due(self.clock())
        await self.app.core.recovery.retry_refused_posts(self.clock())
        for sweep in self.app.sweeps:
            await sweep.run(self.clock())
        await self.app.core.recovery.recover(self.clock())

    def script_teammate(self, name: str, *answers: Says) -> None:
        """Have the model give these answers, after earlier ones, as a teammate."""
        self.model.of_teammates.setdefault(name, deque()).extend(answers)

    def script(self, *answers: Says) -> None:
        """Have the model give these answers, after earlier ones, as the lead agent."""
        self.model.answers.extend(answers)


async def eventually(true: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Wait until ``true()`` returns a true value, and return that value.

    Raises AssertionError after ``patience`` seconds. ``what`` names what is awaited, for the error.
    """
    try:
        async with asyncio.timeout(patience):
            while not (value := true()):  # noqa: ASYNC110 - the fakes of all channels are asked alike
                await asyncio.sleep(0.01)
            return value
    except TimeoutError:
        raise AssertionError(f"never came: {what}") from None
