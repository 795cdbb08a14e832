"""A database with all its tables, quickly."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import create_engine, event, make_url, text

from bot.store import migrations
from bot.store.database import Database
from bot.store.migrations.schema import SCHEMA
from tests.kit.urls import EMPTIED, FILLED, POSTGRES_URL, plain, read_shape, schema

OURS = "application_name = current_setting('application_name')"
"""PostgreSQL: which connections are this test's, of those of all tests that run at the same time."""


@functools.cache
def _blank() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "blank.db"
        made = Database(f"sqlite:///{file}")
        migrations.upgrade(made.engine)
        made.close()
        return file.read_bytes()


@functools.cache
def _spoken() -> str:
    """What is said to PostgreSQL to make all tables, in one text instead of sixty."""
    said: list[str] = []

    def hear(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        mogrify = psycopg.ClientCursor(connection.connection.driver_connection).mogrify
        said.append(mogrify(statement, parameters))

    with schema() as url:
        engine = create_engine(url)
        event.listen(engine, "before_cursor_execute", hear)
        with engine.begin() as connection:
            SCHEMA.create_all(connection, checkfirst=False)
            connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)"))
            newest = {"number": migrations.find_newest_version()}
            connection.execute(text("INSERT INTO alembic_version VALUES (:number)"), newest)
        engine.dispose()
    return ";".join(said)


@functools.cache
def _emptying() -> str:
    """What is said to PostgreSQL to have all tables as they were made."""
    emptied = [f"DELETE FROM {name}" for name in ("alembic_version", *SCHEMA.tables)]
    filled = [statement for statement in _spoken().split(";") if statement.startswith("INSERT")]
    begun = "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'"
    begun = f"{begun} AND relnamespace = current_schema()::regnamespace"
    as_they_come = "SET LOCAL session_replication_role = replica"  # whichever table names another
    return ";".join(["BEGIN", as_they_come, *emptied, *filled, begun, "COMMIT"])


def make_tables(url: str) -> None:
    """Make the database with all its tables.

    A SQLite file is a copy of one that is made once; a schema of PostgreSQL is one that an earlier test left.
    """
    parts = make_url(url)
    if parts.get_backend_name() == "sqlite":
        file = Path(parts.database or "")
        file.touch(0o600, exist_ok=False)
        file.write_bytes(_blank())
        return
    name = parts.query.get("application_name")
    with psycopg.connect(plain(url), autocommit=True) as connection:
        if EMPTIED and name:
            left, made = EMPTIED.popitem()
            connection.execute(f"DROP SCHEMA {name}; ALTER SCHEMA {left} RENAME TO {name}".encode())
            FILLED[str(name)] = made
            return
        connection.execute(_spoken().encode())
        if name and plain(url).partition("?")[0] == plain(POSTGRES_URL).partition("?")[0]:
            FILLED[str(name)] = _emptying(), read_shape(connection)
