"""``/metrics``: there with ``NOD_METRICS_TOKEN`` only, and for who sends it."""

import hmac
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.channels.http.auth import Unauthenticated

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


def route(token: str, figures: Callable[[], Awaitable[bytes]]) -> Route:
    """Where Prometheus asks; ``figures`` in its text format."""
    wanted = f"Bearer {token}".encode()

    async def metrics(request: Request) -> Response:
        offered = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(offered, wanted):
            raise Unauthenticated("Send the token of NOD_METRICS_TOKEN: Authorization: Bearer <token>.")
        return Response(await figures(), media_type=_FORMAT)

    return Route("/metrics", metrics)
