"""The presence of processes on a database, and the signal that wakes one when another changed its rows.

SQLite: one process at a time works on a file. It holds a lock file next to the database (next to the real
file, not to a symbolic link). Other processes, such as a command that changed rows, wake it by a named pipe.
PostgreSQL: any number of processes, which share an advisory lock while they work and listen on a channel
(``bot/store/notifications.py``).
"""

import asyncio
import contextlib
import fcntl
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from bot.errors import SettingsError
from bot.store.engine import open_unpooled
from bot.telemetry.logs import logger

log = logger(__name__)

CHANNEL_SQL = "'nod_' || md5(coalesce(current_schema(), ''))"
"""The SQL of the channel on which the processes in this schema of a PostgreSQL database listen."""
WORK_LOCK_SQL = "hashtextextended('nod ' || coalesce(current_schema(), ''), 0)"
"""The SQL of the advisory lock that all of these processes share while they work."""
_TRY_LOCK_ALONE = text(f"SELECT pg_try_advisory_lock({WORK_LOCK_SQL})")
_NOTIFY = text(f"SELECT pg_notify({CHANNEL_SQL}, '')")


def is_at_work(url: str) -> bool:
    """Return whether a process works on this database. Creates no file.

    Raises DBAPIError if PostgreSQL can't be asked, SettingsError if the lock file of SQLite can't be locked.
    """
    if make_url(url).drivername == "sqlite":
        return FileLock(Path(make_url(url).database or "")).is_taken()
    with open_unpooled(url).connect() as connection:
        return not connection.execute(_TRY_LOCK_ALONE).scalar_one()


def notify_processes(engine: Engine) -> None:
    """Wake the processes that work on this database, after a change of its rows.

    Otherwise they look for changed rows only every few seconds.
    """
    if engine.dialect.name == "sqlite":
        _write_to(_place_next_to(Path(engine.url.database or ""), ".wake"))
        return
    with contextlib.suppress(DBAPIError), engine.begin() as connection:
        connection.execute(_NOTIFY)


def _place_next_to(database: Path, ending: str) -> Path:
    """Return the path next to the database, after its symbolic links, with its name and this ending."""
    resolved = database.resolve()
    return resolved.with_name(resolved.name + ending)


def check_not_lost(database: Path) -> None:
    """Raise SettingsError if the lock file says that there was a database, and it is gone or empty."""
    lock_file = _place_next_to(database, ".lock")
    has_database = database.exists() and database.stat().st_size > 0
    was_marked = lock_file.exists() and lock_file.stat().st_size > 0  # see `FileLock.record_database_exists`
    if was_marked and not has_database:
        raise SettingsError(
            f"NOD_DATABASE_URL: there was a database {database}, and it is gone or empty. "
            f"Put it back. For a new one, delete {lock_file} first."
        )


class DatabaseTakenError(SettingsError):
    """Another process works on the database."""


class FileLock:
    """The lock on a SQLite database, held while entered.

    Entering raises DatabaseTakenError if another process holds the lock, and SettingsError if the lock file
    can't be written or locked, or if the database can't be read, is a folder, or has a second name.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._handle: int | None = None
        self._pipe: int | None = None

    def is_taken(self) -> bool:
        """Return whether another process holds the lock right now. Creates no file. Raises SettingsError."""
        if not _place_next_to(self._database, ".lock").exists():
            return False
        try:
            with self:
                return False
        except DatabaseTakenError:
            return True

    def __enter__(self) -> Self:
        path = _place_next_to(self._database, ".lock")
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise SettingsError(
                f"NOD_DATABASE_URL: cannot write {path} ({error.strerror}). "
                "Name a file in a folder that exists and that you may write to."
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise DatabaseTakenError(
                f"NOD_DATABASE_URL: another nod is running on {self._database}. Stop it first, "
                "or name another file."
            ) from None
        except OSError as error:
            os.close(handle)
            raise SettingsError(
                f"NOD_DATABASE_URL: {path.parent} is on a file system without locks ({error.strerror}), as "
                "NFS and SMB often are. Name a file on a disk of this machine, or use PostgreSQL."
            ) from None
        try:
            self._check_file()
        except SettingsError:
            os.close(handle)
            raise
        self._handle = handle
        return self

    def record_database_exists(self) -> None:
        """Record in the lock file that the database exists, for `check_not_lost` at later starts."""
        if self._handle is not None:
            os.pwrite(self._handle, b"there is a database\n", 0)

    def _check_file(self) -> None:
        """Raise SettingsError for a folder, for a second name (a hard link), and if the file can't be read.

        SQLite names its write-ahead log like the database, so two names would have two logs.
        """
        try:
            status = self._database.stat()
        except FileNotFoundError:  # the database is made later
            return
        except OSError as error:
            raise SettingsError(
                f"NOD_DATABASE_URL: cannot read {self._database} ({error.strerror})."
            ) from None
        if stat.S_ISDIR(status.st_mode):  # Docker makes a folder where a file to be mounted is missing
            raise SettingsError(f"NOD_DATABASE_URL: {self._database} is a folder. Name a file.")
        if status.st_nlink > 1:
            raise SettingsError(
                f"NOD_DATABASE_URL: {self._database} has {status.st_nlink} names (hard links), "
                "and SQLite would damage it. Remove the other names."
            )

    def __exit__(self, *_: object) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
            _place_next_to(self._database, ".wake").unlink(missing_ok=True)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    async def wait_for_signals(self) -> AsyncIterator[None]:
        """Yield each time another process says that it changed rows, without end."""
        self._pipe = pipe = _open_pipe(_place_next_to(self._database, ".wake"))
        was_signalled = asyncio.Event()
        loop = asyncio.get_running_loop()
        if pipe is not None:
            loop.add_reader(pipe, _drain, pipe, was_signalled)
        try:
            while True:
                await was_signalled.wait()
                was_signalled.clear()
                yield
        finally:
            if pipe is not None:
                loop.remove_reader(pipe)


def _open_pipe(path: Path) -> int | None:
    """Open a named pipe that is read without waiting; return None where none can be made."""
    try:
        if not path.exists():
            os.mkfifo(path, 0o600)
        # also open for writing: otherwise the pipe would be at its end whenever no process writes
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        log.warning("other processes cannot wake this one", file=str(path), why=error.strerror)
        return None
    if stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return pipe
    os.close(pipe)
    log.warning("other processes cannot wake this one", file=str(path), why="not a named pipe")
    return None


def _drain(pipe: int, was_signalled: asyncio.Event) -> None:
    """Take the signals that wait in a pipe, and set the event."""
    os.read(pipe, 4096)
    was_signalled.set()


def _write_to(path: Path) -> None:
    """Write a signal to a named pipe, if a process reads it."""
    with contextlib.suppress(OSError):  # no process has the pipe open
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if stat.S_ISFIFO(os.fstat(pipe).st_mode):
                os.write(pipe, b"\n")
        finally:
            os.close(pipe)
