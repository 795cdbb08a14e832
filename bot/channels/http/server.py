"""The web server inside Nod's own event loop."""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from bot.channels.http.crowd import ACCEPTED_TOGETHER, Crowd, Seldom, raise_file_limit
from bot.channels.http.site import Site
from bot.errors import SettingsError

_TALKATIVE = ("asyncio", "uvicorn.error")


class QuietServer(uvicorn.Server):
    """Signals are the application's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bounded(application: ASGIApp, connections: int, patience: Callable[[], float]) -> QuietServer:
    """A server that holds so many connections at a time, and half of the files it may open at most.

    ``patience``: for how many seconds each may keep the headers of a request back.
    """
    most = min(connections, raise_file_limit() // 2)
    return QuietServer(
        uvicorn.Config(
            application,
            http=Crowd(most, patience).protocol(),
            backlog=ACCEPTED_TOGETHER,
            limit_concurrency=most + 1,
            log_config=None,
            proxy_headers=False,  # believes any program of this machine; `Forwarded` does it
            lifespan="off",
            timeout_graceful_shutdown=2,
            server_header=False,
        )
    )


@contextlib.contextmanager
def said_seldom() -> Iterator[None]:
    """What libraries say again and again in a flood is in the log once a minute."""
    seldom = Seldom()
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(seldom)
    try:
        yield
    finally:
        for name in _TALKATIVE:
            logging.getLogger(name).removeFilter(seldom)


class WebServer:
    """Serves ``site`` on ``host:port``; port 0 takes a free one, told by ``port`` once started."""

    def __init__(self, site: Site, host: str, port: int, connections: int = 1000) -> None:
        """``connections``: how many there may be at a time."""
        self.site = site
        self._host = host
        self.port = port
        self._server = bounded(site, connections, lambda: site.channel.pace.headers)
        self._quiet = contextlib.ExitStack()
        self._listening: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None

    def listen(self) -> socket.socket:
        """Take the port; raises SettingsError when it is taken. Who connects waits until `start`."""
        self._listening = listening = listen(self._host, self.port)
        self.port = listening.getsockname()[1]
        return listening

    async def start(self) -> None:
        """Serve on the port that was taken."""
        self._quiet.enter_context(said_seldom())
        listening = self._listening or self.listen()
        self._task = asyncio.create_task(self._server.serve([listening]), name="web server")
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """End every stream, which would be waited for otherwise, and let the other answers end."""
        self.site.channel.end_streams()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._quiet.close()

    def close(self) -> None:
        """Give the port back, also where it never served."""
        if self._listening is not None:
            self._listening.close()


def listen(host: str, port: int, setting: str = "NOD_PORT") -> socket.socket:
    """A listening socket; raises SettingsError, naming the variable and the fix, if it can't be had."""
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
