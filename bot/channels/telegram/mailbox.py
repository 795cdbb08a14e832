"""The queue of incoming updates: stored before they are acknowledged, handled in order within a chat.

An update is what Telegram sends: a message, an edit or a press. Both long polling and the webhook put updates
into the queue of python-telegram-bot (PTB) and then acknowledge them. `Mailbox`, that queue, first stores
each update in the database, which drops a second delivery. `OrderedByChat` decides which updates PTB handles
at the same time. The pictures of an album come as one update each; they are handled together.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from telegram import Update
from telegram.error import TelegramError
from telegram.ext import BaseUpdateProcessor

from bot.channels.telegram.places import NAME
from bot.channels.telegram.readable_updates import make_decodable
from bot.domain.chat import Clock
from bot.store import events
from bot.store.database import Database

_MAX_PARALLEL_UPDATES = 512
_ALBUM_SECONDS = 1.0  # the wait for the other pictures of an album


@dataclass(frozen=True, slots=True)
class StoredUpdate:
    """An update in the database, in the row ``row_id``, until it is handled."""

    row_id: int
    update: Update


class Mailbox(asyncio.Queue[object]):
    """PTB's update queue: `Update` goes in, `StoredUpdate` comes out."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        tell_delay: Callable[[Update], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """``tell_delay`` is called with an update that can't be stored yet."""
        super().__init__()
        self._sleep = sleep
        self._database = database
        self._clock = clock
        self._tell_delay = tell_delay

    async def put(self, item: object) -> None:
        """Store an update, then queue it; do nothing if it was stored before.

        Raises TelegramError if it can't be stored; then Telegram sends it again.
        """
        if isinstance(item, Update):
            try:
                row_id = await self._database.write(
                    events.record, NAME, make_event_id(item), item.to_dict(), self._clock()
                )
            except Exception as error:
                await self._tell_delay(item)
                raise TelegramError("the update could not be kept") from error
            if row_id is None:
                return
            item = StoredUpdate(row_id, item)
        await super().put(item)

    async def put_unhandled(self, bot: Any) -> int:
        """Queue the updates that an earlier process stored and did not handle; return their number."""
        rows = await self._database.read(events.list_unhandled, NAME)
        for row_id, payload in rows:
            # an update without contents is marked as handled
            raw = make_decodable(payload) or {"update_id": 0}
            await super().put(StoredUpdate(row_id, Update.de_json(raw, bot)))
        return len(rows)

    async def load_album(self, stored: StoredUpdate, bot: Any) -> list[StoredUpdate]:
        """Return the updates of this update's album, or the update itself if it is of none.

        Empty if the album was handled with an earlier update. Waits `_ALBUM_SECONDS` for the other pictures.
        """
        group = stored.update.message.media_group_id if stored.update.message else None
        if group is None:
            return [stored]
        if stored.row_id not in await self._load_unhandled(group):
            return []
        await self._sleep(_ALBUM_SECONDS)
        payloads = await self._load_unhandled(group)
        return [
            StoredUpdate(row_id, Update.de_json(make_decodable(payload) or {}, bot))
            for row_id, payload in payloads.items()
        ]

    async def _load_unhandled(self, group: str) -> dict[int, Any]:
        """Return the payloads of an album's unhandled updates, by the id of the row."""
        payloads = {}
        for row_id, payload in await self._database.read(events.list_unhandled, NAME):
            message = payload.get("message") or {}
            if message.get("media_group_id") == group:
                payloads[row_id] = payload
        return payloads

    async def mark_handled(self, stored: StoredUpdate) -> None:
        await self._database.write(events.mark_handled, stored.row_id, self._clock())


def make_event_id(update: Update) -> str:
    return f"update:{update.update_id}"


class OrderedByChat(BaseUpdateProcessor):
    """The order of updates: one after another in a chat, chats side by side.

    Presses do not wait here; `TelegramPresses` keeps the order of each person's presses.
    """

    def __init__(self) -> None:
        super().__init__(_MAX_PARALLEL_UPDATES)
        self._locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()

    async def do_process_update(self, update: object, coroutine: Any) -> None:
        if isinstance(update, StoredUpdate) and update.update.callback_query is not None:
            await coroutine  # a press must be answered in seconds, whatever waits in its chat
            return
        async with self._locks.setdefault(_find_chat_id(update), asyncio.Lock()):
            await coroutine

    async def initialize(self) -> None:
        """Nothing to open."""

    async def shutdown(self) -> None:
        """Nothing to close."""


def _find_chat_id(update: object) -> int | None:
    if not isinstance(update, StoredUpdate) or update.update.effective_chat is None:
        return None
    return update.update.effective_chat.id
