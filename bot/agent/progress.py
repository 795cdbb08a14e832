"""How far a running call is, in its tool's words, for people: never more often than they can read."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from bot.domain.chat import Clock
from bot.domain.redaction import veiled
from bot.domain.unseen import one_line
from bot.logs import logger

log = logger(__name__)

ON_CARDS = timedelta(seconds=5)  # each copy is an edit that counts against what a platform lets Nod send
IN_TURNS = timedelta(seconds=1)

_LONGEST = 100  # characters


class Progress:
    """What a tool calls as ``CallContext.progress``. It never raises: a call does not fail because of it."""

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
        try:
            line = one_line(veiled(str(words), self._secrets))[:_LONGEST]
            now = self._clock()
            if not line or (
                self._shown is not None and (now - self._shown[0] < self._pace or line == self._shown[1])
            ):
                return
            self._shown = now, line
            await self._show(line)
        except Exception as error:  # noqa: BLE001 - the call it is about continues
            log.warning("progress was not shown", why=type(error).__name__)
