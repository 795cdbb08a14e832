"""INSERT … ON CONFLICT in the dialect of the session."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from sqlalchemy import Table
from sqlmodel import Session, SQLModel

from bot.store.tables.row import table_of


def insert_or_ignore(session: Session, table: type[SQLModel], *returning: str) -> Any:
    """An insert that returns no row where a unique key is already taken; ``returning`` are column names."""
    return _insert(session.connection().dialect.name, table, returning)


@cache
def _insert(dialect: str, table: type[SQLModel], returning: tuple[str, ...]) -> Any:
    rows = table_of(table)
    statement = _into(dialect, rows).on_conflict_do_nothing()
    return statement.returning(*(rows.c[name] for name in returning)) if returning else statement


def id_of_new(session: Session, table: type[SQLModel], values: Mapping[str, Any]) -> Any:
    """The id of the row inserted; None where a unique key of it is taken."""
    return session.connection().execute(insert_or_ignore(session, table, "id"), values).scalar()


def insert_or_replace(session: Session, table: type[SQLModel], values: Mapping[str, Any]) -> None:
    """Insert a row, or give these values to the one with the same primary key; no race can make it fail."""
    session.connection().execute(_replace(session.connection().dialect.name, table), values)


@cache
def _replace(dialect: str, table: type[SQLModel]) -> Any:
    rows = table_of(table)
    statement = _into(dialect, rows)
    new = {each.name: statement.excluded[each.name] for each in rows.columns if not each.primary_key}
    return statement.on_conflict_do_update(index_elements=list(rows.primary_key), set_=new)


def _into(dialect: str, rows: Table) -> Any:
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(rows)
