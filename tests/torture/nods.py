"""Nods as processes that are killed all the time, and started again."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from tests.torture import points
from tests.torture.figures import Figures
from tests.torture.nursery import Nursery

TOKENS: Mapping[str, str] = {name: f"torture-token-of-{name}" for name in ("ana", "ben", "cleo")}
PATIENCE = 200.0  # seconds; nothing may take longer
PAUSE = 0.1  # seconds between looks


class Nods:
    """So many processes on one database. One that is killed starts again; one that ends itself is a fault."""

    def __init__(
        self,
        url: str,
        folder: Path,
        processes: int,
        environment: Mapping[str, str],
        dice: random.Random | None = None,
        nursery: Nursery | None = None,
    ) -> None:
        """``environment``: what else each is told. ``dice``: some die at a point, until `calm`.

        ``nursery``: where they are born, if it is open already.
        """
        self.url = url
        self.effects = folder / "effects.log"
        self.figures = Figures()
        self.ports = [free_port() for _ in range(processes)]
        self._folder = folder
        self._environment = environment
        self._dice = dice
        self._leaving: set[int] = set()  # ids of those that were asked to end
        self._nursery = nursery or Nursery()
        self._opens = nursery is None
        self._running: dict[int, int] = {}  # ids of processes, by port
        self._up: set[int] = set()  # ids of those that were ready
        self._ready_ports: set[int] = set()  # those that were when last asked
        self._watches: list[asyncio.Task[None]] = []
        self._looks: set[asyncio.Task[None]] = set()
        self._over = False
        self.rolling = False
        self.restarted = False  # whether the database was: a start may be refused while it is away
        self._engine = create_engine(url)
        self._client = httpx.AsyncClient(timeout=30)

    async def __aenter__(self) -> Self:
        if self._opens:
            await self._nursery.__aenter__()
        for port in self.ports:
            self._watches.append(asyncio.create_task(self._keep_up(port)))
        await self.all_ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        for pid in self._running.values():
            _send(pid, signal.SIGTERM)
        await asyncio.gather(*self._watches, return_exceptions=True)
        if self._opens:
            await self._nursery.__aexit__()
        for look in self._looks:
            look.cancel()
        await asyncio.gather(*self._looks, return_exceptions=True)
        await self._client.aclose()
        self._engine.dispose()

    def pid(self, port: int) -> int:
        """The process that has this port now."""
        return self._running[port]

    def log(self, port: int) -> str:
        """What the processes that had this port wrote."""
        path = self._folder / f"nod-{port}.log"
        return path.read_text() if path.exists() else ""

    def check(self) -> None:
        """Raise what went wrong with a process."""
        for watch in self._watches:
            if watch.done():
                watch.result()

    async def kill(self, dice: random.Random, pause: tuple[float, float]) -> None:
        """One that is ready, some time after of several at least one other is ready as well."""
        async with asyncio.timeout(PATIENCE):
            while len(await self._all_that_are_ready()) < min(2, len(self.ports)):
                self.check()
                await asyncio.sleep(PAUSE)
        await asyncio.sleep(dice.uniform(*pause))
        ready = [port for port in await self._all_that_are_ready() if port in self._running]
        if ready:
            _send(self._running[dice.choice(ready)], signal.SIGKILL)

    async def roll(self) -> None:
        """Each ends by SIGTERM and starts again, one after the other, while the others stay up."""
        self.rolling = True
        for port in self.ports:
            await self.all_ready()
            if (pid := self._running.get(port)) not in self._up:
                continue  # it was killed in this moment, and starts again
            self._leaving.add(pid)
            _send(pid, signal.SIGTERM)
            await self._nursery.end(pid)
        await self.all_ready()
        self.rolling = False
        self.figures.rolls += 1

    async def calm(self) -> None:
        """None that starts from now on kills itself; return once all are ready."""
        self._dice = None
        await self.all_ready()

    def _points(self) -> list[str]:
        """At which points processes killed themselves."""
        log = self.effects.with_name("points.log")
        return log.read_text().splitlines() if log.exists() else []

    async def _all_that_are_ready(self) -> list[int]:
        return [port for port in self.ports if await self._ready(port)]

    async def all_ready(self) -> None:
        for port in self.ports:
            async with asyncio.timeout(PATIENCE):
                while not await self._ready(port):
                    self.check()
                    await asyncio.sleep(PAUSE)

    async def until(self, query: str, **values: str) -> str:
        """What a query gives, once it gives something."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.check()
            if (found := await asyncio.to_thread(self._look, query, values)) and found[0]:
                return str(found[0])
            await asyncio.sleep(PAUSE)
        raise AssertionError(f"{values} did not happen in {PATIENCE:.0f} s: {query}")

    async def column(self, query: str, **values: str) -> list[str]:
        """What a query gives, line by line, once the database answers."""
        async with asyncio.timeout(PATIENCE):
            while (found := await asyncio.to_thread(self._look, query, values)) is None:  # noqa: ASYNC110 - a database rings no bell
                await asyncio.sleep(PAUSE)
            return [str(each) for each in found]

    def port(self, dice: random.Random) -> int:
        """Where someone turns to: anywhere, or in a rolling restart to one that said that it was ready."""
        ready = [port for port in self.ports if port in self._ready_ports] if self.rolling else []
        return dice.choice(ready or self.ports)

    async def _ready(self, port: int) -> bool:
        pid = self._running.get(port)
        if pid is not None and await self._says_so(port):
            self._up.add(pid)
            self._ready_ports.add(port)
            return True
        self._ready_ports.discard(port)
        return False

    async def _says_so(self, port: int) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return (await self._client.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
        return False

    async def _keep_up(self, port: int) -> None:
        while not self._over:
            before = self.log(port)
            pid = self._running[port] = await self._start(port)
            ended = await self._nursery.end(pid)
            del self._running[port]
            if ended == -signal.SIGKILL:
                self.figures.kills.append(time.time())
                self.figures.points = Counter(self._points())
                look = asyncio.create_task(self._taken_over(pid, time.monotonic()))
                self._looks.add(look)
                look.add_done_callback(self._looks.discard)
            elif pid in self._leaving:
                if ended:
                    raise AssertionError(f"a process that was asked to end did with {ended}")
            elif not self._over:
                log = self.log(port).removeprefix(before)
                if not self.restarted or "Nod is up" in log:
                    raise AssertionError(f"a process ended by itself with {ended}: {log[-2000:]}")

    async def _start(self, port: int) -> int:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "NOD_DATABASE_URL": self.url,
            "NOD_PORT": str(port),
            "NOD_HTTP_TOKENS": ",".join(f"{who}:{token}" for who, token in TOKENS.items()),
            "NOD_ADMINS": "http:ana",
            "NOD_APPROVERS": "http:ben,http:cleo,slack:T1/U8",
            "NOD_MAX_CONVERSATIONS": "1000000",
            "NOD_MAX_MESSAGES": "1000000",
            "NOD_PROPOSAL_TTL": "3s",
            "NOD_TOOLS": "tests.torture.tools",
            "OPENAI_API_KEY": "test-key",
            "NOD_LOG_LEVEL": "warning",
            "TORTURE_EFFECTS": str(self.effects),
            **self._environment,
            **(points.drawn(self._dice) if self._dice else {}),
        }
        return await self._nursery.born(environment, self._folder, self._folder / f"nod-{port}.log")

    async def _taken_over(self, pid: int, died: float) -> None:
        """Measure how long what a dead process had remains its own."""
        others = self._up & set(self._running.values())
        found = await self.column(
            "SELECT owner FROM turn JOIN process ON process.id = owner "
            "WHERE turn.state = 'wanted' AND CAST(pid AS text) = :pid UNION "
            "SELECT owner FROM proposal JOIN process ON process.id = owner "
            "WHERE proposal.state = 'executing' AND CAST(pid AS text) = :pid",
            pid=str(pid),
        )
        for owner in found:
            while await self.column(  # noqa: ASYNC110 - a database rings no bell
                "SELECT id FROM turn WHERE state = 'wanted' AND owner = :owner UNION ALL "
                "SELECT position FROM proposal WHERE state = 'executing' AND owner = :owner",
                owner=owner,
            ):
                await asyncio.sleep(PAUSE)
            lived_on = others & set(self._running.values())
            taken = self.figures.taken if lived_on else self.figures.taken_late
            taken.append(time.monotonic() - died)

    def _look(self, query: str, values: dict[str, str]) -> list[Any] | None:
        with contextlib.suppress(DBAPIError), self._engine.connect() as connection:
            return list(connection.execute(text(query), values).scalars())
        return None


def _send(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, which)


def free_port() -> int:
    """One that no client is given by chance while its Nod is dead: they get higher ones."""
    for port in random.sample(range(20_000, 32_000), 1000):
        with contextlib.suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there is no free port")
