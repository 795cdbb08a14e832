"""The progress of a tool that runs, in its own words, shown never more often than people can read."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from bot.domain.chat import Clock
from bot.domain.redaction import veil
from bot.domain.text import one_line
from bot.telemetry.logs import logger

log = logger(__name__)

ON_CARDS = timedelta(seconds=5)  # each copy is an edit that counts against what a platform lets Nod send
IN_TURNS = timedelta(seconds=1)

_MAX_LINE_CHARS = 100
_MAX_LINES = 5  # of what it prints, the last


class Progress:
    """The callable behind ``CallContext.progress``. It never raises: a call does not fail because of it."""

    def __init__(
        self,
        clock: Clock,
        pace: timedelta,
        show: Callable[[str], Awaitable[None]],
        secrets: Sequence[str] = (),
    ) -> None:
        self._clock = clock
        self._pace = pace
        self._show = show
        self._secrets = secrets
        self._shown: tuple[datetime, str] | None = None

    async def __call__(self, words: str) -> None:
        await self._show_cut(words, lambda text: one_line(text)[:_MAX_LINE_CHARS])

    async def tail(self, printed: str) -> None:
        """Show the last lines of a command's output, each on a line of its own. Never raises."""
        await self._show_cut(printed, _last_lines)

    async def _show_cut(self, words: str, cut: Callable[[str], str]) -> None:
        try:
            said = cut(veil(str(words), self._secrets))
            now = self._clock()
            if not said or (
                self._shown is not None and (now - self._shown[0] < self._pace or said == self._shown[1])
            ):
                return
            self._shown = now, said
            await self._show(said)
        except Exception as error:  # noqa: BLE001 - the call it is about continues
            log.warning("progress was not shown", why=type(error).__name__)


def _last_lines(printed: str) -> str:
    lines = (one_line(line)[:_MAX_LINE_CHARS] for line in printed.splitlines())
    return "\n".join([line for line in lines if line][-_MAX_LINES:])
