"""The cluster of several processes that share the work on one PostgreSQL.

Each process sends *heartbeats* to the database. A process without them counts as gone, and the others take
over its work. The processes send each other messages by a `Wire`. All processes need the same settings, apart
from those that are about one process, since any of them may do any work. Procrastinate and psycopg are
installed only with the extra ``postgres``.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any

import psycopg
from procrastinate.exceptions import ConnectorException
from sqlalchemy.exc import SQLAlchemyError

from bot.domain.chat import Clock
from bot.domain.jobs import BEAT_SECONDS, FailureDetector, Peers, Process
from bot.errors import SettingsError
from bot.jobs.distributed import DistributedDispatcher, prepare
from bot.store import processes
from bot.store.change_notifier import ChangeNotifier
from bot.store.database import Database
from bot.store.locks.process_lock import notify_processes
from bot.store.notifications import LISTENING, Wire
from bot.store.refusals import explain_refusal
from bot.telemetry.logs import logger

log = logger(__name__)

_SETTINGS_KIND = "settings"
"""The kind of message in which processes compare their settings."""
_ROWS_KIND = "rows"
"""The kind of message by which a process tells the others that it has changed rows."""


class DatabaseCluster:
    """Implements `Cluster` and `Peers`: processes share the work, and take over from dead processes.

    As `Peers` it sends messages to the other processes, by the wire (``bot/store/notifications.py``).
    """

    def __init__(
        self,
        url: str,
        database: Database,
        process: Process,
        clock: Clock,
        *,
        does_jobs: bool,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """``settings``: a hash of each setting that must be equal in all processes, by variable."""
        self._url = url
        self._settings = dict(settings or {})
        self._logged_settings: list[Mapping[str, str]] = []  # the differing hashes that were logged
        self._database = database
        self._process = process
        self._clock = clock
        self.wire = Wire(url, process.id)
        self.peers: Peers = self
        self.dispatcher = DistributedDispatcher(url, self.wire, does_jobs=does_jobs)
        self._ended = threading.Event()
        self.wire.on(_SETTINGS_KIND, self._compare_settings)

    def claim(self) -> contextlib.AbstractContextManager[object]:
        """Claim nothing: several processes may use the database."""
        return contextlib.nullcontext()

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Register this process, open the wire and the queue of jobs, and send heartbeats until the end."""
        prepare(self._url)
        self._database.write_now(processes.enter_process, self._process, self._clock())
        heart = threading.Thread(
            target=self._send_heartbeats, args=(asyncio.get_running_loop(),), name="beats", daemon=True
        )
        with _as_settings_error():
            await self.wire.open()
        self.wire.broadcast(_SETTINGS_KIND, [self._settings, True])
        try:
            with _as_settings_error():
                await self.dispatcher.open()
            heart.start()
            yield
        finally:
            self._ended.set()
            if heart.ident is not None:
                await asyncio.to_thread(heart.join)
            await self.wire.close()
            with contextlib.suppress(SQLAlchemyError):  # others notice by the missing heartbeats
                self._database.write_now(processes.leave_process, self._process)
                notify_processes(self._database.engine)  # the others take over the work that is left

    def on(self, kind: str, handler: Callable[[Any], None]) -> None:
        """Call the handler with the body of each message of this kind from another process."""
        self.wire.on(kind, handler)

    def broadcast(self, kind: str, body: Any) -> None:
        """Send a message to all other processes; it may be lost."""
        self.wire.broadcast(kind, body)

    def on_arrival(self, handler: Callable[[], None]) -> None:
        """Call the handler when another process begins to listen."""
        self.wire.on(LISTENING, lambda _: handler())

    async def lease(self, name: str) -> bool:
        """Try to take the lease on a name; return True if this process has it now."""
        return await self._database.write(processes.take_lease, name, self._process.id) == self._process.id

    def connect_notifier(self, notifier: ChangeNotifier) -> None:
        """Connect the notifiers of all processes: a change in one wakes the listeners of each."""
        self.wire.on(_ROWS_KIND, lambda _: notifier.notify(to_peers=False))
        notifier.notify_others = lambda: self.wire.broadcast(_ROWS_KIND, None)

    def changes(self) -> AsyncIterator[None]:
        """Yield whenever another process has changed rows, which may ask for work here."""
        return self.wire.wait_for_signals()

    def _compare_settings(self, message: tuple[Mapping[str, str], bool]) -> None:
        """Log once which settings of another process differ from this one's.

        ``message``: the hashes of that process's settings, and True if it has just begun. Then it is sent the
        hashes of this process, so that both logs name the difference.
        """
        other_settings, has_just_begun = message
        if other_settings == self._settings:
            return
        if has_just_begun:
            self.wire.broadcast(_SETTINGS_KIND, [self._settings, False])
        if other_settings not in self._logged_settings:
            self._logged_settings.append(other_settings)
            differing = self._settings.items() ^ other_settings.items()  # the pairs that only one of them has
            names = {name for name, _ in differing}
            log.warning("another process has other settings, and all need the same", settings=sorted(names))

    def _send_heartbeats(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send heartbeats, and find processes without them, until this process ends.

        This runs in a thread, so that a tool that blocks the event loop makes no process look dead.
        """
        detector = FailureDetector()  # finds the processes whose number of beats no longer grows
        gone: list[str] = []
        while not self._ended.wait(BEAT_SECONDS):
            try:
                pieces_before = self.wire.pieces_received  # the number so far, see `Wire.update_others`
                # the numbers of beats of the other processes
                beats = self._database.write_now(processes.raise_beats, self._process, self._clock())
                update = partial(self.wire.update_others, others=bool(beats), pieces_before=pieces_before)
                loop.call_soon_threadsafe(update)
                silent = detector.record_beats(beats)
                gone_before = gone
                gone = self._database.write_now(processes.forget_processes, silent) if silent else []
            except SQLAlchemyError as error:
                log.warning("no beat", why=str(error.__cause__ or error))
                continue
            if gone:
                log.warning("processes are gone, their work is taken over", processes=gone)
            # wake the sweeps to find their work now, and again a beat later, when Procrastinate has released
            # their jobs
            if gone or gone_before:
                loop.call_soon_threadsafe(self.wire.signal_self)


@contextlib.contextmanager
def _as_settings_error() -> Iterator[None]:
    """Raise SettingsError for an error of the database at the start, so that people read one line."""
    try:
        yield
    except (psycopg.Error, ConnectorException) as error:
        raise SettingsError(explain_refusal(error.__cause__ or error)) from None
