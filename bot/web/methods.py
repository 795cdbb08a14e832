"""HEAD and OPTIONS at every address that has another method: load balancers and monitors ask by them."""

import asyncio
from collections.abc import Collection, Sequence

from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def list_methods(routes: Sequence[BaseRoute], scope: Scope) -> list[str]:
    """Return the methods that an address takes, HEAD and OPTIONS apart; of ``*``, the server's own, all."""
    if scope["path"] == "*":
        return list(_METHODS)
    return [name for name in _METHODS if any(_is_routed(route, scope, name) for route in routes)]


def _is_routed(route: BaseRoute, scope: Scope, method: str) -> bool:
    return route.matches({**scope, "method": method})[0] is Match.FULL


class HeadAndOptions:
    """ASGI middleware that answers HEAD as GET without its body, and OPTIONS with ``Allow``.

    ``once``: paths whose GET, and that of all below, uses up what it is given, such as the way back from a
    sign-in. A scanner that asks there by HEAD must not, so it is answered without asking further.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute], once: Collection[str]) -> None:
        self._app = app
        self._routes = routes
        self._once = frozenset(once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_preflight(scope):
            asked = scope["method"]
        else:
            asked = ""
        if asked in ("HEAD", "OPTIONS"):
            methods = list_methods(self._routes, scope)
        else:
            methods = []
        if asked == "OPTIONS" and methods:
            allowed = [*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS"]
            await Response(status_code=204, headers={"Allow": ", ".join(allowed)})(scope, receive, send)
        elif asked == "HEAD" and "GET" in methods and self._uses_up(scope["path"]):
            await Response()(scope, receive, send)
        elif asked == "HEAD" and "GET" in methods:
            head = _Head(receive, send)
            await self._app({**scope, "method": "GET"}, head.receive, head.send)
        else:
            await self._app(scope, receive, send)

    def _uses_up(self, path: str) -> bool:
        return any(path == each or path.startswith(f"{each}/") for each in self._once)


def _is_preflight(scope: Scope) -> bool:
    """Tell if a browser asks on behalf of another site, which is refused like any other method."""
    return any(name == b"access-control-request-method" for name, _ in scope["headers"])


class _Head:
    """The answer to a GET cut after its headers; a stream that waits for more is told its reader left."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._asked = False
        self._started = asyncio.Event()

    async def receive(self) -> Message:
        if self._asked:
            await self._started.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return await self._receive()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._send(message)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            self._started.set()
