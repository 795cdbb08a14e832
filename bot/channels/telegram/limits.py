"""Rate limits of Telegram: one queue of requests for each chat, the urgent first.

PTB's own limiter stops every chat when one is told to wait; here a 429 holds up only the chat it was for.
Several processes tell each other what they send and what they were told, so that they keep one pace. Edits
and sends of a chat count together. Numbers:
https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this
"""

import asyncio
import heapq
import itertools
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Any

from telegram.error import RetryAfter
from telegram.ext import BaseRateLimiter

from bot.channels.connecting import PATIENCE, Waits
from bot.domain.jobs import Peers

TEXT_UNITS = 4096  # UTF-16 code units in one message
CAPTION_UNITS = 1024
ENTITIES = 100
TOAST_CHARS = 200  # characters in the answer to a button
CALLBACK_BYTES = 64
_ALL_CHATS = (30, 1.1)  # requests, seconds: a little longer than Telegram's, for what is on its way
_GROUP = (20, 61.0)
_PERSON = (30, 31.0)  # 1/s sustained; short bursts are allowed
_MAX_GROUP_PREVIEWS = 12  # of the 20 a minute; the rest is kept for cards and final texts
_GROUP_PREVIEW_SECONDS = 3.0  # seconds between two previews
_PERSON_PREVIEW_SECONDS = 0.5
_MAX_RETRIES = 3
_MAX_KEPT_CHATS = 1000
_MAX_WAITING_PRESSES = 40  # of a chat; only a client that presses by itself has more
_MAX_WAITING_ENDS = 5  # cards of a chat that wait to say how they ended; the rest is drawn a moment later
_UNPACED_METHODS = ("sendMessageDraft", "sendChatAction")
_SENT_EVENT = "telegram sent"  # what processes tell each other


class Urgency(IntEnum):
    """Precedence of a call, as its ``rate_limit_args``: in a chat that has to wait, the lower goes first."""

    PRESSED = 0  # what a person pressed a button for
    TEXT = 1  # what someone waits to read
    ENDED = 2  # a card that says how it ended; the one that ended last goes first
    OPEN = 3  # a card that will change again: refused while the chat is busy, and drawn a moment later
    PREVIEW = 4  # not worth waiting for: a 429 is raised straight away


_URGENCY_SHARES = {Urgency.ENDED: 0.85, Urgency.OPEN: 0.5}
"""Of a chat's requests; the rest is kept for what people wait for."""


