"""``/metrics``: there with ``NOD_METRICS_TOKEN`` only, and for who sends it.

It is a page of the running Nod. A worker, which has no other page, serves it alone (`MetricsServer`).
"""

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.web.answers import Fault, told
from bot.web.server import bounded, listen, said_seldom, started
from bot.web.sign_in.tokens import Unauthenticated

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_CONNECTIONS = 20


def route(token: str, figures: Callable[[], Awaitable[bytes]]) -> Route:
    """Where Prometheus asks; ``figures`` in its text format."""
    wanted = f"Bearer {token}".encode()

    async def metrics(request: Request) -> Response:
        offered = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(offered, wanted):
            raise Unauthenticated("Send the token of NOD_METRICS_TOKEN: Authorization: Bearer <token>.")
        return Response(await figures(), media_type=_FORMAT)

    return Route("/metrics", metrics)


class MetricsServer:
    """Serves one route on a port of its own, to as many at a time as ever ask for figures."""

    def __init__(self, page: Route, host: str, port: int) -> None:
        self._page, self._host, self._port = page, host, port

    @asynccontextmanager
    async def running(self) -> AsyncIterator[int]:
        """The port, while it serves. Raises SettingsError where it is taken."""
        application = Starlette(routes=[self._page], exception_handlers={Fault: told})
        server = bounded(application, _CONNECTIONS)
        with said_seldom(), listen(self._host, self._port, "NOD_METRICS_PORT") as listening:
            serving = asyncio.create_task(server.serve([listening]), name="metrics")
            try:
                await started(server, serving)
                yield listening.getsockname()[1]
            finally:
                server.should_exit = True
                await serving
