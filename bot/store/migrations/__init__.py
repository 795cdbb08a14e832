"""The history of the database's schema: `upgrade` brings a database to the newest version at every start.

Each version is a module in ``versions``, whose name begins with its number. The first one, 0007, creates all
tables of that time from frozen SQL; later ones change them by Alembic. Alembic and the definitions of all
tables are imported only when they are needed: each import takes a tenth of a second.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Engine, String, inspect, text
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.progress import Progress, ignore_progress
from bot.domain.text import name_some
from bot.errors import SettingsError
from bot.store.engine import open_unpooled

_VERSION_TABLE = "alembic_version"  # it has one row, with the version of the schema
_TAKE_MIGRATION_LOCK = text("SELECT pg_advisory_lock(hashtextextended('nod schema ' || current_schema(), 0))")
_MAX_NAMED = 3  # the most tables or columns that a fault names
MIGRATIONS_FOLDER = Path(__file__).parent

_FIRST = "0007"  # the first version; its module is the first in ``versions``

# Databases from before the first release. Remove `ADOPTED` and `_ADDED` after the release, with `adopt`, its
# uses and tests/store/test_adoption.py.
ADOPTED = frozenset({"0004", "0005", "0006"})
"""The versions from before the first one that `adopt` turns into the first one."""
_ADDED: tuple[tuple[str, Column[Any]], ...] = (
    ("name", Column("standing", String)),
    ("turn", Column("retry_at", UTCDateTime())),
)
"""Columns that schema 0004 may lack. Missing tables and indexes come with the first schema."""


def upgrade(engine: Engine, progress: Progress = ignore_progress) -> None:
    """Bring the schema to the newest version, and report each version to ``progress``.

    Raises SettingsError if the database is that of another program or a newer Nod, or if parts are missing.
    """
    if read_version(engine) != find_newest_version():
        from alembic import command

        with hold_migration_lock(engine):
            fault = find_schema_fault(engine) or find_unsupported_version(engine)
            if fault:
                raise SettingsError(f"NOD_DATABASE_URL: {fault}")
            command.upgrade(make_alembic_config(engine, progress), "head")
    fault = find_schema_fault(engine)
    if fault:
        raise SettingsError(f"NOD_DATABASE_URL: {fault}")


def make_alembic_config(engine: Engine, progress: Progress = ignore_progress) -> Any:
    """Return Alembic's configuration for this database, without a file."""
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(MIGRATIONS_FOLDER).replace("%", "%%"))
    settings.attributes["engine"] = engine
    settings.attributes["progress"] = progress
    return settings


@contextlib.contextmanager
def hold_migration_lock(engine: Engine) -> Iterator[None]:
    """Hold the lock for schema changes, so that processes starting together migrate one by one.

    SQLite's file belongs to one process anyway.
    """
    if engine.dialect.name == "sqlite":
        yield
        return
    with open_unpooled(engine.url).connect() as connection:
        connection.execute(_TAKE_MIGRATION_LOCK)
        yield


def find_schema_fault(engine: Engine) -> str:
    """Return why no release can use the present tables, and what to do; empty if there is no such fault.

    The tables of an older version are not checked, since this release knows only those of the newest one.
    """
    encoding = _find_wrong_encoding(engine)
    if encoding:
        return f"its encoding {encoding} can't hold every text. Name a database that has UTF8."
    version = read_version(engine)
    found_columns = inspect(engine).get_multi_columns()
    columns = {table: {column["name"] for column in listed} for (_, table), listed in found_columns.items()}
    if version is None:
        foreign_tables = sorted(columns.keys() - {_VERSION_TABLE})
        if foreign_tables:
            tables = name_some(foreign_tables, _MAX_NAMED)
            return f"it has tables ({tables}) but no schema version. Restore a backup, or name an empty one."
        return ""
    if version != find_newest_version():
        return ""
    missing = _find_missing_parts(columns)
    if missing:
        return f"parts of it are missing ({name_some(missing, _MAX_NAMED)}). Restore a backup."
    return ""


def _find_missing_parts(columns: Mapping[str, set[str]]) -> list[str]:
    """Return the tables that are missing or, if all are there, the missing columns.

    ``columns``: the names of the present columns, by table.
    """
    from bot.store.migrations.schema import SCHEMA

    missing_tables = sorted(SCHEMA.tables.keys() - columns.keys())
    if missing_tables:
        return missing_tables
    return [
        f"{name}.{column.name}"
        for name, table in SCHEMA.tables.items()
        for column in table.columns
        if column.name not in columns[name]
    ]


def _find_wrong_encoding(engine: Engine) -> str:
    """Return the encoding of a database that can't hold every text; empty if it is UTF8."""
    if engine.dialect.name == "sqlite":
        return ""
    with engine.connect() as connection:
        encoding = str(connection.scalar(text("SHOW server_encoding")))
    return "" if encoding == "UTF8" else encoding


def find_unsupported_version(engine: Engine) -> str:
    """Return why this release can't upgrade the schema, in words; empty if it can."""
    version = read_version(engine)
    if version is None or version in list_known_versions() | ADOPTED:
        return ""
    if not version.isdecimal():
        return f"its schema {version} is another program's. Name an empty one."
    if version < min(ADOPTED):
        return (
            f"schema {version} is older than this nod upgrades. Keep the nod of then, or name an empty one."
        )
    return f"schema {version} is from a newer nod. Upgrade this one."


def read_version(engine: Engine) -> str | None:
    """Return the version the database is at; None for an empty one."""
    if not inspect(engine).has_table(_VERSION_TABLE):
        return None
    with engine.connect() as connection:
        found: str | None = connection.scalar(text(f"SELECT version_num FROM {_VERSION_TABLE}"))  # noqa: S608 - our own word
    return found


def find_newest_version() -> str:
    """Return the newest version that this release knows."""
    return max(list_known_versions())


def list_known_versions() -> frozenset[str]:
    """Return every version this release knows: a version's file begins with it."""
    return frozenset(file.name.partition("_")[0] for file in MIGRATIONS_FOLDER.glob("versions/[0-9]*.py"))


def create_first_schema(connection: Connection) -> None:
    """Create the tables and indexes of the first schema that are missing; its SQL is frozen."""
    sql = (MIGRATIONS_FOLDER / f"first_schema.{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in sql.removesuffix(";\n").split(";\n"):
        connection.exec_driver_sql(statement)


def adopt(connection: Connection, version: str | None) -> None:
    """Turn the schema of a version in `ADOPTED` into the first one, in the caller's transaction."""
    if version not in ADOPTED:
        return
    for table, column in _ADDED:
        present = {found["name"] for found in inspect(connection).get_columns(table)}
        if column.name not in present:
            kind = column.type.compile(connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column.name} {kind}")
    create_first_schema(connection)
    connection.execute(text("UPDATE alembic_version SET version_num = :number"), {"number": _FIRST})
