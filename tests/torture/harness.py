"""Nods as processes, people as clients, and someone who kills processes all the time."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import httpx
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from bot.agent.transcript import REASON
from tests.fakes.openai_server import OpenAIServer, Reply, ask, say
from tests.torture import checker

_TOKEN = "torture-token-of-ana"
_PATIENCE = 120.0  # seconds; nothing may take longer
_RETRY = 0.1  # seconds between tries of a client whose process was killed


@dataclass
class Figures:
    messages: int = 0
    kills: int = 0
    presses: int = 0
    parked: list[float] = field(default_factory=list)  # seconds from a message to its card
    ended: list[float] = field(default_factory=list)  # from a press to the end of the change
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.messages} messages, {self.presses} presses, {self.kills} kills; "
            f"message to card {_spread(self.parked)}, press to end {_spread(self.ended)}; "
            f"{len(self.faults)} faults"
        )


def _spread(seconds: list[float]) -> str:
    in_order = sorted(seconds) or [0.0]
    p50, p99 = (in_order[min(len(in_order) - 1, int(len(in_order) * part))] for part in (0.5, 0.99))
    return f"p50 {p50:.2f} s, p99 {p99:.2f} s, longest {in_order[-1]:.2f} s"


def script(body: dict[str, Any]) -> Reply:
    last = body["messages"][-1]
    words = str(last.get("content") or "")
    if last["role"] == "user" and words.startswith("mark "):
        return ask(("mark", {"text": words.removeprefix("mark "), REASON: "They asked."}))
    return say("Done.")


class Torture:
    def __init__(self, url: str, folder: Path, model_url: str, processes: int, seed: int) -> None:
        self.url = url
        self.figures = Figures()
        self._folder = folder
        self._model_url = model_url
        self._random = random.Random(seed)
        self._ports = [_free_port() for _ in range(processes)]
        self._running: dict[int, asyncio.subprocess.Process] = {}  # by port
        self._told: dict[str, list[str]] = defaultdict(list)
        self._accepted: list[str] = []
        self._engine = create_engine(url)
        self._client = httpx.AsyncClient(headers={"Authorization": f"Bearer {_TOKEN}"}, timeout=30)

    async def __aenter__(self) -> Self:
        for port in self._ports:
            await self._start(port)
        await self._all_ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self._running.values():
            await process.wait()
        self._engine.dispose()

    async def run(self, *, kills: int, people: int, pause: tuple[float, float]) -> Figures:
        """Let people write and press until so many processes were killed; then look what is left."""
        over = asyncio.Event()
        at_it = [asyncio.create_task(self._person(n, over)) for n in range(people)]
        for _ in range(kills):
            await asyncio.sleep(self._random.uniform(*pause))
            await self._kill(await self._one_of_those_that_are_ready())
            for task in at_it:
                if task.done():
                    task.result()  # raises what went wrong
        over.set()
        await self._all_ready()
        await asyncio.gather(*at_it)
        await self._quiet()
        self.figures.faults = checker.faults(self.url, self._effects, self._told, self._accepted)
        return self.figures

    @property
    def _effects(self) -> Path:
        return self._folder / "effects.log"

    async def _start(self, port: int) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(["", *sys.path]),
            "HOME": str(self._folder),
            "NOD_DATABASE_URL": self.url,
            "NOD_PORT": str(port),
            "NOD_HTTP_TOKENS": f"ana:{_TOKEN}",
            "NOD_ADMINS": "http:ana",
            "NOD_TOOLS": "tests.torture.tools",
            "OPENAI_API_KEY": "test-key",
            "OPENAI_BASE_URL": self._model_url,
            "NOD_LOG_LEVEL": "warning",
            "TORTURE_EFFECTS": str(self._effects),
        }
        with (self._folder / f"nod-{port}.log").open("ab") as log:
            self._running[port] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot.cli.main", "-q", "run"),
                cwd=self._folder,
                env=environment,
                stdout=log,
                stderr=log,
            )

    async def _kill(self, port: int) -> None:
        process = self._running[port]
        self._check_alive(port)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        self.figures.kills += 1
        await self._start(port)

    async def _one_of_those_that_are_ready(self) -> int:
        """So that of several at least one other is at work, or this one is up again after the last kill."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                ready = [port for port in self._ports if await self._ready(port)]
                if len(ready) > 1 or ready == self._ports:
                    return self._random.choice(ready)
                await asyncio.sleep(_RETRY)

    async def _all_ready(self) -> None:
        for port in self._ports:
            async with asyncio.timeout(_PATIENCE):
                while not await self._ready(port):
                    self._check_alive(port)
                    await asyncio.sleep(_RETRY)

    def _check_alive(self, port: int) -> None:
        if self._running[port].returncode is not None:
            log = (self._folder / f"nod-{port}.log").read_text()
            raise AssertionError(f"a process ended by itself: {log[-2000:]}")

    async def _ready(self, port: int) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return (await self._client.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
        return False

    async def _person(self, number: int, over: asyncio.Event) -> None:
        dice = random.Random(self._random.random())
        said = 0
        while not over.is_set():
            said += 1
            await self._one(f"{number}-{said}", dice)

    async def _one(self, name: str, dice: random.Random) -> None:
        """A person asks for a mark, and presses its card in two places at the same moment."""
        began = time.monotonic()
        await self._say(name, dice)
        self.figures.messages += 1
        self._accepted.append(f"mark {name}")
        ident = await self._until(
            "SELECT p.id FROM proposal AS p JOIN message AS m ON p.conversation_id = m.conversation_id "
            "WHERE m.text = :text",
            text=f"mark {name}",
        )
        self.figures.parked.append(time.monotonic() - began)
        verb = "approve" if dice.random() < 0.85 else "decline"
        began = time.monotonic()
        answers = await asyncio.gather(*(self._press(ident, verb, dice) for _ in range(2)))
        self._told[ident] += answers
        self.figures.presses += len(answers)
        await self._until(
            "SELECT state FROM proposal "
            "WHERE id = :ident AND state NOT IN ('proposed', 'approved', 'executing')",
            ident=ident,
        )
        self.figures.ended.append(time.monotonic() - began)

    async def _say(self, name: str, dice: random.Random) -> None:
        async def once(url: str) -> str:
            body, once = {"message": f"mark {name}"}, {"Idempotency-Key": name}
            async with self._client.stream("POST", url, json=body, headers=once) as answer:
                if answer.status_code == HTTPStatus.CONFLICT:
                    return "before"
                if answer.status_code == HTTPStatus.OK:
                    async for line in answer.aiter_lines():
                        return line  # it was accepted; the rest is in the rows
            return ""

        await self._insist(dice, "/api/chat", once)

    async def _press(self, ident: str, verb: str, dice: random.Random) -> str:
        async def once(url: str) -> str:
            answer = await self._client.post(url, json={})
            decided = answer.status_code in (HTTPStatus.OK, HTTPStatus.CONFLICT)
            return str(answer.json().get("answer", "stale")) if decided else ""

        return await self._insist(dice, f"/api/proposals/{ident}/{verb}", once)

    async def _insist(self, dice: random.Random, path: str, once: Callable[[str], Awaitable[str]]) -> str:
        """Ask one process after the other until one answers: those that are killed break off."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(httpx.HTTPError):
                if answer := await once(f"http://127.0.0.1:{dice.choice(self._ports)}{path}"):
                    return answer
            await asyncio.sleep(_RETRY)
        raise AssertionError(f"{path} was not answered in {_PATIENCE:.0f} s")

    async def _until(self, query: str, **values: str) -> str:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if found := await asyncio.to_thread(self._look, query, values):
                return str(found)
            await asyncio.sleep(_RETRY)
        raise AssertionError(f"{values} did not happen in {_PATIENCE:.0f} s")

    def _look(self, query: str, values: dict[str, str]) -> Any:
        with contextlib.suppress(DBAPIError), self._engine.connect() as connection:
            return connection.execute(text(query), values).scalar()
        return None

    async def _quiet(self) -> None:
        await self._until(
            "SELECT 'quiet' WHERE NOT EXISTS (SELECT 1 FROM turn WHERE state = 'wanted') AND NOT EXISTS "
            "(SELECT 1 FROM proposal WHERE state IN ('approved', 'executing'))"
        )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def torture(
    url: str,
    folder: Path,
    *,
    processes: int,
    kills: int,
    seed: int,
    people: int = 4,
    pause: tuple[float, float] = (0.5, 3.0),
) -> Figures:
    """One run on an empty database."""
    async with (
        OpenAIServer(script=script) as model,
        Torture(url, folder, model.url, processes, seed) as at_it,
    ):
        return await at_it.run(kills=kills, people=people, pause=pause)
