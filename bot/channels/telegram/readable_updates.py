"""Updates as Telegram sends them, checked one by one before the library reads them together.

The library decodes a getUpdates answer as a whole. If it can't decode one update, such as one without a
required field, none of them arrives, as long as Telegram stores that update.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from telegram import Update
from telegram.error import TelegramError

from bot.channels.telegram.transport import BotRequests
from bot.telemetry.logs import logger

log = logger(__name__)


def make_decodable(raw: object) -> dict[str, Any] | None:
    """Return an update that the library can decode; one that it can't decode is reduced to its id.

    None without an id: it can't even be acknowledged.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("update_id"), int):
        return None
    try:
        Update.de_json(raw, None)
    except Exception as error:  # noqa: BLE001 - whatever the decoder trips over, the others must arrive
        kinds = sorted(key for key in raw if key != "update_id")
        why = f"{type(error).__name__}: {error}"
        log.error("unreadable telegram update skipped", update=raw["update_id"], kinds=kinds, why=why)
        return {"update_id": raw["update_id"]}
    return raw


class ReadableUpdates(BotRequests):
    """HTTP client for PTB's polls, which reads each update of an answer by itself.

    ``heard_at``: the time of Telegram's last good answer, by ``elapsed``; it answers each poll within
    seconds. ``contested_at``: the time at which Telegram last said that another program polls with the token.
    """

    def __init__(self, elapsed: Callable[[], float]) -> None:
        super().__init__(elapsed, connections=1)
        self.heard_at: float | None = None
        self.contested_at: float | None = None

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        """Make a call and note its outcome. Raises TelegramError for a wrong token.

        Telegram answers a wrong token with 401 or 404. PTB's own errors for these statuses would stop its
        polling for good, so another error is raised.
        """
        status, payload = await super().do_request(*args, **kwargs)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND):
            raise TelegramError(f"Telegram does not know this bot token ({status}).")
        if status == HTTPStatus.OK:
            self.heard_at = self._elapsed()
        elif status == HTTPStatus.CONFLICT:
            self.contested_at = self._elapsed()
        return status, payload

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Parse an answer for PTB, with only such updates as PTB can decode. Raises TelegramError."""
        answer: Any = BotRequests.parse_json_payload(payload)
        if not isinstance(answer, dict):
            raise TelegramError("Invalid server response")
        if not answer.get("ok"):
            return answer
        if not isinstance(answer.get("result"), list):
            raise TelegramError("Invalid server response")  # the library waits longer and longer after this
        updates = [make_decodable(raw) for raw in answer["result"]]
        return answer | {"result": [update for update in updates if update is not None]}
