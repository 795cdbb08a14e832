"""``/mcp`` on the running server: ``server.py`` over streamable HTTP, with the tokens of callers."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module

import httpx2
from fastapi import FastAPI
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.web.answers import Fault

PATH = "/mcp"
PATIENCE = 600  # seconds that a permission prompt waits for a person


class McpMount:
    """The ASGI application at ``/mcp``. No state is kept between two requests.

    The first request loads the SDK, which takes half a second that most installations never need.
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self._patience = patience
        self._inside: asyncio.Future[ASGIApp] | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()

    def route(self) -> Route:
        return Route(PATH, endpoint=self, methods=["GET", "POST", "DELETE"], include_in_schema=False)

    async def stop(self) -> None:
        self._stopped.set()
        if self._owner is not None:
            await asyncio.wait([self._owner])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. Raises Unauthenticated or Forbidden, which the site turns into answers."""
        if self._stopped.is_set():
            raise Fault(503, "stopping")
        app: FastAPI = scope["app"]
        await app.state.site.doorkeeper(HTTPConnection(scope))
        if self._inside is None:
            self._inside = inside = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._own(app, inside), name="mcp door")
        await (await asyncio.shield(self._inside))(scope, receive, send)

    async def _own(self, app: FastAPI, inside: "asyncio.Future[ASGIApp]") -> None:
        """Open the SDK's sessions, and end them in the same task, as the SDK requires."""
        try:
            mcp_server = await asyncio.to_thread(import_module, "bot.features.mcp.server")
            wait = app.state.features.settings.agent_wait
            async with mcp_server.sessions(partial(_connect, app), self._patience, wait) as handle:
                inside.set_result(handle)
                await self._stopped.wait()
        except Exception as error:
            if inside.done():
                raise
            inside.set_exception(error)  # each request that waits gets the error


@asynccontextmanager
async def _connect(app: ASGIApp, headers: Mapping[str, str] | None) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client for this same server, with the token of the agent's request."""
    authorization = (headers or {}).get("authorization")
    given = {"Authorization": authorization} if authorization else {}
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=given) as client:
        yield client
