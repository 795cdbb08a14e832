"""Structured logs without secrets: each line is an event with its values, in JSON except on a terminal.

`configure` sets up the log of the process. `logger` gives each module its logger, and `redact_in_logs` hides
further secrets for a while.
"""

import atexit
import contextlib
import logging
import os
import queue
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from logging.handlers import QueueHandler, QueueListener
from typing import Any

from bot.domain.redaction import redact

_WARNINGS_ONLY = (
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
_ERRORS_ONLY = ("apscheduler",)  # it warns of each run of a job that is due while the last one runs
_MUTED = ("mcp.client.auth",)  # it logs the answers of sign-in servers, with their tokens
_CLOSED_SOCKET_TEXT = "socket.send() raised exception."
"""The line that asyncio logs for each write after a caller has left."""
_MAX_QUEUED_LINES = 2000
_DROPPED = ("dropped", "logs")  # the key of dropped lines in `problems`, in place of a level and a part
_FINISH_SECONDS = 1.0  # the time that the end of the process waits until the log is written
_FINISH_POLL_SECONDS = 0.01

problems: Counter[tuple[str, str]] = Counter()
"""The number of logged warnings and errors, and of dropped lines, by level and part of Nod."""

_Secrets = Sequence[str] | Callable[[], Sequence[str]]
"""Secrets to hide, or a function that returns them."""

_secrets: ContextVar[tuple[_Secrets, ...]] = ContextVar("secrets", default=())
"""The secrets of each `redact_in_logs` that is entered now."""


@contextmanager
def redact_in_logs(secrets: _Secrets) -> Iterator[None]:
    """Hide these secrets, too, in all that is logged within the context.

    A function is called for each line, since there may be new secrets by then. It must not log.
    """
    token = _secrets.set((*_secrets.get(), secrets))
    try:
        yield
    finally:
        _secrets.reset(token)


def configure(level: str, *, queued: bool = False) -> None:
    """Set up logging for the whole process, also for the records of libraries.

    ``queued``: a thread writes the lines, for a process that may not wait for the program that reads its
    standard error stream.
    """
    import structlog

    # structlog's processors, for the records of libraries, too: each takes an event's values and returns them
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _shorten_outage,
        structlog.processors.format_exc_info,
        _redact_secrets,
        _count_problem,
    ]

    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
    )
    handler: logging.Handler = _QueuedHandler() if queued else logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )

    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    handler.addFilter(lambda record: record.getMessage() != _CLOSED_SOCKET_TEXT)
    for name in _WARNINGS_ONLY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    for name in _ERRORS_ONLY:
        logging.getLogger(name).setLevel(max(logging.ERROR, root.level))
    for name in _MUTED:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def logger(name: str) -> Any:
    """Return a logger.

    Its methods take an event, and its values by keyword: ``log.info("proposal opened", proposal=id)``.
    """
    return _Logger(name)


class _Logger:
    """A logger that loads structlog with its first event, since most commands log nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _structlog_logger(self) -> Any:
        import structlog

        return structlog.get_logger(self._name)

    def __getattr__(self, level: str) -> Any:
        return getattr(self._structlog_logger, level)


def _redact_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    secrets: list[str] = []
    for source in _secrets.get():
        secrets += source() if callable(source) else source
    hidden: MutableMapping[str, Any] = redact(event, None, secrets)
    return hidden


def _shorten_outage(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace the traceback of a database outage by one line, since each retry would repeat it."""
    from bot.telemetry.outages import describe_outage  # a command that only prints needs no SQLAlchemy

    error = event.get("exc_info")
    if error is True:  # as ``log.exception`` gives it: the error that is being handled
        error = sys.exc_info()[1]
    outage = describe_outage(error) if isinstance(error, BaseException) else ""
    if outage:
        del event["exc_info"]
        event["why"] = outage
    return event


def _count_problem(source: Any, level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Count a warning or an error of Nod in `problems`.

    ``source``: the logger, named like its module. The part is a channel, else the folder below ``bot``.
    """
    match getattr(source, "name", "").split("."):
        case ["bot", "channels", channel, _, *_]:  # bot.channels.slack.cards, but not bot.channels.base
            part = channel
        case ["bot", folder, *_]:
            part = folder
        case _:
            return event
    if level in {"warning", "error"}:
        problems[level, part] += 1
    return event


class _QueuedHandler(QueueHandler):
    """A handler that passes lines to a writing thread, so that slow writing delays no work.

    Lines that don't fit into the queue are dropped, and counted in `problems`.
    """

    def __init__(self) -> None:
        lines: queue.Queue[logging.LogRecord] = queue.Queue(_MAX_QUEUED_LINES)
        super().__init__(lines)
        _Listener(lines).start()
        atexit.register(_finish, lines)

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            problems[_DROPPED] += 1


class _Listener(QueueListener):
    """A thread that writes the queued lines to the standard error stream."""

    def __init__(self, lines: "queue.Queue[logging.LogRecord]") -> None:
        super().__init__(lines)
        self._lines = lines
        self._reported = 0  # how many dropped lines the log has reported

    def handle(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            # Directly to the descriptor. At its end the process would wait for the lock of sys.stderr.
            os.write(2, f"{record.getMessage()}\n".encode(errors="replace"))
        dropped = problems[_DROPPED] - self._reported
        if dropped and self._lines.qsize() < _MAX_QUEUED_LINES // 2:
            self._reported += dropped
            logger(__name__).warning("lines of the log did not fit and were dropped", lines=dropped)


def _finish(lines: "queue.Queue[logging.LogRecord]") -> None:
    """Wait at most `_FINISH_SECONDS` until the remaining lines are written."""
    deadline = time.monotonic() + _FINISH_SECONDS
    while lines.unfinished_tasks and time.monotonic() < deadline:
        time.sleep(_FINISH_POLL_SECONDS)
