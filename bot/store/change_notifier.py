"""Notification of changed rows to everything in this process that waits for them."""

import asyncio
import contextlib
from collections.abc import Callable

_RING_SECONDS = 0.02


class ChangeNotifier:
    """Wakes everything in this process that waits for rows to change.

    Changes that come close together wake it once, since each waiter then reads rows. ``generation`` counts
    how often.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None
        self._far = False
        self.generation = 0
        self.further: Callable[[], None] = lambda: None  # rings the bells of other processes

    def notify(self, *, far: bool = True) -> None:
        """Wake the waiters within `_RING_SECONDS`; with ``far`` those of other processes, too."""
        self._far = self._far or far
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_RING_SECONDS, self._ring)

    def _ring(self) -> None:
        self._soon = None
        far, self._far = self._far, False
        if far:
            self.further()
        self.generation += 1
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, generation: int, seconds: float) -> None:
        """Return once the generation is another one, or after ``seconds``.

        Read ``generation`` before the rows, so that a change in between is not missed.
        """
        if self.generation != generation:
            return
        with contextlib.suppress(TimeoutError):
            # not wait_for: before Python 3.12 that loses a cancellation that comes together with a ring
            async with asyncio.timeout(seconds):
                await self._event.wait()
