"""A process among the processes on its database: the protocol, and the case of a single process.

A `Cluster` gives ``bot/app`` the dispatcher that runs jobs, a claim on the database before the start, and
news of other processes. On SQLite there is one process (`SingleProcess`); on PostgreSQL there may be several
(`DatabaseCluster` in ``bot/jobs/database_cluster.py``).
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

from bot.domain.chat import Clock
from bot.domain.jobs import Dispatcher, Peers, Process
from bot.jobs.dispatcher import EmbeddedDispatcher, Handler, QueueOf
from bot.store import processes
from bot.store.backups import check_pages
from bot.store.change_notifier import ChangeNotifier
from bot.store.database import Database
from bot.store.locks.process_lock import FileLock, check_not_lost

_MAX_CHECKED_BYTES = 64 * 1024**2  # a larger file is not checked at a start, as that takes too long


class Runner(Dispatcher, Protocol):
    """A dispatcher that runs for as long as its process does."""

    @property
    def fault(self) -> str | None:
        """The reason why this process can't do its work, in words; None while it can."""

    def start(self, handler: Handler, queue_of: QueueOf | None = None) -> None:
        """Start. ``handler`` does a job and returns the next jobs; ``queue_of`` gives a job's queue."""

    async def wait_until_idle(self) -> None:
        """Return when nothing runs in this process."""

    async def close(self, seconds: float) -> None:
        """Let running executions end for up to ``seconds``, and interrupt all other jobs.

        The interrupted work is still requested in the rows, so it continues after the next start.
        """


class Cluster(Protocol):
    """This process among the processes on its database, with a dispatcher for one process or for several."""

    @property
    def dispatcher(self) -> Runner: ...

    @property
    def peers(self) -> Peers | None:
        """The other processes, which are sent news of the work here; None for a single process."""

    def claim(self) -> contextlib.AbstractContextManager[object]:
        """Claim the database before anything else.

        Raises SettingsError where another process excludes this one.
        """

    def at_work(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Register this process. It owns the work that it takes up, until the context ends."""

    def connect_notifier(self, notifier: ChangeNotifier) -> None:
        """Connect the notifier of this process with those of the others: each reports its changes to all."""

    def changes(self) -> AsyncIterator[None]:
        """Yield whenever another process has changed rows, which may ask for work here."""


class SingleProcess:
    """Implements `Cluster` for the only process at an SQLite file; a second one is refused."""

    def __init__(self, file: Path, database: Database, process: Process, clock: Clock) -> None:
        self._file = file
        self._lock = FileLock(file)
        self._database = database
        self._process = process
        self._clock = clock
        self.peers: Peers | None = None
        self.dispatcher = EmbeddedDispatcher()

    @contextlib.contextmanager
    def claim(self) -> Iterator[object]:
        """Lock the file and check it. Raises SettingsError if it is in use, lost or damaged."""
        with self._lock:
            check_not_lost(self._file)
            check_pages(self._file, _MAX_CHECKED_BYTES)
            yield self._lock

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Register this process in place of the last one, whose work it takes over."""
        self._lock.record_database_exists()  # from now on, a start finds out if the file was lost
        self._database.write_now(processes.enter_alone, self._process, self._clock())
        yield

    def connect_notifier(self, notifier: ChangeNotifier) -> None:
        """Do nothing: no other process serves people who wait for changes."""

    def changes(self) -> AsyncIterator[None]:
        """Yield whenever another process, such as a command of ``nod``, has changed rows."""
        return self._lock.wait_for_signals()
