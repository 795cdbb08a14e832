"""The web server inside Nod's own event loop."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI

from bot.errors import SettingsError


class _Server(uvicorn.Server):
    """Signals are the application's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """Serves ``app`` on ``host:port``; port 0 takes a free one, told by ``port`` once started."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        self._host = host
        self.port = port
        self._server = _Server(
            uvicorn.Config(
                app, log_config=None, lifespan="off", timeout_graceful_shutdown=2, server_header=False
            )
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen; raises SettingsError when the port is taken."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self._host, self.port))
        except OSError as error:
            listening.close()
            raise SettingsError(
                f"NOD_PORT: cannot listen on {self._host}:{self.port} ({error.strerror}); choose another port"
            ) from None
        self.port = listening.getsockname()[1]
        self._task = asyncio.create_task(self._server.serve([listening]), name="web server")
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
