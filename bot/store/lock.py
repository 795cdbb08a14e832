"""One process works on a database at a time; a second one is refused instead of half working.

SQLite: a lock file next to the database, by the file's true name. PostgreSQL: an advisory lock on one kept
connection. The lock's holder is also woken there: `ring` tells it that another process changed rows.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from enum import Enum, auto
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Engine, NullPool, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from bot.errors import SettingsError
from bot.logs import logger

log = logger(__name__)

_LOCK = text("SELECT pg_try_advisory_lock(hashtextextended('nod ' || coalesce(current_schema(), ''), 0))")
# a connection that is gone is noticed within seconds, on both sides
_KEPT = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_KEPT_THERE = (("tcp_keepalives_idle", 5), ("tcp_keepalives_interval", 2), ("tcp_keepalives_count", 3))
_PAUSE = 1.0  # seconds between tries to get a lost lock back
_PATIENCE = 30  # tries, while another holds it: the server may not have noticed yet that it was ours


class News(Enum):
    """What the lock's holder learns while holding it."""

    RANG = auto()  # another process changed rows
    LOST = auto()  # the lock is not held: take no work
    BACK = auto()  # it is held again


class ProcessLock(ABC):
    """Held while entered; raises SettingsError on entering where another process holds it."""

    @classmethod
    def of(cls, url: str) -> "ProcessLock":
        parts = make_url(url)
        return _FileLock(Path(parts.database or "")) if parts.drivername == "sqlite" else _ServerLock(url)

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def watch(self) -> AsyncIterator[News]:
        """News as it comes, without end; raises SettingsError where another process took the lost lock."""

    def taken(self) -> bool:
        """Whether another process holds it right now."""
        try:
            with self:
                return False
        except SettingsError:
            return True


def ring(engine: Engine) -> None:
    """Wake the process that works on this database, if there is one: its next tick would be seconds away."""
    if engine.dialect.name == "sqlite":
        _ring_file(_beside(Path(engine.url.database or ""), ".wake"))
        return
    with contextlib.suppress(DBAPIError), engine.begin() as connection:
        connection.execute(text("SELECT pg_notify(:channel, '')"), {"channel": _channel(connection)})


def _beside(database: Path, ending: str) -> Path:
    """A file next to the database; whatever name it was reached by, it is the same one."""
    true = database.resolve()
    return true.with_name(true.name + ending)


