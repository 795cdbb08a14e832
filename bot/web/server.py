"""The web server: uvicorn inside Nod's own event loop.

`WebServer` binds the port first and serves later, so that a port that is taken is found before the rest
starts. The limit of open files is raised, and the number of connections bounded by it.
"""

import asyncio
import contextlib
import errno
import re
import resource
import signal
import socket
import threading
from collections.abc import Callable
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.errors import SettingsError
from bot.web.repeated_logs import limit_repeated_logs

_ACCEPT_BACKLOG = 100  # connections that the loop may open in one step
_MAX_HEADER_BYTES = 16 * 1024  # with the request line
_KEEP_ALIVE_SECONDS = 75  # the silence that ends a connection; proxies end theirs first, after 60
_MAX_OPEN_FILES = 65_536
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# the full address in a request line: GET http://nod.test/api/me HTTP/1.1
_ABSOLUTE_TARGET = re.compile(rb"https?://(?P<host>[^/]*)(?P<path>/.*)?", re.IGNORECASE | re.DOTALL)


def raise_file_limit() -> int:
    """Raise the limit of open files as far as the system allows, at most to `_MAX_OPEN_FILES`.

    Returns the number of files that may then be open; `_MAX_OPEN_FILES` if there is no limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < target:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            return target
    if soft == resource.RLIM_INFINITY:
        return target
    return soft


def cap_connections(wanted: int) -> int:
    """Raise the limit of open files, and return how many connections to serve: at most half of that limit."""
    return min(wanted, raise_file_limit() // 2)


class AbsoluteTargetToPath:
    """ASGI middleware that replaces a full address in a request line, as some proxies send it, by its path.

    RFC 9112, section 3.2.2: a server must accept the full address (absolute-form) like a path (origin-form),
    and the host in it replaces the ``Host`` header.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        target = _ABSOLUTE_TARGET.fullmatch(scope["raw_path"]) if scope["type"] == "http" else None
        if target is not None:
            path = target["path"] or (b"*" if scope["method"] == "OPTIONS" else b"/")
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope["headers"] = [*others, (b"host", target["host"])]
            scope.update(raw_path=path, path=unquote(path.decode("ascii")))
        await self._app(scope, receive, send)


def make_bounded_server(application: ASGIApp, connections: int) -> uvicorn.Server:
    """Return a server that answers 503 while it has more connections."""
    return uvicorn.Server(
        uvicorn.Config(
            AbsoluteTargetToPath(application),
            http="h11",
            h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
            backlog=_ACCEPT_BACKLOG,
            limit_concurrency=cap_connections(connections) + 1,  # uvicorn refuses from this number on
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            log_config=None,
            proxy_headers=False,  # uvicorn would believe any local program; `Forwarded` does it
            lifespan="off",
            timeout_graceful_shutdown=2,
            server_header=False,
        )
    )


async def wait_until_started(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    """Wait until the server serves.

    Uvicorn replaces the handlers of signals as it starts. So signals are blocked until Nod's handlers are
    restored.
    """
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


class WebServer:
    """A server of ``app`` on ``host:port``; port 0 takes a free one, which ``port`` then holds."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        connections: int,
        *,
        setting: str = "NOD_PORT",
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """``connections``: the most at a time. ``setting``: the name of the port's setting, for errors.

        ``on_stop`` is called first at a stop: it ends the open streams, so that `stop` need not wait for
        them.
        """
        self.app = app
        self._host = host
        self.port = port
        self._setting = setting
        self._on_stop = on_stop
        self._server = make_bounded_server(app, connections)
        self._log_filters = contextlib.ExitStack()
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None

    def listen(self) -> socket.socket:
        """Bind the port. Connections wait until `start`. Raises SettingsError if the port is taken."""
        self._socket = bound_socket = open_socket(self._host, self.port, self._setting)
        self.port = bound_socket.getsockname()[1]
        return bound_socket

    async def start(self) -> None:
        """Serve on the bound port."""
        self._log_filters.enter_context(limit_repeated_logs())
        bound_socket = self._socket or self.listen()
        self._task = asyncio.create_task(self._server.serve([bound_socket]), name="web server")
        await wait_until_started(self._server, self._task)

    async def stop(self) -> None:
        """End every stream, and wait for the other requests."""
        self._on_stop()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._log_filters.close()

    def close(self) -> None:
        """Close the port, also if `start` was never called."""
        if self._socket is not None:
            self._socket.close()


def open_socket(host: str, port: int, setting: str = "NOD_PORT") -> socket.socket:
    """Return a listening socket.

    Raises SettingsError, naming the variable and the fix, if the port can't be bound.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # only this fails if another process bound the port at the same time
    except (OSError, UnicodeError) as error:
        listening.close()
        raise _explain_listen_error(host, port, setting, error) from None
    return listening


def _explain_listen_error(host: str, port: int, setting: str, error: Exception) -> SettingsError:
    problem = f"cannot listen on {host}:{port} ({getattr(error, 'strerror', None) or error})"
    if isinstance(error, PermissionError):
        return SettingsError(f"{setting}: {problem}; choose a port above 1023")
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return SettingsError(f"{setting}: {problem}; stop what listens there, or choose another port")
    return SettingsError(f"NOD_HOST: {problem}; name an address of this machine")
