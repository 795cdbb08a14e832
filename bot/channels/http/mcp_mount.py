"""``/mcp`` on the running server: the MCP server of ``agents.py`` over streamable HTTP, with its tokens."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.channels.http.errors import problem
from bot.channels.http.mcp_server import PATIENCE, agents_server
from bot.channels.http.site import Site

PATH = "/mcp"


class AgentDoor:
    """An ASGI application. Each request stands for itself, so nothing is kept between them."""

    def __init__(self, patience: int = PATIENCE) -> None:
        self._patience = patience
        self._site: Site | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()

    def route(self) -> Route:
        return Route(PATH, endpoint=self, methods=["GET", "POST", "DELETE"], include_in_schema=False)

    async def start(self, site: Site) -> None:
        """Let agents in. One task owns the SDK's sessions, for they must end where they began."""
        self._site = site
        server = agents_server(self._connect, self._patience)
        server.streamable_http_app(
            stateless_http=True,
            # the site's auth decides who may call, for this path as for any other
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        manager = server.session_manager
        ready = asyncio.Event()

        async def own() -> None:
            async with manager.run():
                ready.set()
                await self._stopped.wait()

        self._owner = asyncio.create_task(own(), name="mcp door")
        await ready.wait()
        self._manager = manager

    async def stop(self) -> None:
        self._stopped.set()
        self._manager = None
        if self._owner is not None:
            await asyncio.wait([self._owner])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Unauthenticated or Forbidden, which the site turns into answers."""
        if self._manager is None or self._site is None:
            await problem(503, "starting")(scope, receive, send)
            return
        await self._site.doorkeeper(HTTPConnection(scope))
        await self._manager.handle_request(scope, receive, send)

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
