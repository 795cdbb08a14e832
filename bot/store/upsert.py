"""INSERT … ON CONFLICT DO NOTHING in the dialect of the session."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

from bot.store.prepared import Prepared


def insert_or_ignore(session: Session, table: type[SQLModel], *returning: str) -> Any:
    """An insert that returns no row where a unique key is already taken; ``returning`` are column names."""
    return _insert(session.get_bind().dialect.name, table, returning)


@cache
def prepared(dialect: str, table: type[SQLModel], *returning: str) -> Prepared:
    """The same, for where it runs many times a second."""
    return Prepared(_insert(dialect, table, returning))


@cache
def _insert(dialect: str, table: type[SQLModel], returning: tuple[str, ...]) -> Any:
    rows: Any = table.__table__  # type: ignore[attr-defined]
    statement = (sqlite.insert if dialect == "sqlite" else postgresql.insert)(rows).on_conflict_do_nothing()
    return statement.returning(*(rows.c[name] for name in returning)) if returning else statement


def id_of_new(session: Session, table: type[SQLModel], values: Mapping[str, Any]) -> Any:
    """The id of the row inserted; None where a unique key of it is taken."""
    return prepared(session.get_bind().dialect.name, table, "id").value(session, values)
