"""``/mcp`` on the running server: ``mcp_server.py`` over streamable HTTP, with the tokens of callers."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module

import httpx2
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.channels.http.errors import problem
from bot.channels.http.site import Site

PATH = "/mcp"
PATIENCE = 600  # seconds that a permission prompt waits for a person


class AgentDoor:
    """An ASGI application. Each request stands for itself, so nothing is kept between them.

    The first one opens it: the SDK takes half a second, and most never need it.
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self._patience = patience
        self._site: Site | None = None
        self._inside: asyncio.Future[ASGIApp] | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()

    def route(self) -> Route:
        return Route(PATH, endpoint=self, methods=["GET", "POST", "DELETE"], include_in_schema=False)

    async def start(self, site: Site) -> None:
        """Let agents in."""
        self._site = site

    async def stop(self) -> None:
        self._site = None
        self._stopped.set()
        if self._owner is not None:
            await asyncio.wait([self._owner])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Unauthenticated or Forbidden, which the site turns into answers."""
        site = self._site
        if site is None:
            await problem(503, "starting")(scope, receive, send)
            return
        await site.doorkeeper(HTTPConnection(scope))
        if self._inside is None:
            self._inside = inside = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._own(inside), name="mcp door")
        await (await asyncio.shield(self._inside))(scope, receive, send)

    async def _own(self, inside: "asyncio.Future[ASGIApp]") -> None:
        """Open the SDK's sessions, and end them in the same task, as they must be."""
        try:
            mcp_server = await asyncio.to_thread(import_module, "bot.channels.http.mcp_server")
            async with mcp_server.sessions(self._connect, self._patience) as handle:
                inside.set_result(handle)
                await self._stopped.wait()
        except Exception as error:
            if inside.done():
                raise
            inside.set_exception(error)  # each one that waits gets it, so that none waits in vain

    @asynccontextmanager
    async def _connect(self, headers: Mapping[str, str] | None) -> AsyncIterator[httpx2.AsyncClient]:
        """A client for this same server, with the token that the agent came with."""
        authorization = (headers or {}).get("authorization")
        given = {"Authorization": authorization} if authorization else {}
        if self._site is None:
            raise RuntimeError("the MCP mount was not started")
        transport = httpx2.ASGITransport(app=self._site)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=given
        ) as client:
            yield client