class _FileLock(ProcessLock):
    def __init__(self, database: Path) -> None:
        self._database = database
        self._handle: int | None = None
        self._bell: int | None = None

    def taken(self) -> bool:
        """As above. Makes no file."""
        return _beside(self._database, ".lock").exists() and super().taken()

    def __enter__(self) -> Self:
        path = _beside(self._database, ".lock")
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise SettingsError(
                f"NOD_DATABASE_URL: cannot write {path} ({error.strerror}). "
                "Name a file in a folder that exists and that you may write to."
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._check_names()
        except OSError:
            os.close(handle)
            raise SettingsError(
                f"NOD_DATABASE_URL: another nod is running on {self._database}. Stop it first, "
                "or name another file."
            ) from None
        except SettingsError:
            os.close(handle)
            raise
        self._handle = handle
        return self

    def _check_names(self) -> None:
        """SQLite keeps its newest writes in files named like the database: two names would split it."""
        if self._database.exists() and (names := self._database.stat().st_nlink) > 1:
            raise SettingsError(
                f"NOD_DATABASE_URL: {self._database} has {names} names (hard links), "
                "and SQLite would damage it. Remove the other names."
            )

    def __exit__(self, *_: object) -> None:
        if self._bell is not None:
            os.close(self._bell)
            self._bell = None
            _beside(self._database, ".wake").unlink(missing_ok=True)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    async def watch(self) -> AsyncIterator[News]:
        self._bell = bell = _open_bell(_beside(self._database, ".wake"))
        rang = asyncio.Event()
        loop = asyncio.get_running_loop()
        if bell is not None:
            loop.add_reader(bell, _hear, bell, rang)
        try:
            while True:
                await rang.wait()
                rang.clear()
                yield News.RANG
        finally:
            if bell is not None:
                loop.remove_reader(bell)


def _open_bell(path: Path) -> int | None:
    """A named pipe, readable without waiting; None where there can be none."""
    try:
        if not path.exists():
            os.mkfifo(path, 0o600)
        # also open for writing: else it would be at its end whenever no one rings
        bell = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        log.warning("other processes cannot wake this one", file=str(path), why=error.strerror)
        return None
    if stat.S_ISFIFO(os.fstat(bell).st_mode):
        return bell
    os.close(bell)
    log.warning("other processes cannot wake this one", file=str(path), why="not a named pipe")
    return None


def _hear(bell: int, rang: asyncio.Event) -> None:
    os.read(bell, 4096)
    rang.set()


def _ring_file(path: Path) -> None:
    with contextlib.suppress(OSError):  # no one listens
        bell = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if stat.S_ISFIFO(os.fstat(bell).st_mode):
                os.write(bell, b"\n")
        finally:
            os.close(bell)


class _ServerLock(ProcessLock):
    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        if not self._take():
            raise SettingsError(
                "NOD_DATABASE_URL: another nod is running on this database. "
                "Stop it first, or name another database."
            )
        return self

    def __exit__(self, *_: object) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(DBAPIError):
                connection.close()

    def _take(self) -> bool:
        """Connect, lock and listen; False where another holds the lock. Raises DBAPIError."""
        engine = create_engine(
            self._url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=_KEPT
        )
        connection = engine.connect()
        try:
            for name, seconds in _KEPT_THERE:
                connection.execute(text(f"SET {name} = {seconds}"))
            if connection.execute(_LOCK).scalar_one():
                connection.execute(text(f"LISTEN {_channel(connection)}"))
                self._connection = connection
                return True
        finally:
            if self._connection is not connection:
                connection.close()
        return False

    async def watch(self) -> AsyncIterator[News]:
        while True:
            async for news in self._heard():
                yield news
            yield News.LOST
            await self._take_back()
            yield News.BACK

    async def _heard(self) -> AsyncIterator[News]:
        """Rings, until the connection is gone."""
        driver: Any = self._connection.connection.driver_connection if self._connection else None
        server, loop = driver.pgconn, asyncio.get_running_loop()
        heard: asyncio.Queue[News] = asyncio.Queue()
        socket = server.socket

        def readable() -> None:
            try:
                server.consume_input()
                while server.notifies():
                    heard.put_nowait(News.RANG)
            except Exception as error:  # noqa: BLE001 - the driver is an optional part; whatever it is, it is lost
                loop.remove_reader(socket)
                log.error("the database's lock is lost", why=str(error).strip())
                heard.put_nowait(News.LOST)

        loop.add_reader(socket, readable)
        try:
            readable()
            while (news := await heard.get()) is not News.LOST:
                yield news
        finally:
            loop.remove_reader(socket)

    async def _take_back(self) -> None:
        """Get the lock again, however long the server is away; raises SettingsError where another has it."""
        with contextlib.suppress(Exception):  # it is broken already
            if self._connection is not None:
                self._connection.invalidate()
                self._connection.close()
        self._connection = None
        refusals = 0
        while refusals < _PATIENCE:
            with contextlib.suppress(DBAPIError):
                if await asyncio.to_thread(self._take):
                    log.warning("the database's lock is held again")
                    return
                refusals += 1
            await asyncio.sleep(_PAUSE)
        raise SettingsError(
            "NOD_DATABASE_URL: another nod took over while this one had lost the database. "
            "This one has stopped."
        )


def _channel(connection: Connection) -> str:
    """Where those who work in this schema of the database listen."""
    schema = str(connection.execute(text("SELECT current_schema()")).scalar_one())
    return f"nod_{hashlib.sha256(schema.encode()).hexdigest()[:16]}"
