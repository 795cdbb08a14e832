"""Engines with Nod's settings for SQLite and PostgreSQL.

`open_engine` is for `Database`; `open_unpooled` is for connections that hold locks. On SQLite the settings
are pragmas, on PostgreSQL options of the connection.
"""

import contextlib
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, NullPool, create_engine, event
from sqlalchemy.engine import make_url

from bot.store.audit.chain import KEYS_OPTION

LOCK_PATIENCE_SECONDS = 10.0  # the time to wait for a lock that another process or session holds
READERS = 4  # reading threads, each with a connection
POSTGRES_WRITERS = 4  # writing threads on PostgreSQL; on SQLite there is one
_CONNECTIONS = READERS + POSTGRES_WRITERS

# the settings of SQLite's connections
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA cache_size=-16000",
)
_READONLY_PRAGMAS = ("PRAGMA query_only=ON",)

# the settings of PostgreSQL's connections
_SESSION_OPTIONS = (
    "-cdatestyle=ISO",  # psycopg reads dates in no other style
    "-cidle_session_timeout=0",  # a session that only listens is idle for long
)
_TIMEOUT_OPTIONS = (  # only for the connections of `open_engine`
    # a process that is stopped within a transaction would otherwise keep its locks for good
    f"-cidle_in_transaction_session_timeout={LOCK_PATIENCE_SECONDS:.0f}s",
    # a longer lock of others, as during a change of a table, is reported like a database that is away
    f"-clock_timeout={1.5 * LOCK_PATIENCE_SECONDS:.0f}s",
)
_NETWORK_ARGUMENTS = {  # with these a broken connection is noticed within seconds
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


def make_connect_arguments(url: str | URL, *further_options: str) -> dict[str, str | int]:
    """Return the arguments of psycopg's ``connect`` for a session: options, and limits on a bad network.

    The options override settings of the server, the database and the role. Those in the URL come last, so
    they override the others.
    """
    query = make_url(url).query
    url_options = query.get("options", ())
    if isinstance(url_options, str):
        url_options = (url_options,)
    options = (*_SESSION_OPTIONS, *further_options, *url_options)
    network_arguments = {name: value for name, value in _NETWORK_ARGUMENTS.items() if name not in query}
    return {**network_arguments, "client_encoding": "UTF8", "options": " ".join(options).strip()}


def open_unpooled(url: str | URL) -> Engine:
    """Return an engine without a pool and without transactions, for locks that end with their connection."""
    return create_engine(
        url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=make_connect_arguments(url)
    )


def open_engine(
    url: str,
    audit_keys: Sequence[bytes] = (),
    *,
    readonly: bool = False,
    patience: float = LOCK_PATIENCE_SECONDS,
) -> Engine:
    """Return an engine with Nod's settings. On SQLite its users begin transactions themselves, with BEGIN.

    - ``audit_keys``: the keys that seal the audit log, the newest first
    - ``readonly``: no file of SQLite is changed or made
    - ``patience``: seconds to wait for another process that writes to SQLite's file

    Only its owner may read a new file of SQLite, and the files that SQLite puts next to it.
    """
    options = {KEYS_OPTION: tuple(audit_keys)}
    if make_url(url).get_backend_name() == "sqlite":
        return _open_sqlite(url, options, readonly=readonly, patience=patience)
    return create_engine(
        url,
        connect_args=make_connect_arguments(url, *_TIMEOUT_OPTIONS),
        isolation_level="READ COMMITTED",
        pool_size=_CONNECTIONS,
        pool_use_lifo=True,  # the connection used last has prepared the usual statements
        execution_options=options,
        hide_parameters=True,  # errors are logged, and values may be secrets
    )


def _open_sqlite(url: str, options: Mapping[str, Any], *, readonly: bool, patience: float) -> Engine:
    """Return an engine for SQLite's file, with the execution ``options``."""
    file = Path(make_url(url).database or "")
    if readonly:
        engine = create_engine(
            "sqlite://",
            execution_options=options,
            poolclass=NullPool,
            creator=lambda: connect_readonly(file, patience),
        )
    else:
        engine = create_engine(
            url,
            connect_args={"check_same_thread": False, "timeout": patience},
            pool_use_lifo=True,  # a connection drops its cached pages once another one has committed
            execution_options=options,
            hide_parameters=True,
        )

    @event.listens_for(engine, "do_connect")
    def _create_file(*_: Any) -> None:
        """Create the file for its owner alone, before SQLite would create it for others, too."""
        if not readonly:
            # O_EXCL: never open an existing file. POSIX locks, and so SQLite's, end once any descriptor of a
            # file is closed in the process: https://www.sqlite.org/howtocorrupt.html, 2.2
            with contextlib.suppress(OSError):
                os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    @event.listens_for(engine, "connect")
    def _set_pragmas(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        for pragma in _READONLY_PRAGMAS if readonly else _PRAGMAS:
            connection.execute(pragma)

    return engine


def connect_readonly(file: Path, patience: float = LOCK_PATIENCE_SECONDS) -> sqlite3.Connection:
    """Open SQLite's file for reading, so that no file is changed or left behind.

    SQLite makes a write-ahead log for a reader as well where it is missing:

    - With a log, mode ``ro`` uses it; mode ``rw`` would copy it into the database at the end.
    - Without a log, mode ``rw`` makes one and removes it at the end; mode ``ro`` would leave it behind.
    - Without a log in a folder where none can be made, ``immutable`` does without: nothing writes there.

    https://www.sqlite.org/wal.html#readonly
    """
    path = file.resolve()
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    if has_log:
        mode = "ro"
    elif os.access(path.parent, os.W_OK):
        mode = "rw"
    else:
        mode = "ro&immutable=1"
    uri = f"file:{quote(str(path))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=patience)
