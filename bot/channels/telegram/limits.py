"""What Telegram accepts, and the pace it accepts it at: one line of waiting per chat.

PTB's own limiter stops every chat when one is told to wait; here a 429 holds up only the chat it was for.
Numbers: https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from telegram.error import RetryAfter
from telegram.ext import BaseRateLimiter

TEXT_UNITS = 4096  # UTF-16 code units in one message
CAPTION_UNITS = 1024
ENTITIES = 100
TOAST = 200  # characters in the answer to a button
CALLBACK_BYTES = 64

PREVIEW = 1
"""``rate_limit_args`` of a call that is not worth waiting for: a 429 is raised at once."""

_ALL_CHATS = (30, 1.0)  # requests, seconds
_GROUP = (20, 60.0)
_PERSON = (30, 30.0)  # 1/s sustained; short bursts are allowed
_GROUP_PREVIEWS = 12  # of the 20 a minute; the rest is kept for cards and final texts
_GROUP_GAP = 3.0  # seconds between two previews
_PERSON_GAP = 0.5
_RETRIES = 3
_QUIET_CHATS = 1000


@dataclass(slots=True)
class _Line:
    """One chat: when it was last written to, and until when it must not be."""

    sent: deque[float] = field(default_factory=deque)
    blocked_until: float = 0.0
    last_preview: float = float("-inf")
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def due(self, now: float, count: int, seconds: float) -> float:
        """When the next request may go out: now, or later."""
        while self.sent and self.sent[0] <= now - seconds:
            self.sent.popleft()
        free = self.sent[-count] + seconds if len(self.sent) >= count else now
        return max(now, free, self.blocked_until)


class ChatPace(BaseRateLimiter[int]):
    """Keeps every request within the limits of its chat; ``now`` is in seconds, only differences count."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._all = _Line()
        self._lines: dict[int, _Line] = {}

    async def initialize(self) -> None:
        """Nothing to open."""

    async def shutdown(self) -> None:
        """Nothing to close."""

    def preview(self, chat_id: int) -> bool:
        """Whether an unfinished text may be shown in this chat now; true takes the place."""
        line, now = self._line(chat_id), self._now()
        window = _PERSON if chat_id > 0 else _GROUP
        gap = _PERSON_GAP if chat_id > 0 else _GROUP_GAP
        if line.due(now, *window) > now or now - line.last_preview < gap:
            return False
        if chat_id < 0 and len(line.sent) >= _GROUP_PREVIEWS:
            return False
        line.last_preview = now
        return True

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
        if not isinstance(chat_id, int) or endpoint == "sendMessageDraft":
            return await callback(*args, **kwargs)
        line = self._line(chat_id)
        for attempt in range(_RETRIES + 1):
            await self._wait(line, _PERSON if chat_id > 0 else _GROUP)
            try:
                return await callback(*args, **kwargs)
            except RetryAfter as refused:
                told = refused.retry_after  # a timedelta where PTB_TIMEDELTA is set, see channel.py
                seconds = told.total_seconds() if isinstance(told, timedelta) else told
                line.blocked_until = max(line.blocked_until, self._now() + seconds)
                if attempt == _RETRIES or rate_limit_args == PREVIEW:
                    raise
        return None

    async def _wait(self, line: _Line, window: tuple[int, float]) -> None:
        async with line.turn:
            while (
                due := max(line.due(self._now(), *window), self._all.due(self._now(), *_ALL_CHATS))
            ) > self._now():
                await self._sleep(due - self._now())
            line.sent.append(self._now())
            self._all.sent.append(self._now())

    def _line(self, chat_id: int) -> _Line:
        if len(self._lines) > _QUIET_CHATS:
            now = self._now()
            idle = [
                chat
                for chat, line in self._lines.items()
                if not line.turn.locked()
                and line.due(now, *_GROUP) <= now
                and not line.sent
                and now - line.last_preview > _GROUP_GAP
            ]
            for chat in idle:
                del self._lines[chat]
        return self._lines.setdefault(chat_id, _Line())
