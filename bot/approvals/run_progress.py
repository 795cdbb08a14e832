"""The progress of a running tool, in its own words, shown no more often than people can read.

A tool gets a `Progress` in its `CallContext` and calls it with a text whenever it likes. The texts that come
too soon after the last one, or repeat it, are dropped; the others are cut, freed of secrets and shown.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from bot.domain.chat import Clock
from bot.domain.redaction import hide_values
from bot.domain.text import one_line
from bot.telemetry.logs import logger

log = logger(__name__)

# the least time between two texts; on a card each is an edit that counts against the platform's limits
ON_CARDS = timedelta(seconds=5)
IN_TURNS = timedelta(seconds=1)

_MAX_LINE_CHARS = 100
_MAX_LINES = 5  # of a command's output


class _ShownText(NamedTuple):
    """The text that was shown last."""

    at: datetime
    text: str


class Progress:
    """The callable behind ``CallContext.progress``. It never raises: a call does not fail because of it."""

    def __init__(
        self,
        clock: Clock,
        pace: timedelta,
        show: Callable[[str], Awaitable[None]],
        secrets: Sequence[str] = (),
    ) -> None:
        """Take the least time between two texts, the function that shows a text, and the secrets to hide."""
        self._clock = clock
        self._pace = pace
        self._show = show
        self._secrets = secrets
        self._last: _ShownText | None = None

    async def __call__(self, text: str) -> None:
        """Show a text on one line. Never raises."""
        await self._show_cut(text, _cut_line)

    async def tail(self, printed: str) -> None:
        """Show the last lines of a command's output. Never raises."""
        await self._show_cut(printed, _cut_to_last_lines)

    async def _show_cut(self, reported: str, cut: Callable[[str], str]) -> None:
        """Hide secrets in a text, cut it, and show it, unless it is empty, too early or the same."""
        try:
            text = cut(hide_values(str(reported), self._secrets))
            now = self._clock()
            if not text or self._is_too_early_or_same(text, now):
                return
            self._last = _ShownText(now, text)
            await self._show(text)
        except Exception as error:  # noqa: BLE001 - the tool's call continues
            log.warning("progress was not shown", why=type(error).__name__)

    def _is_too_early_or_same(self, text: str, now: datetime) -> bool:
        if self._last is None:
            return False
        return now - self._last.at < self._pace or text == self._last.text


def _cut_line(text: str) -> str:
    return one_line(text)[:_MAX_LINE_CHARS]


def _cut_to_last_lines(printed: str) -> str:
    lines = [_cut_line(line) for line in printed.splitlines()]
    not_empty = [line for line in lines if line]
    return "\n".join(not_empty[-_MAX_LINES:])
