"""The two ways in which Slack's requests arrive: Socket Mode, and signed HTTP.

Socket Mode is one websocket, whose address Slack gives for each connection. The SDK replaces a connection
that is lost. It would also retry the first connection without end, even if Slack refuses the token. So
`Socket` opens the first connection itself. For HTTP there are the checks of a request, `is_signed` and
`is_readable`.
"""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.signature import SignatureVerifier

from bot.channels.slack.client import make_client
from bot.channels.slack.errors import translate_errors
from bot.errors import ChannelError
from bot.settings import Settings
from bot.telemetry.logs import logger

log = logger(__name__)

_OPEN_SECONDS = 10.0  # the time for the websocket to open


class _WithoutRepeats(logging.Filter):
    """A filter for the SDK's log: no traceback at each try, and the same line only once."""

    last_line = ""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = None
        line = record.getMessage()
        is_new = line != self.last_line
        self.last_line = line
        return is_new


_sdk_logger = logging.getLogger("bot.slack.socket")
_sdk_logger.setLevel(logging.ERROR)  # an explicit level: the SDK formats its debug lines at NOTSET
_sdk_logger.addFilter(_WithoutRepeats())


class Socket:
    """The connection of one app; made inside the running loop.

    ``contested``: another connection of this app gets some of the messages and presses. Slack's greeting,
    ``hello``, has the number of connections. Only the first greeting can set this, since a later number may
    include the lost connection that the new one replaces. A number of 1 clears it.
    """

    def __init__(self, app: AsyncApp, settings: Settings, token: str, *, is_only_process: bool) -> None:
        """``is_only_process``: no other process of this Nod has a connection."""
        self.contested = False
        self._may_set_contested = is_only_process  # at the first greeting
        self._handler = AsyncSocketModeHandler(app, token, logger=_sdk_logger)
        self._handler.client.message_listeners.append(self._read_connection_count)
        self._client = make_client(settings, None)
        self._token = token
        self._last_sign: float | None = None  # the time of Slack's last sign of life, in Unix seconds

    async def open(self) -> None:
        """Connect. Raises ChannelError for any refusal.

        With `code_behind` of ``errors.py`` a caller can tell a refused token from a temporary fault.
        """
        with translate_errors():
            opened = await self._client.apps_connections_open(app_token=self._token)
        self._handler.client.wss_uri = str(opened["url"])
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._handler.connect_async()  # type: ignore[no-untyped-call]
        except TimeoutError:
            raise ChannelError("Slack's websocket did not open in time") from None
        self._last_sign = time.time()

    async def _read_connection_count(
        self, _client: object, message: dict[str, Any], _raw_message: str | None
    ) -> None:
        """Set or clear ``contested`` by the greeting that Slack sends on each connection."""
        if message.get("type") != "hello":
            return
        connections = message.get("num_connections")
        if connections in (None, 1):
            self.contested = False
        elif self._may_set_contested:
            self.contested = True
            log.error(
                "slack counts other connections of this app; only one gets each message and press",
                connections=connections,
            )
        self._may_set_contested = False

    def last_sign_of_life(self) -> float | None:
        """Return the time of Slack's last answer to a ping, or of the connection, in Unix seconds.

        None before the connection. The SDK sends a ping every few seconds.
        """
        self._last_sign = self._handler.client.last_ping_pong_time or self._last_sign
        return self._last_sign

    async def close(self) -> None:
        await self._handler.close_async()  # type: ignore[no-untyped-call]


def is_signed(secret: str, body: bytes, headers: Mapping[str, str]) -> bool:
    """Tell if Slack signed this body within the last five minutes."""
    try:
        return SignatureVerifier(secret).is_valid_request(body, dict(headers))
    except (ValueError, OverflowError, TypeError):  # no valid timestamp, or a body that is no text
        return False


def is_readable(body: bytes, content_type: str) -> bool:
    """Tell if a body has a shape that Slack sends: a JSON object, or a form that may hold one."""
    try:
        text = body.decode()
        is_form = content_type.startswith("application/x-www-form-urlencoded")
        if not is_form:
            request = json.loads(text)
            return isinstance(request, dict) and isinstance(request.get("event", {}), dict)
        form = parse_qs(text, keep_blank_values=True)
        if "payload" not in form:
            return True
        return isinstance(json.loads(form["payload"][0]), dict)
    except (ValueError, RecursionError):
        return False
