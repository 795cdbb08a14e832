"""Who listens to which conversation right now. Nothing is kept: who comes later reads the rows."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from bot.domain.events import (
    AnswerBegun,
    ProposalOpened,
    TextDelta,
    TextRestarted,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    Waited,
)
from bot.domain.redaction import redact, redact_text

Heard = tuple[TurnEvent | None, dict[str, Any]]
"""The payload is empty where there is nothing for people."""
Listener = asyncio.Queue[Heard | None]
"""None says that nothing more will come."""

_MOST = 1000  # events that a slow reader may be behind


class Hub:
    """Hands a turn's events to every listener of its conversation, by address key."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._somebody = asyncio.Event()
        self.closed = False

    def close(self) -> None:
        """Close the hub: all listeners, present and future, are told that nothing more will come."""
        self.closed = True
        for listeners in self._listeners.values():
            for listener in listeners:
                _end(listener)

    @contextmanager
    def listen(self, key: str) -> Iterator[Listener]:
        listener: Listener = asyncio.Queue(_MOST)
        if self.closed:
            listener.put_nowait(None)
        self._listeners[key].add(listener)
        self._somebody.set()
        try:
            yield listener
        finally:
            self._listeners[key].discard(listener)
            if not self._listeners[key]:
                del self._listeners[key]
            if not self._listeners:
                self._somebody.clear()

    @property
    def alone(self) -> bool:
        """No one listens to anything."""
        return not self._listeners

    async def somebody(self, seconds: float) -> None:
        """Return once anybody listens, or after ``seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._somebody.wait()

    def heard(self, key: str) -> bool:
        return key in self._listeners

    def publish(self, key: str, event: TurnEvent | None, payload: dict[str, Any]) -> None:
        for listener in self._listeners.get(key, ()):
            if listener.full():
                _end(listener)
            else:
                listener.put_nowait((event, payload))


def _end(listener: Listener) -> None:
    """Its stream ends: the server stops, or its reader has fallen behind and reads the rows instead."""
    while not listener.empty():
        listener.get_nowait()
    listener.put_nowait(None)


def payload(event: TurnEvent) -> dict[str, Any] | None:
    """The event as JSON for listeners; None for what is told with more detail elsewhere."""
    match event:
        case TextDelta(text):
            return {"type": "delta", "content": text, "text": text}
        case ThoughtDelta(text):
            return {"type": "thought", "text": text}
        case TextRestarted():
            return {"type": "restart"}
        case Waited(words):
            return {"type": "thought", "text": words}
        case ToolStarted(call_id, tool_name, summary, arguments):
            return {
                "type": "tool_call_start",
                "call_id": call_id,
                "tool_name": tool_name,
                "summary": redact_text(summary),
                "arguments": redact(arguments),
            }
        case ToolProgress(call_id, tool_name, words):
            return {
                "type": "tool_call_progress",
                "call_id": call_id,
                "tool_name": tool_name,
                "text": redact_text(words),
            }
        case ToolFinished(call_id, tool_name, ok, result):
            return {
                "type": "tool_call_result",
                "call_id": call_id,
                "tool_name": tool_name,
                "ok": ok,
                "result": redact_text(result),
            }
        case TurnEnded(ending):
            return {"type": "done", "ending": str(ending)}
        case TurnFailed(explanation):
            return {"type": "error", "error": explanation}
        case AnswerBegun() | ProposalOpened():
            return None
