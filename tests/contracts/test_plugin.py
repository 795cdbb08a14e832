"""The contract in the channel of docs/plugins.md, as another package would run it."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bot.app.app import App
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.errors import ChannelError, NotDeliverable
from bot.settings import Settings
from bot.testing.contract import Contract
from bot.testing.driver import SeenCard
from bot.testing.world import World, eventually
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]


def channel(app: App) -> Any:
    """The channel of the page, over a place that can refuse."""
    module = ModuleType("nod_lines")
    exec(compile(CODE, "nod_lines.py", "exec"), vars(module))  # noqa: S102 - the page's own code

    class Place(module.Lines):  # type: ignore[name-defined,misc]
        refuses_cards = False
        failing_redraws = 0

        async def post_card(self, address: Any, card: Any) -> str:
            if self.refuses_cards:
                raise NotDeliverable("the room is closed")
            return str(await super().post_card(address, card))

        async def redraw_card(self, address: Any, ref: str, card: Any) -> str:
            if self.failing_redraws and "Done" in card.outcome:
                self.failing_redraws -= 1
                raise ChannelError("the room is full")
            return str(await super().redraw_card(address, ref, card))

    return Place(app.settings, app.database, app.clock)


class LinesDriver:
    """Three people with a connection each."""

    ben = "lines:ben"

    def __init__(self, world: World, port: int) -> None:
        self.world = world
        self._port = port
        self._seen: dict[str, dict[str, Any]] = {}
        self._texts: list[str] = []
        self._files: list[str] = []
        self._board = ""
        self._told: dict[str, list[str]] = {"ana": [], "ben": [], "eve": []}
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self) -> None:
        await self.close()
        self._tasks = []
        for who in self._told:
            reader, self._writers[who] = await asyncio.open_connection("127.0.0.1", self._port)
            self._tasks.append(asyncio.create_task(self._read(who, reader)))

    async def close(self) -> None:
        for writer in self._writers.values():
            writer.close()
            await writer.wait_closed()
        for task in self._tasks:
            task.cancel()
        self._writers = {}

    async def _read(self, who: str, reader: asyncio.StreamReader) -> None:
        async for line in reader:
            match json.loads(line):
                case {"told": told}:
                    self._told[who].append(told)
                case _ if who != "ana":
                    pass  # everyone in the room sees the same
                case {"card": _, "ref": ref} as card:
                    self._seen[ref] = card
                case {"team": board}:
                    self._board = board
                case {"file": text}:
                    self._files.append(text)
                case {"text": text} if text:
                    self._texts.append(text)

    async def _send(self, who: str, **line: Any) -> None:
        if not self.world.app.channels["lines"].writers:  # type: ignore[attr-defined]
            await self.connect()  # Nod was restarted
            await eventually(lambda: len(self.world.app.channels["lines"].writers) == 3, "three people")  # type: ignore[attr-defined]
        self._writers[who].write(json.dumps({"who": who, **line}).encode() + b"\n")
        await self._writers[who].drain()

    async def _answer(self, who: str, **line: Any) -> str:
        before = len(self._told[who])
        await self._send(who, **line)
        await eventually(lambda: self._told[who][before:], f"an answer to {line}")
        return self._told[who].pop()

    async def say(self, text: str) -> None:
        await self._send("ana", say=text)

    def cards(self) -> Sequence[SeenCard]:
        return [SeenCard(c["card"], tuple(map(Verb, c["verbs"])), c) for c in self._seen.values()]

    def texts(self) -> Sequence[str]:
        return self._texts

    def files(self) -> Sequence[str]:
        return self._files

    def told(self, *, eve: bool = False) -> Sequence[str]:
        return self._told["eve" if eve else "ana"]

    async def _press(self, card: dict[str, Any], verb: Verb, who: str, **more: Any) -> None:
        seen = card["rounds"][verb in (Verb.APPROVE_ALL, Verb.DECLINE_ALL)]
        await self._send(who, press=verb, id=card["id"], round=seen, **more)

    async def press(self, card: SeenCard, verb: Verb, *, eve: bool = False) -> None:
        now = self._seen[card.handle["ref"]]
        if verb not in now["verbs"]:
            raise LookupError(verb)
        await self._press(now, verb, "eve" if eve else "ana")

    async def press_remembered(self, card: SeenCard, verb: Verb) -> None:
        await self._press(card.handle, verb, "ana")

    async def ben_presses(self, card: SeenCard, verb: Verb) -> None:
        await self._press(self._seen[card.handle["ref"]], verb, "ben")

    async def read_all(self, card: SeenCard) -> str:
        return card.words

    def refuse_cards(self) -> None:
        self.world.app.channels["lines"].refuses_cards = True  # type: ignore[attr-defined]

    def fail_redraws(self, times: int) -> None:
        self.world.app.channels["lines"].failing_redraws = times  # type: ignore[attr-defined]

    async def approve_similar(self, card: SeenCard, rung: GrantScope, lasting: GrantDuration) -> str:
        offered = await self._answer("ana", ladder=card.handle["id"])
        if Verb.SIMILAR not in card.verbs or f"{rung}:" not in offered:
            raise LookupError(rung)
        await self._press(card.handle, Verb.SIMILAR, "ana", rung=rung, lasting=lasting)
        return offered

    async def write(self, card: SeenCard, verb: Verb, words: str) -> None:
        await self._press(card.handle, verb, "ana", reason=words)

    async def fill_in(self, card: SeenCard, name: str, text: str) -> None:
        await self._press(card.handle, Verb.EDIT, "ana", arguments={name: text})
        ref, before = card.handle["ref"], card.handle["rounds"]
        await eventually(lambda: self._seen[ref]["rounds"] != before, "the answer on the card")
        await self._press(self._seen[ref], Verb.APPROVE, "ana")

    def boards(self) -> Sequence[str]:
        return [self._board] if self._board else []

    async def command(self, line: str, *, eve: bool = False) -> str:
        return await self._answer("eve" if eve else "ana", command=line)


@pytest.fixture
async def driver(
    database_of: Urls, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LinesDriver]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("LINES_PORT", str(port))

    def settings() -> Settings:
        return Settings.load(
            NOD_DATABASE_URL=database_of("nod"),
            NOD_PORT=0,
            NOD_LOG_LEVEL="error",
            NOD_ADMINS="lines:ana",
            NOD_APPROVERS="lines:ben",
        )

    world = World(settings, channel, clock, make_tables)
    await world.start()
    made = LinesDriver(world, port)
    await made.connect()
    yield made
    await made.close()
    await world.stop()


class TestLines(Contract):
    """Every scenario of the contract."""
