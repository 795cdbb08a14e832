"""Engines with Nod's settings for SQLite and PostgreSQL, backups of SQLite's file, inserts in each dialect.

`open_engine` is for `Database`; `open_unpooled` is for connections that hold locks. On SQLite the settings
are pragmas, on PostgreSQL options of the connection. `insert_new` and `insert_or_update` insert without a
race, and `insert_or_ignore` returns such a statement. Its SQL differs between the databases.
"""

import contextlib
import math
import os
import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, NullPool, Table, create_engine, event
from sqlalchemy.engine import make_url
from sqlmodel import Session, SQLModel

from bot.domain.progress import Progress, ignore
from bot.errors import NodError, SettingsError
from bot.store.audit.chain import KEYS_OPTION
from bot.store.tables.row import table_of
from bot.telemetry.outages import may_open_files

LOCK_PATIENCE_SECONDS = 10.0  # the time to wait for a lock that another process or session holds
READERS = 4  # reading threads, each with a connection
POSTGRES_WRITERS = 4  # writing threads on PostgreSQL; on SQLite there is one
_CONNECTIONS = READERS + POSTGRES_WRITERS
BACKUP_PAGES = 1000  # the pages that are copied in one step

# what SQLite's connections are set to
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA cache_size=-16000",
)
_READONLY_PRAGMAS = ("PRAGMA query_only=ON",)

