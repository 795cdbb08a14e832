"""The web server inside Nod's own event loop, and the page of its figures."""

import asyncio
import contextlib
import errno
import hmac
import logging
import re
import resource
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.errors import SettingsError
from bot.web.answers import Fault, answer_fault
from bot.web.sign_in.tokens import Unauthenticated

_ACCEPTED_TOGETHER = 100  # connections that the loop may open in one step
_HEADERS = 16 * 1024  # bytes of a request's first line and headers
_KEEP_ALIVE = 75  # seconds that a connection may be silent after an answer; proxies keep theirs for 60
_MOST_FILES = 65_536
_MINUTE = 60.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TALKATIVE = ("asyncio", "uvicorn.error")
_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_ABSOLUTE = re.compile(rb"https?://(?P<host>[^/]*)(?P<path>/.*)?", re.IGNORECASE | re.DOTALL)
_ASKING = 20  # connections that ever ask for figures at the same time


def raise_file_limit() -> int:
    """Let this process open as many files as the system allows it; says how many those are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        most = _MOST_FILES
    else:
        most = min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return most
    if soft == resource.RLIM_INFINITY:
        return most
    return soft


def most_connections(wanted: int) -> int:
    """Return the number of connections to serve: at most half of the files that may be open."""
    return min(wanted, raise_file_limit() // 2)


class Seldom(logging.Filter):
    """A log filter that lets repeated lines of libraries through once a minute."""

    _REPEATED = ("Invalid HTTP request", "Exceeded concurrency", "Unsupported upgrade", "socket.accept()")

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text = str(record.msg)
        known = next((each for each in self._REPEATED if text.startswith(each)), None)
        if known is None:
            return True
        if record.created - self._last.get(known, 0.0) < _MINUTE:
            return False
        self._last[known] = record.created
        return True


class OriginForm:
    """ASGI middleware: a request line with a full address, as some proxies send it, asks for that path.

    RFC 9112, section 3.2.2: a server must take it, and its host counts in place of the header's.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        target = _ABSOLUTE.fullmatch(scope["raw_path"]) if scope["type"] == "http" else None
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
            OriginForm(application),
            http="h11",
            h11_max_incomplete_event_size=_HEADERS,
            backlog=_ACCEPTED_TOGETHER,
            limit_concurrency=most_connections(connections) + 1,  # it refuses from there on
            timeout_keep_alive=_KEEP_ALIVE,
            log_config=None,
            proxy_headers=False,  # believes any program of this machine; `Forwarded` does it
            lifespan="off",
            timeout_graceful_shutdown=2,
            server_header=False,
        )
    )


async def wait_until_started(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    """Wait until it serves. It takes signals over as it starts; they wait, and go where they went before."""
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
    finally:
        if threading.current_thread() is threading.main_thread():
            for each, handler in before.items():
                signal.signal(each, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


@contextlib.contextmanager
def say_seldom() -> Iterator[None]:
    """Limit repeated log lines of libraries to one a minute."""
    seldom = Seldom()
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(seldom)
    try:
        yield
    finally:
        for name in _TALKATIVE:
            logging.getLogger(name).removeFilter(seldom)


class WebServer:
    """Serves ``app`` on ``host:port``; port 0 takes a free one, told by ``port`` once started."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        connections: int,
        *,
        setting: str = "NOD_PORT",
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        """``connections``: how many there may be at a time. ``setting`` names the port.

        ``ending`` ends every stream, which would be waited for otherwise.
        """
        self.app = app
        self._host, self.port, self._setting = host, port, setting
        self._ending = ending
        self._server = make_bounded_server(app, connections)
        self._quiet = contextlib.ExitStack()
        self._listening: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None

    def listen(self) -> socket.socket:
        """Take the port; raises SettingsError when it is taken. Who connects waits until `start`."""
        self._listening = listening = listen(self._host, self.port, self._setting)
        self.port = listening.getsockname()[1]
        return listening

    async def start(self) -> None:
        """Serve on the port that was taken."""
        self._quiet.enter_context(say_seldom())
        listening = self._listening or self.listen()
        self._task = asyncio.create_task(self._server.serve([listening]), name="web server")
        await wait_until_started(self._server, self._task)

    async def stop(self) -> None:
        """End every stream, and let the other answers end."""
        self._ending()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._quiet.close()

    def close(self) -> None:
        """Give the port back, also where it never served."""
        if self._listening is not None:
            self._listening.close()


def listen(host: str, port: int, setting: str = "NOD_PORT") -> socket.socket:
    """Return a listening socket.

    Raises SettingsError, naming the variable and the fix, if it can't be had.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # here, since only this tells when two bound the same port at the same time
    except (OSError, UnicodeError) as error:
        listening.close()
        raise _cannot_listen(host, port, setting, error) from None
    return listening


def _cannot_listen(host: str, port: int, setting: str, error: Exception) -> SettingsError:
    what = f"cannot listen on {host}:{port} ({getattr(error, 'strerror', None) or error})"
    if isinstance(error, PermissionError):
        return SettingsError(f"{setting}: {what}; choose a port above 1023")
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return SettingsError(f"{setting}: {what}; stop what listens there, or choose another port")
    return SettingsError(f"NOD_HOST: {what}; name an address of this machine")


def metrics_route(token: str, figures: Callable[[], Awaitable[bytes]]) -> Route:
    """Return the route ``/metrics``, which needs the token; ``figures`` are in Prometheus' text format."""
    wanted = f"Bearer {token}".encode()

    async def metrics(request: Request) -> Response:
        offered = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(offered, wanted):
            raise Unauthenticated("Send the token of NOD_METRICS_TOKEN: Authorization: Bearer <token>.")
        return Response(await figures(), media_type=_FORMAT)

    return Route("/metrics", metrics)


def metrics_server(page: Route, host: str, port: int) -> WebServer:
    """Return a server of this page alone, for a worker, which has no other page."""
    application = Starlette(routes=[page], exception_handlers={Fault: answer_fault})
    return WebServer(application, host, port, _ASKING, setting="NOD_METRICS_PORT")
