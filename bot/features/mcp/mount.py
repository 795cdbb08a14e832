"""The service at ``/mcp`` of the running Nod: the MCP server of `server.py` over streamable HTTP.

Each request comes with the token of its caller, and the MCP server calls Nod's HTTP interface with this
token, inside the same process.
"""

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

from bot.web.answers import HttpError

PATH = "/mcp"
PROMPT_WAIT_SECONDS = 600
"""The time that a permission prompt waits for a person."""


class McpMount:
    """The ASGI application at ``/mcp``, a `Service` of its feature.

    The protocol keeps no state between two requests. The first request loads the SDK and starts its
    application, in a task that runs until `stop`. If the start fails, the next request tries it again.
    Nothing is loaded earlier, since it takes half a second and most installations get no such request.
    """

    def __init__(self, prompt_wait_seconds: int = PROMPT_WAIT_SECONDS) -> None:
        self._prompt_wait_seconds = prompt_wait_seconds
        self._sdk_app_future: asyncio.Future[ASGIApp] | None = None
        self._sdk_task: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()

    def route(self) -> Route:
        """Return the route for all three methods of streamable HTTP."""
        return Route(PATH, endpoint=self, methods=["GET", "POST", "DELETE"], include_in_schema=False)

    async def stop(self) -> None:
        """End the SDK's application, if a request has started it, and refuse further requests."""
        self._stopped.set()
        if self._sdk_task is not None:
            await asyncio.wait([self._sdk_task])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. Raises Unauthenticated or Forbidden, which the site turns into answers."""
        if self._stopped.is_set():
            raise HttpError(503, "stopping")
        app: FastAPI = scope["app"]
        await app.state.site.authenticate(HTTPConnection(scope))
        # shielded, since the end of one request must not cancel the start for all others
        sdk_app = await asyncio.shield(self._ensure_started(app))
        await sdk_app(scope, receive, send)

    def _ensure_started(self, app: FastAPI) -> "asyncio.Future[ASGIApp]":
        """Start the SDK's application unless it runs or starts. Returns the future of it."""
        if self._sdk_app_future is None or self._sdk_task is None or self._sdk_task.done():
            self._sdk_app_future = asyncio.get_running_loop().create_future()
            self._sdk_task = asyncio.create_task(
                self._run_sdk(app, self._sdk_app_future), name="mcp sessions"
            )
        return self._sdk_app_future

    async def _run_sdk(self, app: FastAPI, sdk_app_future: "asyncio.Future[ASGIApp]") -> None:
        """Start the SDK's application as the result of ``sdk_app_future``, and end it when the service stops.

        The SDK requires that the task which starts the application also ends it.
        """
        try:
            mcp_server = await asyncio.to_thread(import_module, "bot.features.mcp.server")
            call_wait_seconds = app.state.features.settings.agent_wait
            connect = partial(_connect, app)
            async with mcp_server.run_http_app(
                connect, self._prompt_wait_seconds, call_wait_seconds
            ) as http_app:
                sdk_app_future.set_result(http_app)
                await self._stopped.wait()
        except asyncio.CancelledError:
            if not sdk_app_future.done():
                sdk_app_future.set_exception(HttpError(503, "stopping"))
            raise
        except Exception as error:
            if sdk_app_future.done():
                raise
            sdk_app_future.set_exception(error)  # each request that waits for the application gets the error


@asynccontextmanager
async def _connect(app: ASGIApp, headers: Mapping[str, str] | None) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client for this same server, with the token of the agent's request."""
    authorization = (headers or {}).get("authorization")
    own_headers = {"Authorization": authorization} if authorization else {}
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", headers=own_headers
    ) as client:
        yield client