# what PostgreSQL's connections are set to: options of all sessions, further ones of `open_engine`, and limits
# on a bad network
_SESSION_OPTIONS = (
    "-cdatestyle=ISO",  # psycopg reads dates in no other style
    "-cidle_session_timeout=0",  # a session that only listens is idle for long
)
_TIMEOUT_OPTIONS = (
    # a process that is stopped within a transaction would otherwise keep its locks for good
    f"-cidle_in_transaction_session_timeout={LOCK_PATIENCE_SECONDS:.0f}s",
    # a longer lock of others, as during a change of a table, is reported like a database that is away
    f"-clock_timeout={1.5 * LOCK_PATIENCE_SECONDS:.0f}s",
)
_NETWORK_OPTIONS = {
    "connect_timeout": 5,
    # with these a broken connection is noticed within seconds
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

_ADVICE_BY_CODE = {
    "SQLITE_FULL": "Make room, then start again.",
    "SQLITE_READONLY": "Let Nod write this file and its folder, then start again.",
    "SQLITE_PERM": "Let Nod write this file and its folder, then start again.",
    "SQLITE_CANTOPEN": "Name a folder that exists and that Nod may write to, then start again.",
    "SQLITE_IOERR": "Look at its disk and at the quota there, then start again.",
    "53100": "Make room on the disk of PostgreSQL, then start again.",
    "25006": "Name a PostgreSQL server that takes writes, then start again.",
    "42501": "Let the role of this address make and change tables, then start again.",
}
"""Advice for people on an error, by PostgreSQL's code or the beginning of SQLite's name of the error."""
_ADVICE_BY_WORDS = {
    "too many clients": "Give PostgreSQL more connections, or end others, then start again.",
    "connection slots": "Give PostgreSQL more connections, or end others, then start again.",
}
"""Advice for people on an error, by words in PostgreSQL's message."""
_POOLER_TEXT = "a pooler such as PgBouncer answers there. Name the PostgreSQL server itself"
_NO_FILES_TEXT = "Let this process open more files (ulimit -n), then start again."


def find_damage(connection: sqlite3.Connection) -> str:
    """Return the damage in a database's pages, in SQLite's words; empty for none."""
    try:
        result = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        result = str(error)
    return "" if result == "ok" else result


def make_connect_arguments(url: str | URL, *more: str) -> dict[str, str | int]:
    """Return the arguments of psycopg's ``connect`` for a session: options, and limits on a bad network.

    They override settings of the server, the database and the role. ``more``: further options. The options in
    the URL come last, so they override these.
    """
    query = make_url(url).query
    from_url = query.get("options", "")
    if isinstance(from_url, str):
        from_url = (from_url,)
    options = (*_SESSION_OPTIONS, *more, *from_url)
    network = {name: value for name, value in _NETWORK_OPTIONS.items() if name not in query}
    return {**network, "client_encoding": "UTF8", "options": " ".join(options).strip()}


def open_unpooled(url: str | URL) -> Engine:
    """Return an engine without a pool and without transactions, for locks that end with their connection."""
    return create_engine(
        url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=make_connect_arguments(url)
    )


def insert_or_ignore(session: Session, table: type[SQLModel], *returning: str) -> Any:
    """Return an insert that returns no row where a unique key is already taken.

    ``returning`` are column names.
    """
    return _build_insert_or_ignore(session.connection().dialect.name, table, returning)


@cache
def _build_insert_or_ignore(dialect: str, table: type[SQLModel], returning: tuple[str, ...]) -> Any:
    rows = table_of(table)
    statement = _insert_into(dialect, rows).on_conflict_do_nothing()
    if returning:
        return statement.returning(*(rows.c[name] for name in returning))
    return statement


def insert_new(session: Session, table: type[SQLModel], values: Mapping[str, Any]) -> Any:
    """Insert a row and return its id; None where one of its unique keys is taken."""
    return session.connection().execute(insert_or_ignore(session, table, "id"), values).scalar()


def insert_or_update(session: Session, table: type[SQLModel], values: Mapping[str, Any]) -> None:
    """Insert a row, or update the row with the same primary key, in one statement without a race."""
    session.connection().execute(_build_insert_or_update(session.connection().dialect.name, table), values)


@cache
def _build_insert_or_update(dialect: str, table: type[SQLModel]) -> Any:
    rows = table_of(table)
    statement = _insert_into(dialect, rows)
    new = {column.name: statement.excluded[column.name] for column in rows.columns if not column.primary_key}
    return statement.on_conflict_do_update(index_elements=list(rows.primary_key), set_=new)


def _insert_into(dialect: str, rows: Table) -> Any:
    """Return an insert of the dialect's own kind; only such an insert can say what happens on a conflict."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(rows)


def explain_refusal(error: object) -> str:
    """Return why the database can't be used, in a line that names the setting and says what to do.

    ``error``: the error of psycopg or sqlite3, which has the code (``orig`` or the cause of SQLAlchemy's).
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    first = lines[0].rstrip(".")
    if "unsupported startup parameter" in first:
        first = _POOLER_TEXT
    code = str(getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None) or "")
    if code.startswith("SQLITE_CANTOPEN") and not may_open_files():
        return f"NOD_DATABASE_URL: {first}. {_NO_FILES_TEXT}"
    for beginning, advice in _ADVICE_BY_CODE.items():
        if code.startswith(beginning):
            return f"NOD_DATABASE_URL: {first}. {advice}"
    for words, advice in _ADVICE_BY_WORDS.items():
        if words in first:
            return f"NOD_DATABASE_URL: {first}. {advice}"
    return f"NOD_DATABASE_URL: {first}; nod doctor looks closer"


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
            creator=lambda: _open_readonly(file, patience),
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


def _open_readonly(file: Path, patience: float = LOCK_PATIENCE_SECONDS) -> sqlite3.Connection:
    """Open a database for reading, so that no file is changed or left behind.

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


def check_pages(file: Path, max_bytes: float = math.inf) -> None:
    """Raise SettingsError where pages are damaged or can't be read. A file over ``max_bytes`` is not read."""
    if not file.exists() or file.stat().st_size > max_bytes:
        return
    try:
        with contextlib.closing(_open_readonly(file)) as connection:
            damage = find_damage(connection)
    except sqlite3.Error as error:  # the path is a folder, or a file of another account
        raise SettingsError(f"NOD_DATABASE_URL: {file} can't be read ({error}).") from None
    if damage:
        raise SettingsError(
            f"NOD_DATABASE_URL: {file} is damaged ({damage}). Keep it aside, and restore a backup."
        )


def back_up(file: Path, copy: Path, progress: Progress = ignore) -> None:
    """Copy a SQLite database as it is at one moment, also while it is written to.

    ``progress`` receives the pages copied and all pages.

    Raises OSError where ``copy`` exists or cannot be made, sqlite3.Error where the database cannot be read,
    NodError where it is damaged.
    """
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            contextlib.closing(_open_readonly(file)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM sqlite_master").fetchone()  # one snapshot for all the steps
            source.backup(
                target,
                pages=BACKUP_PAGES,
                progress=lambda _, left, total: progress(total - left, total),
                sleep=0,
            )
            damage = find_damage(target)
            if damage:
                raise NodError(f"{file} is damaged, so no copy was kept ({damage}). Restore an older backup.")
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
