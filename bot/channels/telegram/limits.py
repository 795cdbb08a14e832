"""The limits of Telegram: the sizes of messages, and one queue of requests for each chat, most urgent first.

python-telegram-bot ("PTB") passes each call through `ChatPace`, its rate limiter. It counts the requests of a
chat, edits and messages together, in a sliding window, and lets the next request wait until there is room.
PTB's own limiter stops every chat when Telegram refuses a call with 429 (too many requests); here a 429 holds
up only its chat. Several processes tell each other of their requests and of each 429, so that together they
keep one pace.

A *preview* is the unfinished text of an answer (``stream.py``). A card *ends* when its proposal does.
Telegram's numbers: https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this
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
from typing import Any, NamedTuple

from telegram.error import RetryAfter
from telegram.ext import BaseRateLimiter

from bot.channels.connecting import MAX_CALL_WAIT_SECONDS, PlatformWaits
from bot.domain.jobs import Peers

TEXT_UNITS = 4096  # UTF-16 code units in one message
CAPTION_UNITS = 1024  # UTF-16 code units in the caption of a file
ENTITIES = 100  # styles, links and mentions in one message
TOAST_CHARS = 200  # characters in the answer to a press
CALLBACK_BYTES = 64  # the data of a button
_MAX_REQUESTS_BEFORE_PREVIEW = 12
"""The requests in a group's window after which it gets no preview: the rest is for cards and final texts."""
_GROUP_PREVIEW_SECONDS = 3.0  # between two previews in a group
_PERSON_PREVIEW_SECONDS = 0.5  # between two previews in a private chat
_MAX_RETRIES = 3
_MAX_KEPT_CHATS = 1000  # with more, the queues that no longer limit a request are dropped
_MAX_WAITING_PRESSES = 40  # waiting presses of a chat; only a client that presses by itself has more
_MAX_WAITING_ENDS = 5
"""The waiting requests of a chat with which the redraw of an ended card is refused, to be tried later."""
_UNPACED_METHODS = ("sendMessageDraft", "sendChatAction")
_SENT_EVENT = "telegram sent"  # the broadcast to other processes about each request


class _Window(NamedTuple):
    """The most ``requests`` that are allowed within a number of ``seconds``."""

    requests: int
    seconds: float


# a little longer than Telegram's windows, because requests on their way count, too
_ALL_CHATS = _Window(30, 1.1)  # of all chats together
_GROUP = _Window(20, 61.0)  # of one group
_PERSON = _Window(30, 31.0)  # of one private chat: one request a second in the long run, with bursts


class Urgency(IntEnum):
    """Precedence of a call in a chat that has to wait: the lower goes first.

    Callers pass it to PTB as ``rate_limit_args``.
    """

    PRESSED = 0  # the answer to a button
    TEXT = 1  # a text that someone waits for
    ENDED_CARD = 2  # the redraw of a card that ended; the card that ended last goes first
    OPEN_CARD = 3  # the redraw of another card: refused while the chat is busy, and tried later
    PREVIEW = 4  # not repeated after a 429, which is raised


_URGENCY_SHARES = {Urgency.ENDED_CARD: 0.85, Urgency.OPEN_CARD: 0.5}
"""The share of a chat's window that calls of an urgency may fill; without a share, all of it."""


class _Turn(NamedTuple):
    """The place of a waiting request in the queue: the lowest goes first."""

    urgency: int
    number: int


@dataclass(slots=True)
class _ChatQueue:
    """The requests of one chat, or of all chats: the requests sent lately, and the waiting requests."""

    count_blocked_seconds: Callable[[], float] = lambda: 0.0  # returns how long a 429 still holds the chat up
    sent: deque[float] = field(default_factory=lambda: deque(maxlen=_ALL_CHATS.requests))
    """The times of the last requests, the oldest first."""
    last_preview: float = float("-inf")  # the time of the last preview
    waiting: list[_Turn] = field(default_factory=list)
    """The turns of the waiting requests, as a heap."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # a request has left ``waiting``

    def wake(self) -> None:
        """Let all waiting requests check if it is their turn."""
        self.changed.set()
        self.changed = asyncio.Event()

    def find_next_time(self, now: float, window: _Window) -> float:
        """Return the time from which the chat takes one more request: ``now``, or later.

        Drops the requests that have left the window.
        """
        while self.sent and self.sent[0] <= now - window.seconds:
            self.sent.popleft()
        free_at = now
        if len(self.sent) >= window.requests:
            # when the oldest of the last ``window.requests`` requests leaves the window
            free_at = self.sent[-window.requests] + window.seconds
        return max(now + self.count_blocked_seconds(), free_at)

    def is_used(self, now: float) -> bool:
        """Tell if the queue still limits the chat's next request, so that it may not be dropped."""
        has_recent_preview = now - self.last_preview <= _GROUP_PREVIEW_SECONDS
        is_held_up = self.find_next_time(now, _GROUP) > now  # the longest of the windows
        return bool(self.waiting or self.sent) or is_held_up or has_recent_preview


