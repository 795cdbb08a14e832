"""The schema's history. `upgrade` brings a database to the newest version at every start.

Alembic is loaded only where there is something to bring up to date, and all the tables only where they are
looked at: each takes a tenth of a second.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Engine, String, inspect, text
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.progress import Progress, ignore
from bot.domain.text import name_some
from bot.errors import SettingsError
from bot.store.engine import apart

_VERSIONS = "alembic_version"
_ALONE = text("SELECT pg_advisory_lock(hashtextextended('nod schema ' || current_schema(), 0))")
_NAMED = 3  # tables named in a fault
HERE = Path(__file__).parent

_FIRST = "0007"

# The rest adopts databases from before the first release, and goes after it, with `adopt`, with where it is
# named and with tests/store/test_adoption.py and its frozen databases.
ADOPTED = frozenset({"0004", "0005", "0006"})
_ADDED: tuple[tuple[str, Column[Any]], ...] = (
    ("name", Column("standing", String)),
    ("turn", Column("retry_at", UTCDateTime())),
)
"""Columns that tables of schema 0004 may lack; tables and indexes are made where they aren't there."""


def upgrade(engine: Engine, progress: Progress = ignore) -> None:
    """Bring the schema to the newest version; does nothing where it is.

    ``progress`` is told of versions.

    Raises SettingsError where the database is not one of Nod's, is from a newer one, or parts of it are gone.
    """
    if read_version(engine) != find_newest_version():
        from alembic import command

        with alone(engine):
            fault = damage(engine) or unknown(engine)
            if fault:
                raise SettingsError(f"NOD_DATABASE_URL: {fault}")
            command.upgrade(config(engine, progress), "head")
    fault = damage(engine)
    if fault:
        raise SettingsError(f"NOD_DATABASE_URL: {fault}")


def config(engine: Engine, progress: Progress = ignore) -> Any:
    """Return Alembic's configuration for this database, without a file."""
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(HERE).replace("%", "%%"))
    settings.attributes["engine"] = engine
    settings.attributes["progress"] = progress
    return settings


@contextlib.contextmanager
def alone(engine: Engine) -> Iterator[None]:
    """Hold the lock for schema changes, so that processes starting together migrate one by one.

    SQLite's file belongs to one process anyway.
    """
    if engine.dialect.name == "sqlite":
        yield
        return
    with apart(engine.url).connect() as connection:
        connection.execute(_ALONE)
        yield


def damage(engine: Engine) -> str:
    """Return the fault of the present tables and its fix; empty for none."""
    encoding = _narrow(engine)
    if encoding:
        return f"its encoding {encoding} can't hold every text. Name a database that has UTF8."
    version = read_version(engine)
    columns = inspect(engine).get_multi_columns()
    there = {name: {each["name"] for each in held} for (_, name), held in columns.items()}
    if version is None:
        strange = sorted(there.keys() - {_VERSIONS})
        if strange:
            there_is = f"it has tables ({name_some(strange, _NAMED)}) but no schema version"
            return f"{there_is}. Restore a backup, or name an empty one."
        return ""
    if version != find_newest_version():
        return ""
    from bot.store.migrations.schema import SCHEMA

    lost = sorted(SCHEMA.tables.keys() - there.keys()) or [
        f"{name}.{column.name}"
        for name, table in SCHEMA.tables.items()
        for column in table.columns
        if column.name not in there[name]
    ]
    if lost:
        return f"parts of it are missing ({name_some(lost, _NAMED)}). Restore a backup."
    return ""


def _narrow(engine: Engine) -> str:
    """Return the encoding of a database that does not hold what people write; empty where it does."""
    if engine.dialect.name == "sqlite":
        return ""
    with engine.connect() as connection:
        found = str(connection.scalar(text("SHOW server_encoding")))
    return "" if found == "UTF8" else found


def unknown(engine: Engine) -> str:
    """Return why this release can't upgrade the schema; empty where it can."""
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
    if not inspect(engine).has_table(_VERSIONS):
        return None
    with engine.connect() as connection:
        found: str | None = connection.scalar(text(f"SELECT version_num FROM {_VERSIONS}"))  # noqa: S608 - our own word
    return found


def find_newest_version() -> str:
    """Return the version this release knows."""
    return max(list_known_versions())


def list_known_versions() -> frozenset[str]:
    """Return every version this release knows: a version's file begins with it."""
    return frozenset(file.name.partition("_")[0] for file in HERE.glob("versions/[0-9]*.py"))


def make_first(connection: Connection) -> None:
    """Make every table and index of the first schema that isn't there yet; it is frozen as SQL."""
    made = (HERE / f"first_schema.{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in made.removesuffix(";\n").split(";\n"):
        connection.exec_driver_sql(statement)


def adopt(connection: Connection, version: str | None) -> None:
    """Make a database of schema 0004 or later one of the first schema, in the caller's transaction."""
    if version not in ADOPTED:
        return
    for table, column in _ADDED:
        if column.name not in {each["name"] for each in inspect(connection).get_columns(table)}:
            kind = column.type.compile(connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column.name} {kind}")
    make_first(connection)
    connection.execute(text("UPDATE alembic_version SET version_num = :number"), {"number": _FIRST})
