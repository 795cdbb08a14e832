"""Structured logs without secrets: one event with its values a line, JSON where no one watches."""

import atexit
import contextlib
import logging
import os
import queue
import sys
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from logging.handlers import QueueHandler, QueueListener
from typing import Any

from bot.domain.redaction import redact

_CHATTY = (
    "alembic",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "markdown_it",
    "mcp",
    "procrastinate",
    "uvicorn.access",
)
_CLOSED = "socket.send() raised exception."  # asyncio's, once for each write after a caller has left
_KEPT = 2000  # lines
_DROPPED = ("dropped", "logs")  # level and part, in `problems`
_AT_THE_END, _LOOK = 1.0, 0.01  # seconds
_ERRORS_ALONE = ("apscheduler",)  # it warns of each tick that comes while the last one is still at work
_MUTE = ("mcp.client.auth",)  # it logs what a sign-in server answers, tokens and all


_secrets: ContextVar[tuple[str, ...]] = ContextVar("secrets", default=())


@contextmanager
def hiding(secrets: tuple[str, ...]) -> Iterator[None]:
    """Hide these secrets, too, in everything that is logged inside the context."""
    token = _secrets.set((*_secrets.get(), *secrets))
    try:
        yield
    finally:
        _secrets.reset(token)


def _without_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    hidden: MutableMapping[str, Any] = redact(event, None, _secrets.get())
    return hidden


def _outage_in_a_line(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Log an outage of the database without a traceback, which every sweep would repeat."""
    from bot.telemetry.outages import in_a_line  # what only prints does without SQLAlchemy

    found = event.get("exc_info")
    error = sys.exc_info()[1] if found is True else found
    if isinstance(error, BaseException) and (why := in_a_line(error)):
        del event["exc_info"]
        event["why"] = why
    return event


problems: Counter[tuple[str, str]] = Counter()
"""How many warnings and errors this process logged, and lines it dropped, by level and part of Nod."""


def _count(source: Any, level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    rooms = getattr(source, "name", "").split(".")
    if rooms[0] == "bot" and level in {"warning", "error"}:
        one_channel = rooms[1] == "channels" and len(rooms) > 3  # noqa: PLR2004 - bot.channels.slack.inbound
        problems[level, rooms[2 if one_channel else 1]] += 1
    return event


class _Aside(QueueHandler):
    """A handler that passes lines to a writing thread: a slow reader of the log stops no one.

    What doesn't fit is dropped, and counted in `problems`.
    """

    def __init__(self) -> None:
        lines: queue.Queue[logging.LogRecord] = queue.Queue(_KEPT)
        super().__init__(lines)
        _Listener(lines).start()
        atexit.register(_finish, lines)

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            problems[_DROPPED] += 1


class _Listener(QueueListener):
    def __init__(self, lines: "queue.Queue[logging.LogRecord]") -> None:
        super().__init__(lines)
        self._lines = lines
        self._told = 0

    def handle(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            # past locks of handlers and of sys.stderr, which the end would wait for
            os.write(2, f"{record.getMessage()}\n".encode(errors="replace"))
        many = problems[_DROPPED] - self._told
        if many and self._lines.qsize() < _KEPT // 2:
            self._told += many
            logger(__name__).warning("lines of the log did not fit and were dropped", lines=many)


def _finish(lines: "queue.Queue[logging.LogRecord]") -> None:
    """Wait a moment for the remaining lines; the process does not wait longer for a reader."""
    until = time.monotonic() + _AT_THE_END
    while lines.unfinished_tasks and time.monotonic() < until:
        time.sleep(_LOOK)


def configure(level: str, *, aside: bool = False) -> None:
    """Set up logging for the whole process; libraries' own records go the same way.

    ``aside``: lines are written by a thread, for a process that may not wait for who reads them.
    """
    import structlog

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _outage_in_a_line,
        structlog.processors.format_exc_info,
        _without_secrets,
        _count,
    ]
    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
    )
    handler: logging.Handler = _Aside() if aside else logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    handler.addFilter(lambda record: record.getMessage() != _CLOSED)
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    for name in _ERRORS_ALONE:
        logging.getLogger(name).setLevel(max(logging.ERROR, root.level))
    for mute in _MUTE:
        logging.getLogger(mute).setLevel(logging.CRITICAL)


class _Logger:
    """structlog's logger of a name. It is loaded with the first event: most commands log nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _load(self) -> Any:
        import structlog

        return structlog.get_logger(self._name)

    def __getattr__(self, level: str) -> Any:
        return getattr(self._load, level)


def logger(name: str) -> Any:
    """Return a logger whose values are named, e.g. ``log.info("proposal opened", proposal=id)``."""
    return _Logger(name)
