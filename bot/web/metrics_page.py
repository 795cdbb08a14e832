"""The page ``/metrics``, which has the figures of this process for Prometheus."""

import hmac
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.web.answers import HttpError, answer_fault
from bot.web.server import WebServer
from bot.web.sign_in.tokens import Unauthenticated

_METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MAX_METRICS_CONNECTIONS = 20  # connections to a worker's `/metrics` at the same time


def make_metrics_route(token: str, figures: Callable[[], Awaitable[bytes]]) -> Route:
    """Return the route ``/metrics``, which needs the token; ``figures`` are in Prometheus' text format."""
    expected = f"Bearer {token}".encode()

    async def metrics(request: Request) -> Response:
        sent = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(sent, expected):
            raise Unauthenticated("Send the token of NOD_METRICS_TOKEN: Authorization: Bearer <token>.")
        return Response(await figures(), media_type=_METRICS_MEDIA_TYPE)

    return Route("/metrics", metrics)


def make_metrics_server(page: Route, host: str, port: int) -> WebServer:
    """Return a server of this page alone, for a worker, which has no other page."""
    application = Starlette(routes=[page], exception_handlers={HttpError: answer_fault})
    return WebServer(application, host, port, _MAX_METRICS_CONNECTIONS, setting="NOD_METRICS_PORT")
