"""Who listens to which conversation right now. Nothing is kept: who comes later reads the rows."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bot.domain.events import (
    ProposalOpened,
    TextDelta,
    TextRestarted,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)

Listener = asyncio.Queue[tuple[TurnEvent | None, dict[str, Any]]]


class Hub:
    """Hands a turn's events to every listener of its conversation, by address key."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = defaultdict(set)

    @contextmanager
    def listen(self, key: str) -> Iterator[Listener]:
        listener: Listener = asyncio.Queue()
        self._listeners[key].add(listener)
        try:
            yield listener
        finally:
            self._listeners[key].discard(listener)
            if not self._listeners[key]:
                del self._listeners[key]

    def heard(self, key: str) -> bool:
        return key in self._listeners

    def publish(self, key: str, event: TurnEvent | None, payload: dict[str, Any]) -> None:
        for listener in self._listeners.get(key, ()):
            listener.put_nowait((event, payload))


def payload(event: TurnEvent) -> dict[str, Any] | None:
    """The event as JSON for listeners; None for what is told with more detail elsewhere."""
    match event:
        case TextDelta(text):
            return {"type": "delta", "text": text}
        case TextRestarted():
            return {"type": "restart"}
        case ToolStarted(call_id, tool_name, summary, arguments):
            return {
                "type": "tool_call_start",
                "call_id": call_id,
                "tool_name": tool_name,
                "summary": summary,
                "arguments": dict(arguments),
            }
        case ToolFinished(call_id, tool_name, ok, result):
            return {
                "type": "tool_call_result",
                "call_id": call_id,
                "tool_name": tool_name,
                "ok": ok,
                "result": result,
            }
        case TurnEnded(ending):
            return {"type": "done", "ending": str(ending)}
        case TurnFailed(explanation):
            return {"type": "error", "error": explanation}
        case ProposalOpened():
            return None
