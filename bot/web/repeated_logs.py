"""A limit on log lines of libraries that anyone who can reach the port could repeat without end."""

import contextlib
import logging
from collections.abc import Iterator

_REPEAT_SECONDS = 60.0
_NOISY_LOGGERS = ("asyncio", "uvicorn.error")
_REPEATED_PREFIXES = (
    "Invalid HTTP request",
    "Exceeded concurrency",
    "Unsupported upgrade",
    "socket.accept()",
)


@contextlib.contextmanager
def limit_repeated_logs() -> Iterator[None]:
    """Limit repeated log lines of libraries to one a minute."""
    repeat_filter = RepeatFilter()
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).addFilter(repeat_filter)
    try:
        yield
    finally:
        for name in _NOISY_LOGGERS:
            logging.getLogger(name).removeFilter(repeat_filter)


class RepeatFilter(logging.Filter):
    """A log filter that lets through each sort of repeated line once a minute, and every other line."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text = str(record.msg)
        prefix = next((prefix for prefix in _REPEATED_PREFIXES if text.startswith(prefix)), None)
        if prefix is None:
            return True
        if record.created - self._logged_at.get(prefix, 0.0) < _REPEAT_SECONDS:
            return False
        self._logged_at[prefix] = record.created
        return True
