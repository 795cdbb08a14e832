"""Real MCP servers as peers: the official SDK's over stdio and over streamable HTTP on loopback."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from pydantic import AnyHttpUrl

from bot.tools.call import CallContext
from bot.tools.mcp.config import Http, ServerConfig, Stdio, Trust
from bot.tools.mcp.toolset import McpToolset
from bot.tools.tool import Tool
from bot.tools.toolset import Toolset
from tests.kit import FakeClock, Nod
from tests.kit.urls import Urls
from tests.tools.mcp.servers import lamps
from tests.tools.mcp.servers.gatekeeper import Gatekeeper
from tests.tools.mcp.servers.plain import Plain

LAMPS = Path(lamps.__file__)
CONTEXT = CallContext("c1", "chat:ana", "key-1")
SECRET = "tok-4711-very-secret"


async def until(true: Callable[[], bool]) -> None:
    """Let everything run until it is so."""
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.01)


class Pauses:
    """Sleeps as long as the test wants: `begun` waits for the next pause, `end` and `end_all` end it."""

    def __init__(self) -> None:
        self._begun: asyncio.Queue[tuple[float, asyncio.Event]] = asyncio.Queue()
        self._all = asyncio.Event()
        self._last = self._all

    async def __call__(self, seconds: float) -> None:
        end = self._all if self._all.is_set() else asyncio.Event()
        self._begun.put_nowait((seconds, end))
        await end.wait()

    async def begun(self) -> float:
        seconds, self._last = await self._begun.get()
        return seconds

    def end(self) -> None:
        """The pause that `begun` told of is over."""
        self._last.set()

    def end_all(self) -> None:
        """No pause lasts any longer."""
        self._all.set()
        self._last.set()
        while not self._begun.empty():
            self._begun.get_nowait()[1].set()


class Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpLamps:
    """The lamps behind an address of this machine; may be down and up again at the same one."""

    def __init__(self, folder: Path, gatekeeper: Gatekeeper | None = None) -> None:
        """With a gatekeeper, only those who signed in there get in."""
        self.folder = folder
        self.gatekeeper = gatekeeper
        self.scopes: list[str] | None = None  # that every request needs
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def up(self) -> None:
        app = lamps.make(self.folder, **self._doors()).streamable_http_app()
        config = uvicorn.Config(
            app, host="127.0.0.1", port=self.port, log_config=None, timeout_graceful_shutdown=0
        )
        self._server = Quiet(config)
        self._task = asyncio.create_task(self._server.serve())
        await until(lambda: self._server.started)

    def _doors(self) -> dict[str, Any]:
        if self.gatekeeper is None:
            return {}
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(f"http://127.0.0.1:{self.port}"),
            resource_server_url=AnyHttpUrl(self.url),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            required_scopes=self.scopes,
            validate_token_resource=True,
        )
        return {"auth": auth, "auth_server_provider": self.gatekeeper}

    async def down(self) -> None:
        self._server.should_exit = True
        await self._task


class Connected:
    """A toolset in use, as the core uses one: tools by name, arguments validated, then run."""

    def __init__(self, toolset: McpToolset, pauses: Pauses) -> None:
        self.toolset = toolset
        self.pauses = pauses

    async def tool(self, name: str) -> Tool:
        return {tool.name: tool for tool in await self.toolset.tools()}[name]

    async def names(self) -> set[str]:
        return {tool.name for tool in await self.toolset.tools()}

    async def run(self, name: str, context: CallContext = CONTEXT, /, **arguments: Any) -> Any:
        return await self.run_tool(await self.tool(name), context, **arguments)

    async def run_tool(self, tool: Tool, context: CallContext = CONTEXT, /, **arguments: Any) -> Any:
        """Run a tool as it was offered, whatever the server offers by now."""
        return (await tool.run(tool.validate(arguments), context)).data

    async def has(self, name: str) -> None:
        """Wait until there is such a tool."""
        async with asyncio.timeout(30):
            while name not in await self.names():  # noqa: ASYNC110 - another process tells of it
                await asyncio.sleep(0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the lamps write down what happened."""
    made = tmp_path / "lamps"
    made.mkdir()
    return made


@pytest.fixture
def done(folder: Path) -> Callable[[], list[str]]:
    """What the lamps went through, in order."""

    def read() -> list[str]:
        file = folder / "done"
        return file.read_text().splitlines() if file.exists() else []

    return read


Connect = Callable[..., Connected]


@pytest.fixture
async def connect(clock: FakeClock) -> AsyncIterator[Connect]:
    """Make a toolset of servers; keywords as those of `McpToolset`."""
    made: list[Connected] = []

    def make(*configs: ServerConfig, **parts: Any) -> Connected:
        pauses = Pauses()
        given = {"clock": clock, "sleep": pauses, "turn_wait_seconds": 120.0, **parts}
        made.append(Connected(McpToolset(configs, **given), pauses))
        return made[-1]

    yield make
    for each in made:
        await each.toolset.stop()


@pytest.fixture
def plain() -> Iterator[Plain]:
    """A server at an address that does what a test says."""
    served = Plain()
    yield served
    served.down()


Make = Callable[..., ServerConfig]


@pytest.fixture
def stdio(folder: Path) -> Make:
    """The lamps as a process of ours; keywords as those of `ServerConfig`."""

    def make(*arguments: str, env: dict[str, str] | None = None, **parts: Any) -> ServerConfig:
        launch = Stdio(sys.executable, (str(LAMPS), str(folder), *arguments), env or {})
        return ServerConfig("lamps", launch, **{"trust": Trust.TRUSTED, "prefix": "lamps_", **parts})

    return make


@pytest.fixture
async def http_lamps(folder: Path) -> AsyncIterator[HttpLamps]:
    served = HttpLamps(folder)
    await served.up()
    yield served
    await served.down()


@pytest.fixture
def http(http_lamps: HttpLamps) -> Make:
    """The lamps at an address; keywords as those of `ServerConfig`."""

    def make(headers: dict[str, str] | None = None, **parts: Any) -> ServerConfig:
        launch = Http(http_lamps.url, headers or {})
        return ServerConfig("lamps", launch, **{"trust": Trust.TRUSTED, "prefix": "lamps_", **parts})

    return make


class McpNod(Nod):
    """The core over an MCP toolset."""

    def __init__(self, url: str, clock: FakeClock, connected: Connected, **parts: Any) -> None:
        self.connected = connected
        super().__init__(url, clock, **parts)

    def tools(self) -> Toolset:
        return self.connected.toolset


@pytest.fixture
async def make_nod(database_of: Urls, clock: FakeClock) -> AsyncIterator[Callable[..., McpNod]]:
    """Make a core over the servers; keywords as those of `Nod`."""
    made: list[McpNod] = []

    def make(connected: Connected, **parts: Any) -> McpNod:
        made.append(McpNod(database_of(str(len(made))), clock, connected, **parts))
        return made[-1]

    yield make
    for nod in made:
        await nod.check()
        await nod.close()
