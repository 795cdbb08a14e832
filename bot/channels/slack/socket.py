"""Socket Mode: one websocket to Slack, opened with an address that each connection has to ask for again.

The SDK keeps an open connection open. It also tries permanently to open the first one, whatever Slack
answers; so that is done here, where a refused token is told apart from a Slack that cannot be reached.
"""

import asyncio
import logging
import time

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp

from bot.channels.slack.errors import translated
from bot.channels.slack.workspaces import make_client
from bot.errors import ChannelError
from bot.settings import Settings

_PATIENCE = 10.0  # seconds for the websocket to open


class _OneLine(logging.Filter):
    """The SDK logs a traceback at each try; here it is a line, and the same one only once."""

    last = ""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = None
        words = record.getMessage()
        new, self.last = words != self.last, words
        return new


_logger = logging.getLogger("bot.slack.socket")
_logger.setLevel(logging.ERROR)  # an explicit level: the SDK formats its debug lines at NOTSET
_logger.addFilter(_OneLine())


class Socket:
    """The connection of one app; made inside the running loop."""

    def __init__(self, app: AsyncApp, settings: Settings, token: str) -> None:
        self._handler = AsyncSocketModeHandler(app, token, logger=_logger)
        self._client = make_client(settings, None)
        self._token = token
        self._opened: float | None = None  # of time.time(), as the SDK counts

    async def open(self) -> None:
        """Connect; raises ChannelError, also for what may work later: see `code_behind`."""
        with translated():
            opened = await self._client.apps_connections_open(app_token=self._token)
        self._handler.client.wss_uri = str(opened["url"])
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._handler.connect_async()  # type: ignore[no-untyped-call]
        except TimeoutError:
            raise ChannelError("Slack's websocket did not open in time") from None
        self._opened = time.time()

    @property
    def heard(self) -> float | None:
        """When Slack last answered a ping, which the SDK sends every few seconds; of time.time()."""
        self._opened = self._handler.client.last_ping_pong_time or self._opened
        return self._opened

    async def close(self) -> None:
        await self._handler.close_async()  # type: ignore[no-untyped-call]
