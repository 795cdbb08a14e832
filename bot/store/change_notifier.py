"""The signal that rows have changed, for everything in this process that waits for a change.

A waiter, such as a stream of the console, reads rows, waits here, and reads them again. Writers call `notify`
after their commit. ``bot/jobs/database_cluster.py`` passes the signal on to other processes.
"""

import asyncio
import contextlib
from collections.abc import Callable

_DELAY_SECONDS = 0.02  # changes that come within this time wake the waiters once, since each reads rows then


class ChangeNotifier:
    """Wakes everything in this process that waits for rows to change; ``generation`` counts how often."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None  # the wake-up that is due soon
        self._is_for_others = False  # that wake-up is for other processes, too
        self.generation = 0
        self.notify_others: Callable[[], None] = lambda: None  # a cluster sets it to wake other processes

    def notify(self, *, to_peers: bool = True) -> None:
        """Wake the waiters within `_DELAY_SECONDS`; with ``to_peers``, those in other processes, too."""
        self._is_for_others = self._is_for_others or to_peers
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_DELAY_SECONDS, self._wake)

    def _wake(self) -> None:
        self._timer = None
        is_for_others, self._is_for_others = self._is_for_others, False
        if is_for_others:
            self.notify_others()
        self.generation += 1
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, generation: int, seconds: float) -> None:
        """Return once the generation is another one than this, or after ``seconds``.

        A caller reads ``generation`` first and the rows then, so that it misses no change in between.
        """
        if self.generation != generation:
            return
        with contextlib.suppress(TimeoutError):
            # not wait_for: before Python 3.12 that loses a cancellation that comes together with a wake-up
            async with asyncio.timeout(seconds):
                await self._event.wait()
