"""The schema that versions begin with, frozen as SQL, and how a database from before it is adopted."""

from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, String, inspect, text
from sqlmodel.sql.sqltypes import UTCDateTime

HERE = Path(__file__).parent
NUMBER = "0007"

# The rest adopts databases from before the first release, and goes after it, with where it is named and with
# tests/store/test_adoption.py and its frozen databases.
ADOPTED = frozenset({"0004", "0005", "0006"})
_ADDED: tuple[tuple[str, Column[Any]], ...] = (
    ("name", Column("standing", String)),
    ("turn", Column("retry_at", UTCDateTime())),
)
"""Columns that tables of schema 0004 may lack; tables and indexes are made where they aren't there."""


def make(connection: Connection) -> None:
    """Every table and index that isn't there yet."""
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
    make(connection)
    connection.execute(text("UPDATE alembic_version SET version_num = :number"), {"number": NUMBER})
