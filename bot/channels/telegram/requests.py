"""What Nod calls Telegram with: PTB's HTTP client, which also notes whether Telegram accepts the token."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from telegram.request import HTTPXRequest

from bot.channels.base import SILENT


class BotRequests(HTTPXRequest):
    """So many ``connections`` at most; ``elapsed`` is in seconds, of which only differences count."""

    def __init__(self, elapsed: Callable[[], float], connections: int) -> None:
        super().__init__(connection_pool_size=connections)
        self._elapsed = elapsed
        self._refused: float | None = None

    @property
    def refused(self) -> bool:
        """Whether Telegram refused the token lately, and accepted it in nothing since."""
        return self._refused is not None and self._elapsed() - self._refused <= SILENT

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*args, **kwargs)
        if status == HTTPStatus.UNAUTHORIZED:
            self._refused = self._elapsed()
        elif status == HTTPStatus.OK:
            self._refused = None
        return status, payload
