"""Inserts that don't race: where a unique key is taken, they do nothing or update the row, in one statement.

`insert_new` and `insert_or_update` insert; `insert_or_ignore` only returns the statement. Its SQL differs
between SQLite and PostgreSQL.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from sqlalchemy import Table
from sqlmodel import Session, SQLModel

from bot.store.tables.row import table_of


def insert_or_ignore(session: Session, model: type[SQLModel], *returning: str) -> Any:
    """Return an insert that does nothing, and returns no row, where a unique key is already taken.

    ``returning``: the names of the columns that it returns of a new row.
    """
    return _build_insert_or_ignore(session.connection().dialect.name, model, returning)


@cache
def _build_insert_or_ignore(dialect: str, model: type[SQLModel], returning: tuple[str, ...]) -> Any:
    table = table_of(model)
    statement = _insert_into(dialect, table).on_conflict_do_nothing()
    if returning:
        return statement.returning(*(table.c[name] for name in returning))
    return statement


def insert_new(session: Session, model: type[SQLModel], values: Mapping[str, Any]) -> Any:
    """Insert a row and return its id; None where one of its unique keys is taken."""
    return session.connection().execute(insert_or_ignore(session, model, "id"), values).scalar()


def insert_or_update(session: Session, model: type[SQLModel], values: Mapping[str, Any]) -> None:
    """Insert a row, or update the row with the same primary key."""
    session.connection().execute(_build_insert_or_update(session.connection().dialect.name, model), values)


@cache
def _build_insert_or_update(dialect: str, model: type[SQLModel]) -> Any:
    table = table_of(model)
    statement = _insert_into(dialect, table)
    updates = {
        column.name: statement.excluded[column.name] for column in table.columns if not column.primary_key
    }
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=updates)


def _insert_into(dialect: str, table: Table) -> Any:
    """Return an insert of the dialect's own kind; only such an insert can say what happens on a conflict."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
