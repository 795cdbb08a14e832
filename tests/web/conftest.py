"""The real server on a free port, spoken to over real HTTP."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from sqlmodel import Session

from bot.agent.openai.model import OpenAIModel
from bot.app.app import App
from bot.app.assembly import build
from bot.domain.model import Model
from bot.domain.named_models import NamedModel
from bot.errors import ToolError
from bot.settings import Settings
from bot.telemetry import logs
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset, Toolset
from bot.web.streams import Pace
from tests.fakes.openai_server import OpenAIServer
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls
from tests.web.scripted import ScriptedModel

ANA, BEN, CHIEF, DEE = (
    "ana-0123456789abcdef",
    "ben-0123456789abcdef",
    "chief-0123456789abcd",
    "dee-0123456789abcdef",
)
TOKENS = (f"ana:{ANA}", f"ben:{BEN}", f"chief:{CHIEF}", f"dee:{DEE}")

_PATIENCE = 30  # seconds, after which a test that waits for what never comes fails instead of hanging

Json = dict[str, Any]


@dataclass
class Notes:
    """Three tools over a list, and what was done to it."""

    kept: list[str] = field(default_factory=list)
    failing: bool = False

    def tools(self) -> tuple[Tool, ...]:
        @tool(summary="Keep the note “{text}”")
        async def keep(text: str, times: int = 1, password: str | None = None) -> dict[str, Any]:
            """Keep a note."""
            if self.failing:
                raise ToolError("the notebook is closed")
            self.kept.extend([text] * times)
            return {"kept": len(self.kept)}

        @tool(writes=False, summary="Read the notes")
        async def read(password: str | None = None) -> list[str]:
            """Read all notes."""
            return list(self.kept)

        return keep, read


@dataclass
class Stream:
    """An open SSE response, read event by event."""

    response: httpx.Response
    lines: AsyncIterator[str]
    last_id: str | None = None

    async def raw(self) -> list[str]:
        """The lines of the next block; raises StopAsyncIteration at the end."""
        block: list[str] = []
        while line := await anext(self.lines):
            block.append(line)
        return block

    async def next(self) -> Json:
        """The next event, which must be one ``data:`` line of JSON; comments are passed over."""
        while True:
            data = []
            for line in await self.raw():
                if line.startswith("id: "):
                    self.last_id = line[4:]
                elif not line.startswith(":"):
                    assert line.startswith("data: "), line
                    data.append(line[6:])
            if data:
                (only,) = data
                event: Json = json.loads(only)
                assert isinstance(event["type"], str)
                return event

    async def until(self, kind: str) -> Json:
        while (event := await self.next())["type"] != kind:
            pass
        return event

    async def rest(self) -> list[Json]:
        events = []
        with contextlib.suppress(StopAsyncIteration):
            while True:
                events.append(await self.next())
        return events


@dataclass
class Served:
    """One running Nod and its callers."""

    app: App
    model: ScriptedModel
    notes: Notes
    clock: FakeClock
    client: httpx.AsyncClient

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.app.web.port}"

    async def idle(self) -> None:
        """Return when there is nothing left to do: on PostgreSQL a wake-up is a job before it is work."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                await self.app.dispatcher.wait_until_idle()
                if not await self.app.database.read(_are_jobs):
                    return
                await asyncio.sleep(0.005)

    def caller(self, token: str | None = None, **headers: str) -> httpx.AsyncClient:
        """Another client; closed with the test's loop."""
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.AsyncClient(base_url=self.url, headers=given | headers, timeout=20)

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, path: str, client: httpx.AsyncClient | None = None, **given: Any
    ) -> AsyncIterator[Stream]:
        async with (client or self.client).stream(method, path, **given) as response:
            if response.status_code != 200:
                await response.aread()
            assert response.status_code == 200, response.text
            assert response.headers["content-type"].startswith("text/event-stream")
            yield Stream(response, response.aiter_lines())

    def chatting(
        self, message: str, client: httpx.AsyncClient | None = None, **body: Any
    ) -> AbstractAsyncContextManager[Stream]:
        return self.stream("POST", "/api/chat", client, json={"message": message, **body})

    async def chat(self, message: str, client: httpx.AsyncClient | None = None, **body: Any) -> list[Json]:
        """Say something and read the whole stream."""
        async with self.chatting(message, client, **body) as stream:
            return await stream.rest()

    async def proposed(self, message: str = "go on", client: httpx.AsyncClient | None = None) -> list[Json]:
        """Say something and return the proposals it led to."""
        return [e["proposal"] for e in await self.chat(message, client) if e["type"] == "proposal_opened"]

    async def press(
        self, proposal: Json, verb: str, client: httpx.AsyncClient | None = None, **body: Any
    ) -> httpx.Response:
        path = f"/api/proposals/{proposal['id']}/{verb}"
        return await (client or self.client).post(path, json=body)

    async def proposal(self, ident: str) -> Json:
        answer = await self.client.get(f"/api/proposals/{ident}")
        shown: Json = answer.json()["proposal"]
        return shown


