"""The queue of incoming updates: stored before they are acknowledged, handled in order within a chat.

Both long polling and the webhook put updates into PTB's queue and then acknowledge; this queue keeps each one
in the database first. A second delivery is dropped there.
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
from bot.channels.telegram.readable_updates import readable
from bot.domain.chat import Clock
from bot.store import events
from bot.store.database import Database

_AT_ONCE = 512
_ALBUM = 1.0  # seconds in which the rest of an album comes


@dataclass(frozen=True, slots=True)
class KeptUpdate:
    """A stored update: row ``row_id`` of the database until it is handled."""

    row_id: int
    update: Update


class Mailbox(asyncio.Queue[object]):
    """PTB's update queue; what comes out of it is `KeptUpdate`. ``later`` is told what can't be kept yet."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        later: Callable[[Update], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        super().__init__()
        self._sleep = sleep
        self._database = database
        self._clock = clock
        self._later = later

    async def put(self, item: object) -> None:
        """Keep an update, then queue it; raises TelegramError when it cannot be kept: it will come again."""
        if isinstance(item, Update):
            try:
                row_id = await self._database.write(
                    events.record, NAME, event_id(item), item.to_dict(), self._clock()
                )
            except Exception as error:
                await self._later(item)
                raise TelegramError("the update could not be kept") from error
            if row_id is None:
                return
            item = KeptUpdate(row_id, item)
        await super().put(item)

    async def put_unhandled(self, bot: Any) -> int:
        """Queue what an earlier process kept and did not handle; return how many."""
        rows = await self._database.read(events.list_unhandled, NAME)
        for row_id, payload in rows:
            raw = readable(payload) or {"update_id": 0}
            await super().put(KeptUpdate(row_id, Update.de_json(raw, bot)))
        return len(rows)

    async def album(self, kept: KeptUpdate, bot: Any) -> list[KeptUpdate]:
        """Return this update with the others of its album; empty where it was handled with them."""
        group = kept.update.message.media_group_id if kept.update.message else None
        if group is None:
            return [kept]
        if kept.row_id not in await self._pieces(group):
            return []
        await self._sleep(_ALBUM)  # each picture is a message of its own
        found = (await self._pieces(group)).items()
        return [KeptUpdate(row_id, Update.de_json(readable(raw) or {}, bot)) for row_id, raw in found]

    async def _pieces(self, group: str) -> dict[int, Any]:
        rows = await self._database.read(events.list_unhandled, NAME)
        return {
            ident: raw for ident, raw in rows if (raw.get("message") or {}).get("media_group_id") == group
        }

    async def mark_handled(self, kept: KeptUpdate) -> None:
        await self._database.write(events.mark_handled, kept.row_id, self._clock())


def event_id(update: Update) -> str:
    return f"update:{update.update_id}"


class OrderedByChat(BaseUpdateProcessor):
    """Order of updates: in one chat one after another, chats side by side. Presses keep it themselves."""

    def __init__(self) -> None:
        super().__init__(_AT_ONCE)
        self._locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()

    async def do_process_update(self, update: object, coroutine: Any) -> None:
        if isinstance(update, KeptUpdate) and update.update.callback_query is not None:
            await coroutine  # it must be answered in seconds, whatever waits in this chat
            return
        async with self._locks.setdefault(_line(update), asyncio.Lock()):
            await coroutine

    async def initialize(self) -> None:
        """Nothing to open."""

    async def shutdown(self) -> None:
        """Nothing to close."""


def _line(item: object) -> object:
    chat = item.update.effective_chat if isinstance(item, KeptUpdate) else None
    return chat.id if chat else None