@dataclass(slots=True)
class _ChatQueue:
    """One chat: when it was last written to, and for how long it must not be."""

    blocked: Callable[[], float] = lambda: 0.0  # seconds
    sent: deque[float] = field(default_factory=lambda: deque(maxlen=_ALL_CHATS[0]))
    last_preview: float = float("-inf")
    waiting: list[tuple[int, int]] = field(default_factory=list)  # urgency and number; a heap
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Let everyone who waits look again whether it is their turn."""
        self.changed.set()
        self.changed = asyncio.Event()

    def due(self, now: float, count: int, seconds: float) -> float:
        """Return the time of the next request: now, or later."""
        while self.sent and self.sent[0] <= now - seconds:
            self.sent.popleft()
        free = self.sent[-count] + seconds if len(self.sent) >= count else now
        return max(now + self.blocked(), free)

    def is_used(self, now: float) -> bool:
        """Return whether anything of it counts still."""
        recent = self.due(now, *_GROUP) > now or now - self.last_preview <= _GROUP_PREVIEW_SECONDS
        return bool(self.waiting or recent or self.sent)


class ChatPace(BaseRateLimiter[int]):
    """Keeps every request within the limits of its chat; ``now`` is in seconds, only differences count."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._all = _ChatQueue()
        self._lines: dict[int, _ChatQueue] = {}
        self._numbers = itertools.count()
        self._waits = Waits("telegram", now)
        self._others: Peers | None = None

    def share(self, others: Peers) -> None:
        """Keep one pace with the other processes: what they send counts here, and their 429 holds here."""
        self._others = others
        self._waits.share(others)
        others.on(_SENT_EVENT, self._count_sent)

    async def initialize(self) -> None:
        """Nothing to open."""

    async def shutdown(self) -> None:
        """Nothing to close."""

    def claim_preview(self, chat_id: int) -> bool:
        """Tell if an unfinished text may be shown in this chat now; if so, take the place."""
        line, now = self._line(chat_id), self._now()
        window = _window(chat_id)
        gap = _PERSON_PREVIEW_SECONDS if chat_id > 0 else _GROUP_PREVIEW_SECONDS
        if line.due(now, *window) > now or now - line.last_preview < gap:
            return False
        if chat_id < 0 and len(line.sent) >= _MAX_GROUP_PREVIEWS:
            return False
        line.last_preview = now
        return True

    def busy(self, chat_id: int) -> bool:
        """Return whether the next message to this chat has to wait."""
        line = self._line(chat_id)
        return bool(line.waiting) or line.due(self._now(), *_window(chat_id)) > self._now()

    async def process_request(
        self,
        callback: Callable[..., Coroutine[Any, Any, Any]],
        args: Any,
        kwargs: dict[str, Any],
        endpoint: str,
        data: dict[str, Any],
        rate_limit_args: int | None,
    ) -> Any:
        chat_id = data.get("chat_id")
        if not isinstance(chat_id, int) or endpoint in _UNPACED_METHODS:
            return await callback(*args, **kwargs)
        line, (count, seconds) = self._line(chat_id), _window(chat_id)
        urgency = Urgency.TEXT if rate_limit_args is None else Urgency(rate_limit_args)
        window = int(count * _URGENCY_SHARES.get(urgency, 1)), seconds
        if urgency is Urgency.OPEN and (line.waiting or line.due(self._now(), *window) > self._now()):
            raise RetryAfter(1)
        if urgency is Urgency.ENDED and len(line.waiting) >= _MAX_WAITING_ENDS:
            raise RetryAfter(1)  # a chat's cards may not hold all places where cards are drawn
        if urgency is Urgency.PRESSED and len(line.waiting) >= _MAX_WAITING_PRESSES:
            raise RetryAfter(1)
        for attempt in range(_MAX_RETRIES + 1):
            await self._wait(line, window, urgency)
            self._count_sent(chat_id)
            if self._others is not None:
                self._others.broadcast(_SENT_EVENT, chat_id)
            try:
                return await callback(*args, **kwargs)
            except RetryAfter as refused:
                told = refused.retry_after  # a timedelta where PTB_TIMEDELTA is set, see channel.py
                pause = told.total_seconds() if isinstance(told, timedelta) else told
                self._waits.told(str(chat_id), pause)
                if attempt == _MAX_RETRIES or urgency is Urgency.PREVIEW:
                    raise
        return None

    async def _wait(self, line: _ChatQueue, window: tuple[int, float], urgency: Urgency) -> None:
        """Return when it is this call's turn; what is more urgent goes first, also if it came later.

        Raises RetryAfter where the chat takes nothing for longer than `PATIENCE`.
        """
        number = next(self._numbers)
        mine = urgency, -number if urgency is Urgency.ENDED else number
        heapq.heappush(line.waiting, mine)
        try:
            while True:
                blocked = line.blocked()
                if blocked > PATIENCE:
                    raise RetryAfter(math.ceil(blocked))
                due = max(line.due(self._now(), *window), self._all.due(self._now(), *_ALL_CHATS))
                if line.waiting[0] != mine:
                    await line.changed.wait()
                elif due > self._now():
                    await self._sleep(due - self._now())
                else:
                    break
        finally:
            line.waiting.remove(mine)
            heapq.heapify(line.waiting)
            line.wake()

    def _count_sent(self, chat_id: int) -> None:
        for line in (self._line(chat_id), self._all):
            line.sent.append(self._now())

    def _line(self, chat_id: int) -> _ChatQueue:
        if len(self._lines) > _MAX_KEPT_CHATS:
            now = self._now()
            self._lines = {chat: line for chat, line in self._lines.items() if line.is_used(now)}
        return self._lines.setdefault(
            chat_id, _ChatQueue(lambda: self._waits.count_seconds_left(str(chat_id)))
        )


def _window(chat_id: int) -> tuple[int, float]:
    """Return the number of requests a chat takes, and in how many seconds. People have positive ids."""
    return _PERSON if chat_id > 0 else _GROUP