class ChatPace(BaseRateLimiter[int]):
    """Keeps every request within the limits of its chat; ``now`` is in seconds, only differences count."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._all_chats = _ChatQueue()  # counts the requests of all chats; none waits in it
        self._queues: dict[int, _ChatQueue] = {}  # by the chat's id
        self._numbers = itertools.count()  # of requests, in the order in which they come
        self._waits = PlatformWaits("telegram", now)  # the time for which a 429 holds up each chat
        self._peers: Peers | None = None

    def share(self, others: Peers) -> None:
        """Share the pace with other processes: their requests count here, and their refusals hold here."""
        self._peers = others
        self._waits.share(others)
        others.on(_SENT_EVENT, self._count_sent)

    async def initialize(self) -> None:
        """Nothing to open."""

    async def shutdown(self) -> None:
        """Nothing to close."""

    def claim_preview(self, chat_id: int) -> bool:
        """Tell if a preview may be shown in this chat now. If so, it counts as shown."""
        queue = self._get_queue(chat_id)
        now = self._now()
        is_group = chat_id < 0
        pause = _GROUP_PREVIEW_SECONDS if is_group else _PERSON_PREVIEW_SECONDS
        has_room = queue.find_next_time(now, _find_window(chat_id)) <= now
        if not has_room or now - queue.last_preview < pause:
            return False
        if is_group and len(queue.sent) >= _MAX_REQUESTS_BEFORE_PREVIEW:
            return False
        queue.last_preview = now
        return True

    def is_busy(self, chat_id: int) -> bool:
        """Tell if the next message to this chat has to wait."""
        queue = self._get_queue(chat_id)
        now = self._now()
        return bool(queue.waiting) or queue.find_next_time(now, _find_window(chat_id)) > now

    async def process_request(
        self,
        callback: Callable[..., Coroutine[Any, Any, Any]],
        args: Any,
        kwargs: dict[str, Any],
        endpoint: str,
        data: dict[str, Any],
        rate_limit_args: int | None,
    ) -> Any:
        """Make a call of PTB's when it is its turn, and again after a 429, at most `_MAX_RETRIES` times.

        Raises RetryAfter where the chat takes no call of this urgency now.
        """
        chat_id = data.get("chat_id")
        if not isinstance(chat_id, int) or endpoint in _UNPACED_METHODS:
            return await callback(*args, **kwargs)
        urgency = Urgency.TEXT if rate_limit_args is None else Urgency(rate_limit_args)
        window = _find_window(chat_id)
        if urgency in _URGENCY_SHARES:
            window = window._replace(requests=int(window.requests * _URGENCY_SHARES[urgency]))
        queue = self._get_queue(chat_id)
        if self._is_too_long(queue, window, urgency):
            raise RetryAfter(1)
        for attempt in range(_MAX_RETRIES + 1):
            await self._wait(queue, window, urgency)
            self._count_sent(chat_id)
            if self._peers is not None:
                self._peers.broadcast(_SENT_EVENT, chat_id)
            try:
                return await callback(*args, **kwargs)
            except RetryAfter as refused:
                pause = refused.retry_after  # a timedelta where PTB_TIMEDELTA is set, see channel.py
                seconds = pause.total_seconds() if isinstance(pause, timedelta) else pause
                self._waits.note_wait(str(chat_id), seconds)
                if attempt == _MAX_RETRIES or urgency is Urgency.PREVIEW:
                    raise
        return None

    def _is_too_long(self, queue: _ChatQueue, window: _Window, urgency: Urgency) -> bool:
        """Tell if a chat's queue is too long for one more call of this urgency."""
        waiting = len(queue.waiting)
        match urgency:
            case Urgency.PRESSED:
                return waiting >= _MAX_WAITING_PRESSES
            case Urgency.ENDED_CARD:  # each waiting card holds one of the few slots in which cards are drawn
                return waiting >= _MAX_WAITING_ENDS
            case Urgency.OPEN_CARD:
                now = self._now()
                return waiting > 0 or queue.find_next_time(now, window) > now
            case _:
                return False

    async def _wait(self, queue: _ChatQueue, window: _Window, urgency: Urgency) -> None:
        """Return when it is this call's turn; a more urgent call goes first, even if it came later.

        Raises RetryAfter where the chat takes nothing for longer than `MAX_CALL_WAIT_SECONDS`.
        """
        number = next(self._numbers)
        if urgency is Urgency.ENDED_CARD:
            number = -number  # the card that ended last goes first
        own_turn = _Turn(int(urgency), number)
        heapq.heappush(queue.waiting, own_turn)
        try:
            while True:
                blocked_seconds = queue.count_blocked_seconds()
                if blocked_seconds > MAX_CALL_WAIT_SECONDS:
                    raise RetryAfter(math.ceil(blocked_seconds))
                now = self._now()
                next_time = max(
                    queue.find_next_time(now, window), self._all_chats.find_next_time(now, _ALL_CHATS)
                )
                if queue.waiting[0] != own_turn:
                    await queue.changed.wait()
                elif next_time > now:
                    await self._sleep(next_time - now)
                else:
                    break
        finally:
            queue.waiting.remove(own_turn)
            heapq.heapify(queue.waiting)
            queue.wake()

    def _count_sent(self, chat_id: int) -> None:
        """Count a request to a chat, of this process or of another."""
        for queue in (self._get_queue(chat_id), self._all_chats):
            queue.sent.append(self._now())

    def _get_queue(self, chat_id: int) -> _ChatQueue:
        if len(self._queues) > _MAX_KEPT_CHATS:
            now = self._now()
            self._queues = {chat: queue for chat, queue in self._queues.items() if queue.is_used(now)}
        if chat_id not in self._queues:
            self._queues[chat_id] = _ChatQueue(lambda: self._waits.count_seconds_left(str(chat_id)))
        return self._queues[chat_id]


def _find_window(chat_id: int) -> _Window:
    """Return the window of a chat. People have positive ids, groups and channels negative ones."""
    return _PERSON if chat_id > 0 else _GROUP
