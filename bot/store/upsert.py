"""INSERT … ON CONFLICT DO NOTHING in the dialect of the session."""

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel


def insert_or_ignore(session: Session, table: type[SQLModel]) -> Any:
    """An insert that returns no row where a unique key is already taken."""
    dialect = session.get_bind().dialect.name
    maker = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return maker(table).on_conflict_do_nothing()
