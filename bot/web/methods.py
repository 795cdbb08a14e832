"""HEAD and OPTIONS at every address that has another method: load balancers and monitors use them.

The middleware `HeadAndOptions` answers OPTIONS itself, with the methods that the routes take. It lets the
application answer HEAD as a GET and drops the body.
"""

import asyncio
from collections.abc import Collection, Sequence

from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def list_methods(routes: Sequence[BaseRoute], scope: Scope) -> list[str]:
    """Return the methods that an address takes, without HEAD and OPTIONS."""
    if scope["path"] == "*":  # the server itself (RFC 9110, 9.3.7)
        return list(_METHODS)
    return [name for name in _METHODS if any(_is_routed(route, scope, name) for route in routes)]


def _is_routed(route: BaseRoute, scope: Scope, method: str) -> bool:
    return route.matches({**scope, "method": method})[0] is Match.FULL


class HeadAndOptions:
    """ASGI middleware that answers HEAD as GET without its body, and OPTIONS with ``Allow``."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute], one_time_paths: Collection[str]) -> None:
        """``one_time_paths``: the paths of links that work once, such as the way back from a sign-in.

        A GET at such a path, or below it, uses up the link. Scanners of mails try links by HEAD, so a HEAD
        there gets an empty response, and the link still works.
        """
        self._app = app
        self._routes = routes
        self._one_time_paths = frozenset(one_time_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["type"] == "http" else ""
        if method not in ("HEAD", "OPTIONS") or _is_preflight(scope):
            await self._app(scope, receive, send)
            return
        methods = list_methods(self._routes, scope)
        takes_get = "GET" in methods
        if method == "OPTIONS" and methods:
            allowed = [*methods, "HEAD", "OPTIONS"] if takes_get else [*methods, "OPTIONS"]
            await Response(status_code=204, headers={"Allow": ", ".join(allowed)})(scope, receive, send)
        elif method == "HEAD" and takes_get and self._is_one_time(scope["path"]):
            await Response()(scope, receive, send)
        elif method == "HEAD" and takes_get:
            head = _Head(receive, send)
            await self._app({**scope, "method": "GET"}, head.receive, head.send)
        else:
            await self._app(scope, receive, send)

    def _is_one_time(self, path: str) -> bool:
        return any(path == link or path.startswith(f"{link}/") for link in self._one_time_paths)


def _is_preflight(scope: Scope) -> bool:
    """Tell if this is a CORS preflight. It is passed on, and refused like an unknown method."""
    return any(name == b"access-control-request-method" for name, _ in scope["headers"])


class _Head:
    """Runs a GET for a HEAD: passes on the headers, and drops the body.

    Once the headers are sent, the application is told that the client has left, so that a stream ends.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._has_request = False  # True once the application has received the request
        self._started = asyncio.Event()  # the headers are sent

    async def receive(self) -> Message:
        if self._has_request:
            await self._started.wait()
            return {"type": "http.disconnect"}
        self._has_request = True
        return await self._receive()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._send(message)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            self._started.set()
