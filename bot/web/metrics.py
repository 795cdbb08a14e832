"""``/metrics``: there with ``NOD_METRICS_TOKEN`` only, and for who sends it.

It is a page of the running Nod. A worker, which has no other page, serves it alone (`server`).
"""

import hmac
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.web.answers import Fault, told
from bot.web.server import WebServer
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


def server(page: Route, host: str, port: int) -> WebServer:
    """A server of this page alone, for as many at a time as ever ask for figures."""
    application = Starlette(routes=[page], exception_handlers={Fault: told})
    return WebServer(application, host, port, _CONNECTIONS, setting="NOD_METRICS_PORT")
