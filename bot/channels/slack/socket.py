"""Socket Mode: one websocket to Slack, opened with an address that each connection has to ask for again.

The SDK keeps an open connection open. It also tries permanently to open the first one, whatever Slack
answers; so that is done here, where a refused token is told apart from a Slack that cannot be reached.

Slack's signature over HTTP, looked at before anything else reads a request.
"""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.signature import SignatureVerifier

from bot.channels.slack.errors import translate_errors
from bot.channels.slack.workspaces import make_client
from bot.errors import ChannelError
from bot.settings import Settings
from bot.telemetry.logs import logger

log = logger(__name__)

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
    """The connection of one app; made inside the running loop.

    ``contested``: at the first connection Slack counted others of this app, which get some of the messages
    and presses. A later connection may count the one before it, so a count of one ends this and none
    begins it.
    """

    def __init__(self, app: AsyncApp, settings: Settings, token: str, *, alone: bool) -> None:
        """``alone``: no other process of this Nod has a connection."""
        self.contested = False
        self._counts = alone
        self._handler = AsyncSocketModeHandler(app, token, logger=_logger)
        self._handler.client.message_listeners.append(self._count_connections)
        self._client = make_client(settings, None)
        self._token = token
        self._opened: float | None = None  # of time.time(), as the SDK counts

    async def open(self) -> None:
        """Connect; raises ChannelError, also for what may work later: see `code_behind`."""
        with translate_errors():
            opened = await self._client.apps_connections_open(app_token=self._token)
        self._handler.client.wss_uri = str(opened["url"])
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._handler.connect_async()  # type: ignore[no-untyped-call]
        except TimeoutError:
            raise ChannelError("Slack's websocket did not open in time") from None
        self._opened = time.time()

    async def _count_connections(self, _: object, message: dict[str, Any], __: str | None) -> None:
        """Take from Slack's first words on a connection how many the app has (``num_connections``)."""
        if message.get("type") != "hello":
            return
        connections = message.get("num_connections")
        first, self._counts = self._counts, False
        self.contested = connections not in (None, 1) and (first or self.contested)
        if first and self.contested:
            log.error(
                "slack counts other connections of this app; only one gets each message and press",
                connections=connections,
            )

    @property
    def heard(self) -> float | None:
        """When Slack last answered a ping, which the SDK sends every few seconds; of time.time()."""
        self._opened = self._handler.client.last_ping_pong_time or self._opened
        return self._opened

    async def close(self) -> None:
        await self._handler.close_async()  # type: ignore[no-untyped-call]


def is_signed(secret: str, body: bytes, headers: Mapping[str, str]) -> bool:
    """Return whether Slack signed this body within the last five minutes."""
    with suppress(ValueError, OverflowError, TypeError):  # no time, or no text, at all
        return SignatureVerifier(secret).is_valid_request(body, dict(headers))
    return False


def is_readable(body: bytes, content_type: str) -> bool:
    """Tell if a body has a shape that Slack sends: a JSON object, or a form that may hold one."""
    try:
        text = body.decode()
        if not content_type.startswith("application/x-www-form-urlencoded"):
            found = json.loads(text)
            return isinstance(found, dict) and isinstance(found.get("event", {}), dict)
        form = parse_qs(text, keep_blank_values=True)
        return "payload" not in form or isinstance(json.loads(form["payload"][0]), dict)
    except (ValueError, RecursionError):
        return False
