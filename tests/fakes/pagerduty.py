"""PagerDuty's Events API v2 on loopback: it keeps alerts, and refuses what the real one refuses.

Its answers are those of https://developer.pagerduty.com/docs/send-alert-event.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

KEY = "R0123456789abcdefghijklmnopqrstu"
_SEVERITIES = frozenset({"critical", "error", "warning", "info"})
_ACTIONS = frozenset({"trigger", "acknowledge", "resolve"})
_MAX_BYTES = 512 * 1024


class FakePagerDuty:
    """One integration: ``alerts`` by dedup_key, each ``triggered`` or ``resolved``.

    ``troubles`` are what the next events meet instead: a status, or ``drop`` for a connection that ends
    without an answer. While ``holding`` is cleared an event is taken in and not answered.
    """

    def __init__(self) -> None:
        self.alerts: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []  # that were accepted
        self.headers: list[dict[str, str]] = []
        self.troubles: list[int | str] = []
        self.received = asyncio.Event()
        self.going_on = asyncio.Event()
        self.going_on.set()
        self.answer: Callable[[bytes], tuple[int, dict[str, Any]]] = self._answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v2/enqueue"

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator["FakePagerDuty"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            key.lower(): value for key, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers["content-length"]))
        self.headers.append(headers)
        self.received.set()
        await self.going_on.wait()
        trouble = self.troubles.pop(0) if self.troubles else 0
        if trouble == "drop":
            writer.close()
            return
        status, answer = self.answer(body) if not trouble else (int(trouble), {"status": "trouble"})
        text = json.dumps(answer)
        retry = "retry-after: 90\r\n" if status == 429 else ""
        writer.write(f"HTTP/1.1 {status} X\r\n{retry}content-length: {len(text)}\r\n\r\n{text}".encode())
        await writer.drain()
        writer.close()

    def _answer(self, body: bytes) -> tuple[int, dict[str, Any]]:
        event = json.loads(body)
        errors = self._find_errors(event, len(body))
        if errors:
            return 400, {"status": "invalid event", "message": "Event object is invalid", "errors": errors}
        self.events.append(event)
        known = event["dedup_key"] in self.alerts
        if event["event_action"] == "trigger":
            self.alerts[event["dedup_key"]] = "triggered"
        elif known:
            self.alerts[event["dedup_key"]] = "resolved"
        return 202, {"status": "success", "message": "Event processed", "dedup_key": event["dedup_key"]}

    def _find_errors(self, event: dict[str, Any], size: int) -> list[str]:
        errors = []
        if event.get("routing_key") != KEY:
            errors.append("Invalid routing key")
        if event.get("event_action") not in _ACTIONS:
            errors.append("'event_action' is invalid")
        if size > _MAX_BYTES or len(event.get("dedup_key", "")) > 255:
            errors.append("Length is too large")
        if event.get("event_action") == "trigger":
            payload = event.get("payload", {})
            missing = [name for name in ("summary", "source", "severity") if not payload.get(name)]
            errors += [f"'payload.{name}' is missing or blank" for name in missing]
            if payload.get("severity") not in _SEVERITIES:
                errors.append("'payload.severity' is invalid")
            if len(payload.get("summary", "")) > 1024:
                errors.append("'payload.summary' is too long")
        elif not event.get("dedup_key"):
            errors.append("'dedup_key' is missing or blank")
        return errors