def _are_jobs(session: Session) -> bool:
    on_postgres = session.connection().dialect.name == "postgresql"
    return on_postgres and bool(
        session.execute(text("SELECT EXISTS (TABLE procrastinate_jobs)")).scalar_one()
    )


@pytest.fixture(autouse=True)
def _log() -> None:
    """The real log, down to errors."""
    logs.configure("error")


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def serve(database_of: Urls, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Start a Nod on the test's own database: ``async with serve() as nod``; again for a restart."""
    monkeypatch.chdir(tmp_path)  # no .env of anybody's
    make_tables(url := database_of("nod"))
    notes = Notes()

    @contextlib.asynccontextmanager
    async def start(
        *,
        model: Model | None = None,
        tools: tuple[Tool, ...] | None = None,
        toolset: Toolset | None = None,
        pace: Pace | None = None,
        token: str | None = None,
        patience: float = _PATIENCE,
        **settings: Any,
    ) -> AsyncIterator[Served]:
        scripted = model or (None if "NOD_MODELS" in settings else ScriptedModel())
        given = {"NOD_DATABASE_URL": url, "NOD_PORT": 0, **settings}
        app = build(
            Settings.load(**given),
            model=scripted,
            toolsets=[toolset or FixedToolset("notes", tools or notes.tools())],
            clock=clock,
        )
        if pace is not None:
            app.channels["http"].pace = pace  # type: ignore[attr-defined]
        async with asyncio.timeout(patience), app.running(ticking=False):
            served = Served(app, scripted, notes, clock, httpx.AsyncClient())  # type: ignore[arg-type]
            async with served.caller(token) as client:
                served.client = client
                yield served

    return start


Meet = Callable[..., AbstractAsyncContextManager[tuple[Served, OpenAIServer]]]


@pytest.fixture
def meet(serve: Serve) -> Meet:
    """Start a Nod whose model is behind a server: ``async with meet() as (nod, server)``.

    ``named`` changes what is set for the model.
    """

    @contextlib.asynccontextmanager
    async def start(
        server: OpenAIServer | None = None, named: Json | None = None, **given: Any
    ) -> AsyncIterator[tuple[Served, OpenAIServer]]:
        async with server or OpenAIServer() as running:
            values = {"base_url": running.url, "secret": running.key, "strict": False, **(named or {})}
            model = OpenAIModel(NamedModel("gpt-test", "gpt-test", **values), max_retries=0)
            async with serve(model=model, **given) as nod:
                yield nod, running
            await model.close()

    return start


def told(events: list[Json]) -> str:
    """Return what people read of a turn."""
    return "".join(event.get("text") or event.get("error") or "" for event in events)


def of_role(request: Json, role: str) -> list[str]:
    """Return the contents of the messages of one role."""
    return [str(message["content"]) for message in request["messages"] if message["role"] == role]
