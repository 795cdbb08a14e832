"""Structured logs without secrets: one event with its values a line, JSON where nobody watches."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from bot.domain.redaction import redact


def _without_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    hidden: MutableMapping[str, Any] = redact(event)
    return hidden


def configure(level: str) -> None:
    """Set up logging for the whole process; libraries' own records go the same way."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _without_secrets,
    ]
    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for chatty in ("httpx", "httpx2", "httpcore", "httpcore2", "mcp", "apscheduler", "uvicorn.access"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def logger(name: str) -> Any:
    """A logger whose values are named, e.g. ``log.info("proposal opened", proposal=id)``."""
    return structlog.get_logger(name)
